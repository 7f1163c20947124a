"""Opens a path below a folder's descriptor so that neither `..` nor a link leads out of the folder.

On Linux the kernel does it in one step (openat2 with RESOLVE_BENEATH), so links that stay inside work.
Elsewhere each component is opened by itself and no link is followed at all.
"""

import ctypes
import errno
import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

__all__ = ["beneath", "kernel_can", "real_path"]

_SYS_OPENAT2: Final = 437  # the same number on every architecture
_RESOLVE_NO_MAGICLINKS: Final = 0x02
_RESOLVE_BENEATH: Final = 0x08
_O_PATH: Final = getattr(os, "O_PATH", os.O_RDONLY)


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


@functools.cache
def _syscall() -> Callable[[int, bytes, int], int] | None:
    """The kernel's own way, or None where there is none."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None, use_errno=True)

    def openat2(folder: int, path: bytes, flags: int) -> int:
        how = _OpenHow(flags | os.O_CLOEXEC, 0, _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)
        for _ in range(3):  # EAGAIN: something was renamed on the way
            found: int = libc.syscall(
                ctypes.c_long(_SYS_OPENAT2),
                ctypes.c_int(folder),
                ctypes.c_char_p(path),
                ctypes.byref(how),
                ctypes.c_size_t(ctypes.sizeof(how)),
            )
            if found >= 0:
                return found
            if (number := ctypes.get_errno()) != errno.EAGAIN:
                break
        raise OSError(number, os.strerror(number), os.fsdecode(path))

    try:
        probe = os.open("/", _O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.close(openat2(probe, b".", _O_PATH | os.O_DIRECTORY))
        finally:
            os.close(probe)
    except OSError:
        return None
    return openat2


def kernel_can() -> bool:
    """True when the kernel resolves paths beneath a folder by itself."""
    return _syscall() is not None


def beneath(folder: int, path: str, flags: int) -> int:
    """Open an existing `path` below the open `folder`; the new descriptor is the caller's.

    Raises `OSError`; a path that leads out of the folder is EXDEV or, where no link is followed, ELOOP.
    """
    if (openat2 := _syscall()) is not None:
        return openat2(folder, os.fsencode(path or "."), flags)
    return walk(folder, path, flags)


def walk(folder: int, path: str, flags: int) -> int:
    """The same, component by component, following no link."""
    parts = [part for part in path.split("/") if part not in {"", "."}]
    if path.startswith("/") or ".." in parts:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
    here = os.open(".", _O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    for place, part in enumerate(parts, 1):
        wanted = flags if place == len(parts) else _O_PATH | os.O_DIRECTORY
        try:
            following = os.open(part, wanted | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
        finally:
            os.close(here)
        here = following
    if parts:
        return here
    try:
        return os.open(".", flags | os.O_CLOEXEC, dir_fd=here)
    finally:
        os.close(here)


def real_path(descriptor: int) -> str | None:
    """Where an open descriptor really lies, or None when the system does not tell."""
    if sys.platform == "darwin":
        import fcntl

        raw = fcntl.fcntl(descriptor, 50, b"\0" * 1024)  # F_GETPATH
        return os.fsdecode(raw.partition(b"\0")[0])
    try:
        return str(Path(f"/proc/self/fd/{descriptor}").readlink())
    except OSError:
        return None
