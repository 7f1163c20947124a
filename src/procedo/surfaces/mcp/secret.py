"""The keys that seal what a client carries between the rounds of one question.

They outlive the process, and every server of a workspace has the same: a question that one server asked is answered
at any other. The first key seals, each of them opens. They are looked up anew each time, so that servers at work
take a rotation up without a restart.
"""

import logging
import os
import secrets
import stat
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from mcp.server.request_state import AESGCMRequestStateCodec

from procedo.config.settings import Settings
from procedo.credentials import Missing, SecretRef, resolve
from procedo.errors import StoreError

__all__ = ["Ring", "StateKeys", "kept_keys", "named_keys", "renew", "state_keys"]

_LOG: Final = logging.getLogger(__name__)
_NAME: Final = "request-state.key"
_BYTES: Final = 32
_MOST: Final = 2
_OLD_S: Final = 30 * 86_400.0
"""After so long a new key is put before the old one. What is sealed lives for minutes."""

Ring: TypeAlias = tuple[bytes, ...]
"""Keys; the first one seals."""


class StateKeys:
    """Seals and opens with the keys that `read` gives now (implements the SDK's `RequestStateCodec`).

    Keys that cannot be read any more are used as they were. Raises what `read` raises when there never were any.
    """

    def __init__(self, read: Callable[[], Ring]) -> None:
        self._read = read
        self._ring = read()
        self._codec = AESGCMRequestStateCodec(self._ring)

    def seal(self, payload: bytes) -> str:
        """Seal with the first key."""
        return self._now().seal(payload)

    def unseal(self, token: str) -> bytes:
        """Open with whichever key it was sealed. Raises `InvalidRequestState` for anything else."""
        return self._now().unseal(token)

    def _now(self) -> AESGCMRequestStateCodec:
        try:
            ring = self._read()
        except StoreError as error:
            _LOG.warning("the keys of open questions cannot be read, those known are used: %s", error)
            return self._codec
        if ring != self._ring:
            self._ring, self._codec = ring, AESGCMRequestStateCodec(ring)
        return self._codec


def state_keys(settings: Settings, environ: Mapping[str, str]) -> StateKeys:
    """The keys of a workspace: those that `[http] state_keys` names, else those beside its store.

    Raises `StoreError` when there are none that can be used.
    """
    named = settings.serving.state_keys
    if named is None:
        renew(settings.data_dir, time.time())
        return StateKeys(lambda: kept_keys(settings.data_dir))
    return StateKeys(lambda: named_keys(named, environ, settings.root))


def named_keys(reference: SecretRef, environ: Mapping[str, str], root: Path) -> Ring:
    """The keys behind a reference, separated by blanks. Raises `StoreError`, and never tells a key."""
    hint = "Name one or more keys, separated by blanks, such as `openssl rand -hex 32` prints; the first one seals."
    try:
        ring = tuple(dict.fromkeys(word.encode() for word in resolve(reference, environ, root).reveal().split()))
    except Missing as error:
        raise StoreError("key_unusable", f"[http] state_keys cannot be used: {error}.", hint) from error
    if any(len(key) < _BYTES for key in ring):
        message = f"[http] state_keys names {reference}, where a key has less than {_BYTES} characters."
        raise StoreError("key_unusable", message, hint)
    return ring


def kept_keys(data_dir: Path) -> Ring:
    """The keys beside the store, made at the first call. Raises `StoreError` when they cannot be used."""
    file = data_dir / _NAME
    try:
        if not file.exists():
            data_dir.mkdir(parents=True, exist_ok=True)
            _made(file, secrets.token_bytes(_BYTES), Path.hardlink_to)
        return _keys(file)
    except OSError as error:
        message = f"The key file {file} cannot be used: {error.strerror or error}."
        raise StoreError("key_unusable", message, "Make its folder writable, or delete the file.") from error


def renew(data_dir: Path, now: float) -> bool:
    """Put a new key before the one beside the store when that is old; `now` in seconds since the epoch."""
    first = kept_keys(data_dir)[0]
    file = data_dir / _NAME
    if now - file.stat().st_mtime < _OLD_S:
        return False
    try:
        _made(file, secrets.token_bytes(_BYTES) + first, lambda target, draft: draft.replace(target))
    except OSError as error:
        _LOG.warning("the key file %s cannot be renewed: %s", file, error)
        return False
    return True


def _made(file: Path, content: bytes, publish: Callable[[Path, Path], object]) -> None:
    """Whole or not at all: of two processes that make it at once, both use the one that came first."""
    draft = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
    handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        publish(file, draft)
    except FileExistsError:
        return
    finally:
        draft.unlink(missing_ok=True)


def _keys(file: Path) -> Ring:
    handle = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    with os.fdopen(handle, "rb") as stream:
        mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
        content = stream.read(_MOST * _BYTES + 1)
    if os.name == "posix" and mode & 0o077:
        message = f"The key file {file} can be read by others (mode {mode:o})."
        raise StoreError("key_exposed", message, "Delete it; a new one is made at the next start.")
    if not content or len(content) % _BYTES or len(content) > _MOST * _BYTES:
        message = f"The key file {file} does not hold one or two keys of {_BYTES} bytes."
        raise StoreError("key_unusable", message, "Delete it; a new one is made at the next start.")
    return tuple(content[start : start + _BYTES] for start in range(0, len(content), _BYTES))
