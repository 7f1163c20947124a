"""The procedures of a workspace, or of a folder that was named; no store is opened for them."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from procedo.errors import NotFound
from procedo.surfaces.cli.call import Call

if TYPE_CHECKING:
    from procedo.config import Settings
    from procedo.sopfile import Entry
    from procedo.sopfile.library import Library

__all__ = ["chosen", "library_in", "opened"]


def library_in(settings: "Settings", folder: Path, call: Call) -> "Library":
    """The procedures in a folder, checked against the settings of the workspace."""
    from procedo.access.reached import reached
    from procedo.app import surroundings
    from procedo.capabilities.registry import built_in
    from procedo.sopfile.library import Library

    capabilities = built_in(settings.capabilities, call.environ)
    around = surroundings(settings, capabilities)
    return reached(Library(folder, lambda: around), call.access.reach)


def opened(call: Call) -> "tuple[Library, Settings]":
    """The library of the workspace, and its settings."""
    from procedo.config import load

    settings = load(call.workspace())
    return library_in(settings, settings.sops_dir, call), settings


def _is_path(word: str) -> bool:
    return "/" in word or "\\" in word or word.startswith(".")


def _in_folder(word: str, call: Call, settings: "Settings") -> "Sequence[Entry]":
    """The procedures of a folder: one procedure's own, or one that holds several."""
    folder = (call.cwd / word).resolve()
    if not folder.is_dir():
        hint = "Name a folder with SOP.toml, or one that holds several."
        raise NotFound("no_folder", f"{folder} is no folder.", hint)
    alone = (folder / "SOP.toml").exists() or (folder / "SOP.md").exists()
    library = library_in(settings, folder.parent if alone else folder, call)
    return [entry for entry in library.entries() if not alone or entry.folder.resolve() == folder]


def _named(word: str, library: "Library", folder: Path) -> "Entry":
    import difflib

    entries = {entry.name: entry for entry in library.entries()}
    if word in entries:
        return entries[word]
    near = difflib.get_close_matches(word, entries, n=3)
    hint = f"Did you mean {', '.join(near)}?" if near else "See: procedo list"
    raise NotFound("unknown_sop", f"No procedure in {folder} is called {word!r}.", hint, near)


def chosen(call: Call, words: Sequence[str]) -> "tuple[Sequence[Entry], Settings]":
    """The procedures that the words name (all of them when there are none), broken ones too, and the settings."""
    library, settings = opened(call)
    if not words:
        return library.entries(), settings
    found: list[Entry] = []
    for word in words:
        named = _in_folder(word, call, settings) if _is_path(word) else [_named(word, library, settings.sops_dir)]
        found += named
    return found, settings
