"""One configuration file of a host: read whole, backed up, and replaced in one step or not at all."""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Final, NoReturn

from msgspec import Struct

from procedo.errors import Conflict, InvalidConfig, Refused

__all__ = ["HostFile", "read", "replace"]

_MAX_BYTES: Final = 64 * 1024 * 1024
_BOM: Final = "\ufeff"
_PRIVATE: Final = 0o600
"""What a new file may be: hosts keep credentials beside their servers."""


class HostFile(Struct, frozen=True):
    """A file as it was read. `path` is the file itself, links followed; `data` None: there is none yet."""

    path: Path
    data: bytes | None
    bom: bool
    text: str

    def encoded(self, text: str) -> bytes:
        """The bytes of another text for this file."""
        return ((_BOM if self.bom else "") + text).encode()


def _refused(path: Path, why: str, hint: str) -> NoReturn:
    raise Refused("cannot_edit", f"{path} cannot be edited: {why}.", hint)


def read(place: Path) -> HostFile:
    """Read a file; one that does not exist has no text. Raises `Refused`, and `InvalidConfig` for what is no text."""
    try:
        path = place.resolve()
        data = _data(path)
    except (OSError, RuntimeError) as error:  # a link that leads to itself is a RuntimeError
        _refused(place, getattr(error, "strerror", None) or str(error), "Make it a file that you may read.")
    if data is None:
        return HostFile(path, None, bom=False, text="")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        message = f"{path}:{line}:{column}: the file is not UTF-8."
        raise InvalidConfig("not_utf8", message, "Save it as UTF-8; nothing was changed.") from error
    return HostFile(path, data, text.startswith(_BOM), text.removeprefix(_BOM))


def _data(path: Path) -> bytes | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        _refused(path, "it is no file", "Look at what stands there.")
    if status.st_size > _MAX_BYTES:
        _refused(path, f"it is larger than {_MAX_BYTES // 1_048_576} MiB", "Make the entry by hand: see --dry-run.")
    return path.read_bytes()


def _check_unchanged(file: HostFile) -> None:
    if _data(file.path) != file.data:
        message = f"{file.path} was changed by another program meanwhile, so it was left alone."
        raise Conflict("changed_meanwhile", message, "Close the host, then run the command again.")


def replace(file: HostFile, text: str, now: datetime) -> Path | None:
    """Write another text into the file, in one step; the backup of what was there, if anything was.

    Mode and owner stay, a link keeps pointing at it. Raises `Conflict` when the file is not what was read any more,
    and `Refused` when it cannot be written; the file is as it was then.
    """
    path = file.path
    _check_unchanged(file)
    if file.data is not None and not path.stat().st_mode & 0o222:
        _refused(path, "it is read-only", f"Allow it with: chmod u+w {path}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _beside(path, file) as beside:
            _fill(beside, file.encoded(text))
            _check_unchanged(file)
            backup = None if file.data is None else _backup(path, file.data, now)
            beside.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        _refused(path, error.strerror or str(error), "Give your account write access to its folder.")
    return backup


@contextmanager
def _beside(path: Path, file: HostFile) -> Iterator[Path]:
    """A new file in the same folder with mode and owner of the old one; gone if nothing came of it."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    os.close(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE))
    try:
        if file.data is not None:
            _like(path, beside)
        yield beside
    finally:
        with suppress(FileNotFoundError):
            beside.unlink()


def _like(path: Path, other: Path) -> None:
    status = path.stat()
    if hasattr(os, "chown") and (status.st_uid, status.st_gid) != (other.stat().st_uid, other.stat().st_gid):
        os.chown(other, status.st_uid, status.st_gid)
    other.chmod(stat.S_IMODE(status.st_mode))


def _fill(path: Path, data: bytes) -> None:
    with path.open("r+b") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def _backup(path: Path, data: bytes, now: datetime) -> Path:
    """A copy beside the file, never over an older one."""
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    for number in range(1000):
        copy = path.with_name(f"{path.name}.{stamp}{f'-{number}' if number else ''}.bak")
        try:
            os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE))
        except FileExistsError:
            continue
        _like(path, copy)
        _fill(copy, data)
        return copy
    raise FileExistsError(0, f"there are too many backups of {path.name} beside it")


def _sync_folder(folder: Path) -> None:
    if not hasattr(os, "O_DIRECTORY"):  # Windows has no such thing, and its rename is durable enough
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
