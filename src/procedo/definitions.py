"""Pinned definitions, and the sub-procedures that a procedure can reach."""

from collections.abc import Mapping
from pathlib import Path

from procedo.core.model import Sop
from procedo.errors import NotFound, Refused
from procedo.ports import Definition
from procedo.sopfile import compile_files
from procedo.sopfile.compilation import digest_of
from procedo.sopfile.library import Entry, Library

__all__ = ["check_definition", "compile_definition", "pinned_entry", "sub_procedures"]


def compile_definition(definition: Definition) -> Sop:
    """The procedure of a pinned definition; what the workspace looks like today plays no part in it."""
    return compile_files(definition.files, definition.name)


def check_definition(definition: Definition) -> None:
    """Raises `Refused` for files that are not those of the digest, `InvalidSop` for what cannot be used."""
    if digest_of(definition.files) != definition.digest:
        message = f"The definition of {definition.name!r} was changed: its files are not those of its digest."
        raise Refused("changed_file", message, "Use the file as it was written.")
    compile_definition(definition)


def pinned_entry(definition: Definition) -> Entry:
    """A pinned definition in the form of a catalogue entry."""
    sop = compile_definition(definition)
    return Entry(name=sop.name, folder=Path(), sop=sop, problems=(), files=definition.files)


def _sub_procedure(library: Library, name: str, step: int) -> Entry:
    try:
        return library.get(name)
    except NotFound as error:
        message = f"Step {step} runs the procedure {name!r}, which this caller does not reach: {error.message}"
        raise NotFound(error.code, message, error.hint, error.near) from error


def sub_procedures(library: Library, sop: Sop | None) -> Mapping[str, Entry]:
    """Every procedure that may run as a sub-run below this one, by name. Raises `NotFound` and `InvalidSop`."""
    found: dict[str, Entry] = {}
    waiting = [sop] if sop is not None else []
    while waiting:
        for step in waiting.pop().steps:
            name = step.sub_sop
            if name is not None and (sop is None or name != sop.name) and name not in found:
                entry = _sub_procedure(library, name, step.number)
                if entry.sop is None:
                    raise NotFound("unknown_sop", f"{name!r}, which step {step.number} runs, cannot be used.")
                found[name] = entry
                waiting.append(entry.sop)
    return found
