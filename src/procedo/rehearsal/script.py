"""The script of a rehearsal: TOML text becomes cases, or one error that lists everything that is wrong in it."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from procedo.core.model import Json
from procedo.core.state import Phase, Status, Verdict
from procedo.errors import BadArgument, InvalidSop
from procedo.sopfile.problems import nearest

__all__ = ["Answer", "Case", "Expected", "Report", "read_script"]

REPORTED: Final = {"completed": Phase.COMPLETED, "failed": Phase.FAILED, "skipped": Phase.SKIPPED}
_MISSING: Final = object()
_MAX_BYTES: Final = 1_048_576


@dataclass(frozen=True, slots=True)
class Report:
    """What the performer of a step says, be it the host, the server or an agent. `late`: nothing, until it is due.

    `step` is a number or an id; `sop` names a sub-procedure whose step it is.
    """

    step: int | str
    status: Phase = Phase.COMPLETED
    output: Json = None
    late: bool = False
    sop: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person answers at the gate of a step. `late`: nothing, until the gate is due."""

    step: int | str
    verdict: Verdict = Verdict.APPROVE
    value: Json = None
    comment: str = ""
    by: str = "rehearsal"
    late: bool = False
    sop: str | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """What is to come of a case; what is None is not looked at. `path` holds step numbers or execution ids."""

    status: Status | None = None
    path: tuple[int | str, ...] | None = None
    gates: tuple[int | str, ...] | None = None
    reason: str | None = None
    output: Json = None
    has_output: bool = False
    outputs: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Case:
    """One walk through the procedure."""

    name: str
    inputs: Json = None
    reports: tuple[Report, ...] = ()
    answers: tuple[Answer, ...] = ()
    expected: Expected = Expected()


class _Reading:
    """Takes keys out of a table and notes everything that does not fit."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.problems: list[str] = []

    def note(self, where: str, message: str, hint: str = "") -> None:
        self.problems.append(f"{self.file}: {where}: {message}" + (f" ({hint})" if hint else ""))

    def known(self, where: str, table: Mapping[str, Any], *keys: str) -> None:
        for key in table:
            if key not in keys:
                near = nearest(key, keys)
                self.note(
                    where, f"unknown key {key!r}", f"did you mean {near!r}?" if near else f"known: {', '.join(keys)}"
                )

    def take(self, where: str, table: Mapping[str, Any], key: str, kind: type | tuple[type, ...], default: Any) -> Any:
        value = table.get(key, _MISSING)
        if value is _MISSING:
            return default
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            names = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
            self.note(where, f"{key} is to be {names}, got {value!r}")
            return default
        return value

    def word(self, where: str, table: Mapping[str, Any], key: str, words: Mapping[str, Any], default: Any) -> Any:
        value = self.take(where, table, key, str, None)
        if value is None:
            return default
        if value not in words:
            self.note(where, f"{key} {value!r} is no known word", f"one of {', '.join(words)}")
            return default
        return words[value]

    def tables(self, where: str, table: Mapping[str, Any], key: str) -> list[tuple[str, dict[str, Any]]]:
        found: Sequence[Any] = self.take(where, table, key, list, [])
        kept = []
        for place, item in enumerate(found, 1):
            if isinstance(item, dict):
                kept.append((f"{where}, {key} {place}", item))
            else:
                self.note(where, f"{key} {place} is to be a table, got {item!r}")
        return kept

    def step(self, where: str, table: Mapping[str, Any]) -> int | str:
        found: int | str | None = self.take(where, table, "step", (int, str), None)
        if found is None:
            self.note(where, "there is no step", 'write step = 3, or step = "its-id"')
            return 0
        return found


def _report(reading: _Reading, where: str, table: Mapping[str, Any]) -> Report:
    reading.known(where, table, "step", "status", "output", "late", "sop")
    return Report(
        step=reading.step(where, table),
        status=reading.word(where, table, "status", REPORTED, Phase.COMPLETED),
        output=table.get("output"),
        late=reading.take(where, table, "late", bool, False),
        sop=reading.take(where, table, "sop", str, None),
    )


def _answer(reading: _Reading, where: str, table: Mapping[str, Any]) -> Answer:
    reading.known(where, table, "step", "answer", "value", "comment", "by", "late", "sop")
    return Answer(
        step=reading.step(where, table),
        verdict=reading.word(where, table, "answer", {v.value: v for v in Verdict}, Verdict.APPROVE),
        value=table.get("value"),
        comment=reading.take(where, table, "comment", str, ""),
        by=reading.take(where, table, "by", str, "rehearsal"),
        late=reading.take(where, table, "late", bool, False),
        sop=reading.take(where, table, "sop", str, None),
    )


def _places(reading: _Reading, where: str, table: Mapping[str, Any], key: str) -> tuple[int | str, ...] | None:
    found = reading.take(where, table, key, list, None)
    if found is None:
        return None
    if not all(isinstance(item, int | str) and not isinstance(item, bool) for item in found):
        reading.note(where, f'{key} is to list step numbers, ids or executions such as "2.1"')
        return None
    return tuple(found)


def _expected(reading: _Reading, where: str, table: Mapping[str, Any]) -> Expected:
    reading.known(where, table, "status", "path", "gates", "reason", "output", "outputs")
    finals = {status.value: status for status in Status}
    return Expected(
        status=reading.word(where, table, "status", finals, None),
        path=_places(reading, where, table, "path"),
        gates=_places(reading, where, table, "gates"),
        reason=reading.take(where, table, "reason", str, None),
        output=table.get("output"),
        has_output="output" in table,
        outputs=reading.take(where, table, "outputs", dict, {}),
    )


def _case(reading: _Reading, place: int, table: Mapping[str, Any]) -> Case:
    name = reading.take(f"case {place}", table, "name", str, f"case {place}")
    where = f"case {name!r}"
    reading.known(where, table, "name", "inputs", "reports", "gates", "expect")
    expect = reading.take(where, table, "expect", dict, {})
    if not expect:
        reading.note(where, "nothing is expected of it", 'write expect = { status = "completed", path = [1, 2] }')
    return Case(
        name=name,
        inputs=table.get("inputs"),
        reports=tuple(_report(reading, at, item) for at, item in reading.tables(where, table, "reports")),
        answers=tuple(_answer(reading, at, item) for at, item in reading.tables(where, table, "gates")),
        expected=_expected(reading, f"{where}, expect", expect),
    )


def _text(file: Path) -> str:
    try:
        data = file.read_bytes()
        if len(data) > _MAX_BYTES:
            raise BadArgument("too_large", f"{file} is larger than {_MAX_BYTES} bytes.", "Split it into several files.")
        return data.decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise BadArgument("bad_argument", f"{file} cannot be read: {reason}.", "Name a readable TOML file.") from error


def read_script(file: Path) -> tuple[Case, ...]:
    """The cases of a file. Raises `InvalidSop` with every problem, `BadArgument` when it cannot be read."""
    reading = _Reading(file)
    try:
        table = tomllib.loads(_text(file))
    except tomllib.TOMLDecodeError as error:
        raise InvalidSop("bad_test", f"{file} is no TOML: {error}.", "Correct it there.") from error
    reading.known("the file", table, "case")
    found = [item for _, item in reading.tables("the file", table, "case")]
    cases = tuple(_case(reading, place, item) for place, item in enumerate(found, 1))
    names = [case.name for case in cases]
    for name in sorted({name for name in names if names.count(name) > 1}):
        reading.note(f"case {name!r}", "the name stands twice")
    if not cases:
        reading.note("the file", "there is no case", "begin one with [[case]]")
    if reading.problems:
        many = f"{len(reading.problems)} problems" if len(reading.problems) > 1 else "1 problem"
        raise InvalidSop("bad_test", f"{file} has {many}.", "Correct them first.", reading.problems)
    return cases
