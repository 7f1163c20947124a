"""The files of a library on disk: which belong to a procedure, read within limits and inside the library."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct

from procedo.sopfile.agentsop import SUFFIX
from procedo.sopfile.definition import HEADER_FILE, STEPS_FILE
from procedo.sopfile.problems import Findings

__all__ = ["LARGEST_FILE", "Found", "Signature", "find_procedures", "has_settled", "read_texts", "signature"]

LARGEST_FILE: Final = 256 * 1024
"""How many bytes one file of a definition may have."""

Signature: TypeAlias = tuple[tuple[str, int, int, int, int], ...]

_COARSEST_NS: Final = 2_000_000_000
"""How far apart two changes may be that a file system gives the same time."""


class Found(Struct, frozen=True):
    """A procedure on disk: its folder, and the files that make it. `outside`: a link leaves the library.

    `unlisted`: why nobody can tell which files are in the folder.
    """

    name: str
    folder: Path
    files: tuple[str, ...]
    others: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    unlisted: str = ""


def find_procedures(root: Path) -> tuple[Found, ...]:
    """Every procedure below `root`, by folder; a missing root is an empty library.

    Folders whose name begins with a dot or an underscore are left alone, and so are those without any
    file that looks like a part of a procedure.
    """
    try:
        inside = sorted(root.iterdir())
        home = root.resolve()
        alone = [path.name for path in inside if path.name.endswith(SUFFIX) and path.is_file()]
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        return (_unlisted(root, error),)
    found = [Found(name.removesuffix(SUFFIX), root, (name,), (), _outside(root, (name,), home)) for name in alone]
    for folder in inside:
        try:
            if folder.name[0] not in "._" and folder.is_dir():
                found += _in_folder(folder, home)
        except (FileNotFoundError, NotADirectoryError):  # it went away meanwhile
            continue
        except OSError as error:
            found.append(_unlisted(folder, error))
    return tuple(found)


def _unlisted(folder: Path, error: OSError) -> Found:
    return Found(folder.name, folder, (), unlisted=error.strerror or str(error))


def _in_folder(folder: Path, home: Path) -> list[Found]:
    if _leaves(folder, home):
        return [Found(folder.name, folder, (), (), (folder.name,))]
    names = sorted(path.name for path in folder.iterdir() if path.is_file() or path.is_symlink())
    agent_sops = tuple(name for name in names if name.endswith(SUFFIX) and name != STEPS_FILE)
    mine = tuple(name for name in (HEADER_FILE, STEPS_FILE) if name in names)
    near = tuple(name for name in names if name.casefold() in ("sop.toml", "sop.md") and name not in mine)
    if mine or near:
        return [Found(folder.name, folder, mine, (*near, *agent_sops), _outside(folder, mine, home))]
    return [
        Found(name.removesuffix(SUFFIX) or folder.name, folder, (name,), (), _outside(folder, (name,), home))
        for name in agent_sops
    ]


def _outside(folder: Path, names: tuple[str, ...], home: Path) -> tuple[str, ...]:
    return tuple(name for name in names if _leaves(folder / name, home))


def _leaves(path: Path, home: Path) -> bool:
    try:
        return not path.resolve().is_relative_to(home)
    except (OSError, RuntimeError):  # links in a circle lead nowhere: whoever reads the file is told
        return False


def read_texts(found: Found, findings: Findings) -> Mapping[str, str]:
    """The texts of a procedure by name; a file that may not or cannot be read is told and left out."""
    for name in found.outside:
        hint = "copy it into the library"
        findings.add("link-out", name, 0, f"{name} is a link that leaves the library and is not followed", hint)
    for name in found.others:
        hint = "definitions stand in SOP.toml and SOP.md, written like that"
        findings.add("extra-file", name, 0, f"{name} is not read beside them", hint)
    if found.unlisted:
        name = found.folder.name
        findings.add("unreadable-file", name, 0, f"the folder {name} cannot be read: {found.unlisted}")
    texts: dict[str, str] = {}
    for name in found.files:
        if name not in found.outside and (text := _read(found.folder / name, name, findings)) is not None:
            texts[name] = text
    return texts


def _read(path: Path, name: str, findings: Findings) -> str | None:
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_FILE + 1)
    except OSError as error:
        findings.add("unreadable-file", name, 0, f"{name} cannot be read: {error.strerror}")
        return None
    if len(raw) > LARGEST_FILE:
        hint = "split the procedure with `sop:` steps"
        findings.add("file-too-large", name, 0, f"{name} is larger than {LARGEST_FILE // 1024} KiB", hint)
        return None
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        findings.add("unreadable-file", name, line, f"{name} is no UTF-8 text", "save it as UTF-8")
        return None


def signature(root: Path) -> Signature:
    """Changes whenever a file of the library changes: names, times and sizes, without reading any file."""
    entries: list[tuple[str, int, int, int, int]] = []
    _add_signatures(str(root), "", entries)
    return tuple(sorted(entries))


def has_settled(seen: Signature, now_ns: int) -> bool:
    """True when every further change gives another signature: none of its times is so near that it may come again."""
    return all(now_ns - written >= _COARSEST_NS for _, written, *_ in seen)


def _add_signatures(folder: str, prefix: str, entries: list[tuple[str, int, int, int, int]]) -> None:
    try:
        with os.scandir(folder) as inside:
            items = list(inside)
    except OSError:  # there is none, or it cannot be listed: what is known of the folder itself changes when it can
        return
    for item in items:
        try:
            status = item.stat()
            below = not prefix and item.name[0] not in "._" and item.is_dir()
        except OSError:  # a link that leads nowhere, or a file that went away meanwhile
            continue
        # The time of the change too: whoever copies a file may give it the time of writing that another one had.
        entries.append((prefix + item.name, status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino))
        if below:
            _add_signatures(item.path, f"{item.name}/", entries)
