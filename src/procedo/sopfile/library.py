"""The procedures of a workspace: read from their folder, checked, and read again when a file changes."""

import difflib
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from procedo.core.altered import altered
from procedo.core.model import Sop
from procedo.errors import InvalidSop, NotFound
from procedo.sopfile.check import check_library, check_procedure
from procedo.sopfile.checked import Checked
from procedo.sopfile.definition import HEADER_FILE, Reading, read_files
from procedo.sopfile.folder import Found, Signature, find_procedures, has_settled, read_texts, signature
from procedo.sopfile.problems import Findings, Problem
from procedo.sopfile.surroundings import Surroundings

__all__ = ["Entry", "Library"]


class Entry(Struct, frozen=True):
    """A procedure in the catalogue. `sop` is None when it has errors; `files` are what a run pins."""

    name: str
    folder: Path
    sop: Sop | None
    problems: tuple[Problem, ...]
    files: Mapping[str, str]


class Library:
    """Every procedure below one folder. A broken one stays, with its problems; it never vanishes."""

    def __init__(self, root: Path, surroundings: Callable[[], Surroundings]) -> None:
        self._root = root
        self._surroundings = surroundings
        self._kept: tuple[Signature, Surroundings, tuple[Entry, ...]] | None = None

    @property
    def root(self) -> Path:
        """The folder that is read."""
        return self._root

    @property
    def surroundings(self) -> Callable[[], Surroundings]:
        """What the procedures are checked against."""
        return self._surroundings

    def could_hold(self, name: str) -> bool:  # noqa: ARG002  # here any name may come to be
        """True when a procedure of that name would be seen here, also when there is none yet."""
        return True

    def entries(self) -> tuple[Entry, ...]:
        """Every procedure, by name; files that changed since the last call are read again."""
        around, now = self._surroundings(), time.time_ns()
        seen = signature(self._root)
        if self._kept is not None and self._kept[:2] == (seen, around):
            return self._kept[2]
        entries = _read_library(self._root, around)
        # What cannot be read today may be tomorrow, and no time of a file tells of it.
        lasting = has_settled(seen, now) and not any(_unreadable(entry) for entry in entries)
        self._kept = (seen, around, entries) if lasting else None
        return entries

    def find(self, name: str) -> Entry:
        """The procedure of that name, broken ones included. Raises `NotFound` with near names and the folder."""
        entries = self.entries()
        found = next((entry for entry in entries if entry.name == name), None)
        if found is not None:
            return found
        names = [entry.name for entry in entries]
        near = _near(name, names)
        meant = f"Did you mean {' or '.join(near)}? " if near else ""
        known = (
            f"Known are: {', '.join(names)}."
            if names
            else "The folder holds no procedure; `procedo new NAME` adds one."
        )
        message = f"There is no procedure {name!r} in {self._root}."
        raise NotFound("unknown_sop", message, f"{meant}{known}", near)

    def get(self, name: str) -> Entry:
        """A usable procedure. Raises `NotFound` as `find`, and `InvalidSop` with the problems of a broken one."""
        found = self.find(name)
        if found.sop is None:
            problems = [str(problem) for problem in found.problems if problem.severity == "error"]
            message = f"Procedure {name!r} in {found.folder} has {len(problems)} error(s): {'; '.join(problems[:3])}."
            raise InvalidSop("invalid_sop", message, f"Run `procedo check {name}`.", problems)
        return found


def _unreadable(entry: Entry) -> bool:
    return any(problem.code == "unreadable-file" for problem in entry.problems)


def _near(name: str, names: list[str]) -> list[str]:
    """Close names; blanks, dashes and underscores make no difference."""
    forms = {_form(known): known for known in names}
    return [forms[form] for form in difflib.get_close_matches(_form(name), forms, n=3, cutoff=0.6)]


def _form(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter not in "-_ .")


class _Draft(Struct, frozen=True):
    """A procedure while the library is read."""

    found: Found
    files: Mapping[str, str]
    findings: Findings
    reading: Reading

    def entry(self) -> Entry:
        sop = self.reading.sop
        usable = None if self.findings.failed else sop
        name = sop.name if sop is not None else self.found.name
        return Entry(name, self.found.folder, usable, self.findings.problems(), self.files)


def _read(found: Found) -> _Draft:
    findings = Findings(f"{found.folder}/")
    texts = read_texts(found, findings)
    if not texts and not findings.failed:
        findings.add("missing-header", HEADER_FILE, 0, "SOP.toml is missing", "it holds [sop], name and description")
    reading = read_files(texts, found.name, findings) if texts else Reading(None, None)
    return _Draft(found, texts, findings, reading)


def _read_library(root: Path, around: Surroundings) -> tuple[Entry, ...]:
    drafts = [_read(found) for found in find_procedures(root)]
    checked: list[Checked] = []
    for draft in drafts:
        if draft.reading.sop is not None and draft.reading.source is not None:
            checked.append(Checked(draft.reading.sop, draft.reading.source, draft.findings))
    names = frozenset(one.sop.name for one in checked)
    if around.sops is None:
        around = altered(around, sops=names)
    for one in checked:
        check_procedure(one, around)
    check_library(checked)
    return tuple(sorted((draft.entry() for draft in drafts), key=lambda entry: (entry.name, str(entry.folder))))
