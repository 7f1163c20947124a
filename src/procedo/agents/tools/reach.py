"""What an agent's file tools reach: its roots, without what is forbidden.

A path is opened first and judged by where the open descriptor really lies, so nothing can be exchanged
between the check and the use. Every refusal is `ToolDenied`; everything else that goes wrong is `ToolFailed`.
"""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Final

from procedo.agents.parts import Root, SecurityPolicy
from procedo.agents.ports import ToolDenied, ToolFailed
from procedo.agents.tools.beneath import beneath, real_path

__all__ = ["Reach"]

_FOLDER: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
_OUTSIDE: Final = frozenset({errno.EXDEV, errno.ELOOP})


class Reach:
    """Opens paths for one security policy."""

    def __init__(self, policy: SecurityPolicy) -> None:
        self._roots = policy.roots
        self._forbidden = _both(policy.forbidden)
        self._protected = _both(policy.protected)

    # --- reading ------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def file(self, path: str) -> Iterator[int]:
        """An open regular file, for reading."""
        with self._opened(path, _READ) as descriptor:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ToolFailed(f"{path} is no regular file")
            yield descriptor

    @contextlib.contextmanager
    def folder(self, path: str) -> Iterator[tuple[int, str]]:
        """An open folder, for listing, and where it lies."""
        with self._opened(path, os.O_RDONLY | os.O_DIRECTORY) as descriptor:
            yield descriptor, self._place(descriptor, path)

    def hides(self, place: str) -> bool:
        """True for a real path that is forbidden, so that a listing leaves it out."""
        return _covered(place, self._forbidden)

    def shown(self, place: str) -> str:
        """A real path as the agent names it: relative to its workspace where it lies in there."""
        home = str(self._roots[0].path.resolve())
        return os.path.relpath(place, home) if _covered(place, {home}) else place

    # --- writing ------------------------------------------------------------------------------------

    def replace(self, path: str, content: bytes) -> None:
        """Write a whole file, or nothing: a new one takes the old one's place in one step. Makes missing folders."""
        root, inside = self._split(path)
        if not root.writable:
            raise ToolDenied(f"{path} may be read only")
        above, _, name = inside.rstrip("/").rpartition("/")
        if name in {"", ".", ".."}:
            raise ToolFailed(f"{path!r} names no file")
        with self._root(root) as top, self._folder_for(top, above, path) as folder:
            place = os.path.join(self._place(folder, path), name)  # noqa: PTH118  # a real path as text
            self._check(place, path, writing=True)
            _exchange(folder, name, path, content)

    @contextlib.contextmanager
    def _folder_for(self, top: int, above: str, path: str) -> Iterator[int]:
        """The folder a file is written to, made if it is missing, part by part and through no link."""
        try:
            descriptor = beneath(top, above, _FOLDER)
        except FileNotFoundError:
            descriptor = self._made(top, above, path)
        except OSError as error:
            raise _told(error, path) from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _made(self, top: int, above: str, path: str) -> int:
        here = os.dup(top)
        for part in above.split("/"):
            if part in {"", "."}:
                continue
            if part == "..":
                os.close(here)
                raise ToolFailed(f"{path}: the folder does not exist, and none is made behind ..")
            try:
                place = os.path.join(self._place(here, path), part)  # noqa: PTH118  # a real path as text
                self._check(place, path, writing=True)
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=here)
                following = os.open(part, _FOLDER | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
            except OSError as error:
                raise _told(error, path) from error
            finally:
                os.close(here)
            here = following
        return here

    # --- both ---------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _opened(self, path: str, flags: int) -> Iterator[int]:
        root, inside = self._split(path)
        with self._root(root) as top:
            try:
                descriptor = beneath(top, inside, flags)
            except OSError as error:
                raise _told(error, path) from error
        try:
            self._check(self._place(descriptor, path), path, writing=False)
            yield descriptor
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _root(self, root: Root) -> Iterator[int]:
        try:
            descriptor = os.open(root.path, _FOLDER | os.O_CLOEXEC)
        except OSError as error:
            raise ToolFailed(f"the folder {root.path} cannot be opened: {error.strerror}") from error
        try:
            if self._place(descriptor, str(root.path)) != str(root.path):
                # Somebody put a link in its place: what it leads to was never granted.
                raise ToolDenied(f"the folder {root.path} is no longer what it was when this agent was assembled")
            yield descriptor
        finally:
            os.close(descriptor)

    def _split(self, path: str) -> tuple[Root, str]:
        """The root that a path belongs to, and the way below it."""
        if "\0" in path:
            raise ToolFailed("the path holds a NUL character")
        if not path.startswith("/"):
            return self._roots[0], path
        given = PurePath(path)
        holding = [root for root in self._roots if given.is_relative_to(root.path)]
        if not holding:
            raise ToolDenied(
                f"{path} is outside of what this agent may reach: {', '.join(map(self._named, self._roots))}"
            )
        root = max(holding, key=lambda root: len(root.path.parts))
        return root, str(given.relative_to(root.path))

    @staticmethod
    def _named(root: Root) -> str:
        return f"{root.path} ({'read and write' if root.writable else 'read'})"

    @staticmethod
    def _place(descriptor: int, path: str) -> str:
        place = real_path(descriptor)
        if place is None:
            raise ToolDenied(f"{path}: this system does not tell where an open file lies, so it cannot be judged")
        return place

    def _check(self, place: str, path: str, *, writing: bool) -> None:
        if _covered(place, self._forbidden):
            raise ToolDenied(f"{path} is forbidden to this agent")
        if writing and _covered(place, self._protected):
            raise ToolDenied(f"{path} may be read, and is never written by an agent")


def _both(paths: tuple[Path, ...]) -> set[str]:
    """Each path as it is written and where its links lead."""
    return {os.path.normpath(path) for path in paths} | {os.path.realpath(path) for path in paths}


def _covered(place: str, paths: set[str]) -> bool:
    return any(place == path or place.startswith(path.rstrip("/") + "/") for path in paths)


def _told(error: OSError, path: str) -> ToolDenied | ToolFailed:
    if error.errno in _OUTSIDE:
        return ToolDenied(f"{path} leads out of what this agent may reach")
    return ToolFailed(f"{path}: {error.strerror or error}")


def _exchange(folder: int, name: str, path: str, content: bytes) -> None:
    mode = 0o666 & ~_umask()
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise _told(error, path) from error
    else:
        if stat.S_ISLNK(found.st_mode):
            raise ToolDenied(f"{path} is a link; name the file that it leads to")
        if not stat.S_ISREG(found.st_mode):
            raise ToolFailed(f"{path} is no regular file")
        mode = stat.S_IMODE(found.st_mode)
    fresh = f".{secrets.token_hex(8)}.tmp"
    parent = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(fresh, flags, mode & 0o777, dir_fd=parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                os.fchmod(file.fileno(), mode & 0o777)
            os.replace(fresh, name, src_dir_fd=parent, dst_dir_fd=parent)
        except OSError:
            os.unlink(fresh, dir_fd=parent)
            raise
    except OSError as error:
        raise _told(error, path) from error
    finally:
        os.close(parent)


def _umask() -> int:
    """The process's mask, without changing it where the system can tell."""
    try:
        status = Path("/proc/self/status").read_text()
        return next(int(line.split()[1], 8) for line in status.splitlines() if line.startswith("Umask:"))
    except (OSError, StopIteration):
        return 0o077
