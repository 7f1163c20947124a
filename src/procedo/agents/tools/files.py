"""The file tools: read, write, edit, list, search. Text in UTF-8; each one bounded in what it reads and gives."""

import fnmatch
import os
import stat
from collections.abc import Iterator
from typing import Final

from procedo.agents.parts import SecurityPolicy
from procedo.agents.ports import ToolDenied, ToolFailed
from procedo.agents.tools.reach import Reach
from procedo.core.model import Json

__all__ = ["edit", "find", "listing", "read", "write"]

_MOST_ENTRIES: Final = 1_000
_MOST_MATCHES: Final = 200
_MOST_FILES: Final = 20_000
_LONGEST_LINE: Final = 400
_DEEPEST: Final = 32


def _bytes(descriptor: int, path: str, limit: int) -> bytes:
    size = os.fstat(descriptor).st_size
    if size > limit:
        raise ToolFailed(f"{path} has {size} bytes, more than the {limit} that a file may have here")
    with os.fdopen(os.dup(descriptor), "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise ToolFailed(f"{path} grew past {limit} bytes while it was read")
    return data


def _text(reach: Reach, path: str, limit: int) -> str:
    with reach.file(path) as descriptor:
        data = _bytes(descriptor, path, limit)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ToolFailed(f"{path} is no text in UTF-8 (byte {error.start})") from None


def read(policy: SecurityPolicy, arguments: Json) -> str:
    """The text of a file, or some lines of it."""
    text = _text(Reach(policy), arguments["path"], policy.max_bytes)
    first, count = arguments.get("line", 1), arguments.get("lines")
    if first == 1 and count is None:
        return text
    lines = text.splitlines(keepends=True)
    if first > max(1, len(lines)):
        raise ToolFailed(f"{arguments['path']} has {len(lines)} lines")
    return "".join(lines[first - 1 : None if count is None else first - 1 + count])


def write(policy: SecurityPolicy, arguments: Json) -> str:
    """Write a whole file."""
    content = _encoded(arguments["content"], policy.max_bytes)
    Reach(policy).replace(arguments["path"], content)
    return f"wrote {len(content)} bytes to {arguments['path']}"


def _encoded(text: str, limit: int) -> bytes:
    try:
        content = text.encode()
    except UnicodeEncodeError:
        raise ToolFailed("the text holds half a surrogate pair, which no file can keep") from None
    if len(content) > limit:
        raise ToolFailed(f"the text has {len(content)} bytes, more than the {limit} that a file may have here")
    return content


def edit(policy: SecurityPolicy, arguments: Json) -> str:
    """Exchange one piece of a file for another; it has to occur exactly once unless `all` is true."""
    path, old, new = arguments["path"], arguments["old"], arguments["new"]
    reach = Reach(policy)
    text = _text(reach, path, policy.max_bytes)
    found = text.count(old)
    if found == 0:
        raise ToolFailed(f"{path} does not hold the old text; read it again")
    if found > 1 and not arguments.get("all", False):
        raise ToolFailed(f"{path} holds the old text {found} times; give more of what is around it, or set all")
    reach.replace(path, _encoded(text.replace(old, new), policy.max_bytes))
    return f"replaced {found} in {path}"


def listing(policy: SecurityPolicy, arguments: Json) -> str:
    """The entries of a folder, those below it too up to `depth`; a folder ends in `/`."""
    reach, depth = Reach(policy), arguments.get("depth", 1)
    lines: list[str] = []
    with reach.folder(arguments.get("path", ".")) as (descriptor, place):
        for inner, kind, size in _walk(reach, descriptor, place, depth):
            if len(lines) == _MOST_ENTRIES:
                lines.append(f"(only the first {_MOST_ENTRIES} entries; name a folder below)")
                break
            shown = reach.shown(inner)
            lines.append(
                f"{shown}/"
                if kind == "folder"
                else f"{shown} ({size} bytes)"
                if kind == "file"
                else f"{shown} ({kind})"
            )
    return "\n".join(lines) or "(empty)"


def _walk(reach: Reach, folder: int, place: str, depth: int) -> Iterator[tuple[str, str, int]]:
    """Entries with their real path, kind and size, in order of their names, following no link."""
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries)
    for name in names:
        inner = f"{place.rstrip('/')}/{name}"
        if reach.hides(inner):
            continue
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError:  # it went away meanwhile
            continue
        if not stat.S_ISDIR(found.st_mode):
            kind = "file" if stat.S_ISREG(found.st_mode) else "link" if stat.S_ISLNK(found.st_mode) else "special"
            yield inner, kind, found.st_size
            continue
        yield inner, "folder", 0
        if depth > 1:
            try:
                below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            except OSError:  # not ours to read, or exchanged for a link
                continue
            try:
                yield from _walk(reach, below, inner, depth - 1)
            finally:
                os.close(below)


def find(policy: SecurityPolicy, arguments: Json) -> str:
    """Lines that hold a text, as `path:line: text`; without a text the files whose names fit."""
    reach = Reach(policy)
    wanted, pattern = arguments.get("text", ""), arguments.get("name", "*")
    exact = arguments.get("case", True)
    needle = wanted if exact else wanted.casefold()
    lines: list[str] = []
    with reach.folder(arguments.get("path", ".")) as (descriptor, place):
        for number, (inner, kind, _) in enumerate(_walk(reach, descriptor, place, _DEEPEST)):
            if number == _MOST_FILES or len(lines) >= _MOST_MATCHES:
                lines.append("(there may be more; narrow the search)")
                break
            if kind == "file" and fnmatch.fnmatchcase(inner.rpartition("/")[2], pattern):
                lines += _matches(reach, inner, needle, exact=exact, limit=policy.max_bytes)
    return "\n".join(lines) or "(nothing found)"


def _matches(reach: Reach, place: str, needle: str, *, exact: bool, limit: int) -> list[str]:
    if not needle:
        return [reach.shown(place)]
    try:
        text = _text(reach, place, limit)
    except (ToolFailed, ToolDenied):  # no text, too large for a search, or exchanged meanwhile
        return []
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if needle in (line if exact else line.casefold()):
            found.append(f"{reach.shown(place)}:{number}: {line.strip()[:_LONGEST_LINE]}")
    return found[:_MOST_MATCHES]
