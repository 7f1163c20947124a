"""The key that seals what a client carries between the rounds of one question. It outlives the process."""

import os
import secrets
import stat
from pathlib import Path
from typing import Final

from procedo.errors import StoreError

__all__ = ["request_state_key"]

_NAME: Final = "request-state.key"
_BYTES: Final = 32


def request_state_key(data_dir: Path) -> bytes:
    """The key beside the store, made at the first call. Raises `StoreError` when it is unusable or open to others."""
    file = data_dir / _NAME
    try:
        if not file.exists():
            data_dir.mkdir(parents=True, exist_ok=True)
            _make(file)
        return _read(file)
    except OSError as error:
        message = f"The key file {file} cannot be used: {error.strerror or error}."
        raise StoreError("key_unusable", message, "Make its folder writable, or delete the file.") from error


def _make(file: Path) -> None:
    """Whole or not at all: of two processes that make it at once, both use the one that came first."""
    draft = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
    handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(secrets.token_bytes(_BYTES))
            stream.flush()
            os.fsync(stream.fileno())
        _publish(draft, file)
    finally:
        draft.unlink(missing_ok=True)


def _publish(draft: Path, file: Path) -> None:
    try:
        file.hardlink_to(draft)
    except FileExistsError:
        return


def _read(file: Path) -> bytes:
    handle = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    with os.fdopen(handle, "rb") as stream:
        mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
        key = stream.read(_BYTES + 1)
    if os.name == "posix" and mode & 0o077:
        message = f"The key file {file} can be read by others (mode {mode:o})."
        raise StoreError("key_exposed", message, "Delete it; a new one is made at the next start.")
    if len(key) != _BYTES:
        message = f"The key file {file} does not hold {_BYTES} bytes."
        raise StoreError("key_unusable", message, "Delete it; a new one is made at the next start.")
    return key
