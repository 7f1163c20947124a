"""The files of a library on disk: which belong to a procedure, read within limits and inside the library."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct

from procedo.sopfile.agentsop import SUFFIX
from procedo.sopfile.definition import HEADER_FILE, STEPS_FILE
from procedo.sopfile.problems import Findings

__all__ = ["LARGEST_FILE", "Found", "Signature", "find_procedures", "read_texts", "signature"]

LARGEST_FILE: Final = 256 * 1024
"""How many bytes one file of a definition may have."""

Signature: TypeAlias = tuple[tuple[str, int, int, int], ...]


class Found(Struct, frozen=True):
    """A procedure on disk: its folder, and the files that make it. `outside`: a link leaves the library."""

    name: str
    folder: Path
    files: tuple[str, ...]
    others: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()


def find_procedures(root: Path) -> tuple[Found, ...]:
    """Every procedure below `root`, by folder; a missing root is an empty library.

    Folders whose name begins with a dot or an underscore are left alone, and so are those without any
    file that looks like a part of a procedure.
    """
    try:
        inside = sorted(root.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return ()
    home = root.resolve()
    found: list[Found] = []
    alone = [path.name for path in inside if path.name.endswith(SUFFIX) and path.is_file()]
    found += [Found(name.removesuffix(SUFFIX), root, (name,), (), _outside(root, (name,), home)) for name in alone]
    for folder in inside:
        if folder.name[0] in "._" or not folder.is_dir():
            continue
        if not folder.resolve().is_relative_to(home):
            found.append(Found(folder.name, folder, (), (), (folder.name,)))
            continue
        found += _in_folder(folder, home)
    return tuple(found)


def _in_folder(folder: Path, home: Path) -> list[Found]:
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
    return tuple(name for name in names if not (folder / name).resolve().is_relative_to(home))


def read_texts(found: Found, findings: Findings) -> Mapping[str, str]:
    """The texts of a procedure by name; a file that may not or cannot be read is told and left out."""
    for name in found.outside:
        hint = "copy it into the library"
        findings.add("link-out", name, 0, f"{name} is a link that leaves the library and is not followed", hint)
    for name in found.others:
        hint = "definitions stand in SOP.toml and SOP.md, written like that"
        findings.add("extra-file", name, 0, f"{name} is not read beside them", hint)
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
    entries: list[tuple[str, int, int, int]] = []
    try:
        _add_signatures(str(root), "", entries)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    return tuple(sorted(entries))


def _add_signatures(folder: str, prefix: str, entries: list[tuple[str, int, int, int]]) -> None:
    with os.scandir(folder) as inside:
        for item in inside:
            try:
                status = item.stat()
            except FileNotFoundError:  # a dangling link, or a file that went away meanwhile
                continue
            entries.append((prefix + item.name, status.st_mtime_ns, status.st_size, status.st_ino))
            if not prefix and item.name[0] not in "._" and item.is_dir():
                _add_signatures(item.path, f"{item.name}/", entries)
