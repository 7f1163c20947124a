"""The script of a rehearsal: TOML text becomes cases, or one error that lists everything that is wrong in it."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any, Final

from msgspec import Struct, field

from procedo.core.model import Json
from procedo.core.state import Phase, Status, Verdict
from procedo.errors import BadArgument, InvalidSop
from procedo.sopfile.problems import nearest
from procedo.tomlplace import Path, Places, locate, syntax_problem

__all__ = ["Answer", "Case", "Expected", "Report", "read_script"]

REPORTED: Final = {"completed": Phase.COMPLETED, "failed": Phase.FAILED, "skipped": Phase.SKIPPED}
_MISSING: Final = object()
_MAX_BYTES: Final = 1_048_576


class Report(Struct, frozen=True):
    """What the performer of a step says, be it the host, the server or an agent. `late`: nothing, until it is due.

    `step` is a number or an id; `sop` names a sub-procedure whose step it is.
    """

    step: int | str
    status: Phase = Phase.COMPLETED
    output: Json = None
    late: bool = False
    sop: str | None = None


class Answer(Struct, frozen=True):
    """What a person answers at the gate of a step. `late`: nothing, until the gate is due."""

    step: int | str
    verdict: Verdict = Verdict.APPROVE
    value: Json = None
    comment: str = ""
    by: str = "rehearsal"
    late: bool = False
    sop: str | None = None


class Expected(Struct, frozen=True):
    """What is to come of a case; what is None is not looked at. `path` holds step numbers or execution ids."""

    status: Status | None = None
    path: tuple[int | str, ...] | None = None
    gates: tuple[int | str, ...] | None = None
    reason: str | None = None
    output: Json = None
    has_output: bool = False
    outputs: Mapping[str, Json] = field(default_factory=dict)


class Case(Struct, frozen=True):
    """One walk through the procedure."""

    name: str
    inputs: Json = None
    reports: tuple[Report, ...] = ()
    answers: tuple[Answer, ...] = ()
    expected: Expected = Expected()


class _At(Struct, frozen=True):
    """A table of the script: how it is called in a message, and the way to it."""

    words: str
    path: Path

    def below(self, words: str, *way: str | int) -> "_At":
        return _At(f"{self.words}, {words}" if self.path else words, (*self.path, *way))


class _Reading:
    """Takes keys out of a table and notes everything that does not fit."""

    def __init__(self, file: FilePath, places: Places) -> None:
        self.file = file
        self.places = places
        self.problems: list[str] = []

    def note(self, at: _At, message: str, hint: str = "", key: str | None = None) -> None:
        line = self.places.line(*at.path, *(() if key is None else (key,)))
        self.problems.append(f"{self.file}:{line}: {at.words}: {message}" + (f" ({hint})" if hint else ""))

    def known(self, at: _At, table: Mapping[str, Any], *keys: str) -> None:
        for key in table:
            if key not in keys:
                near = nearest(key, keys)
                hint = f"did you mean {near!r}?" if near else f"known: {', '.join(keys)}"
                self.note(at, f"unknown key {key!r}", hint, key)

    def take(self, at: _At, table: Mapping[str, Any], key: str, kind: type | tuple[type, ...], default: Any) -> Any:
        value = table.get(key, _MISSING)
        if value is _MISSING:
            return default
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            names = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
            self.note(at, f"{key} is to be {names}, got {value!r}", key=key)
            return default
        return value

    def word(self, at: _At, table: Mapping[str, Any], key: str, words: Mapping[str, Any], default: Any) -> Any:
        value = self.take(at, table, key, str, None)
        if value is None:
            return default
        if value not in words:
            self.note(at, f"{key} {value!r} is no known word", f"one of {', '.join(words)}", key)
            return default
        return words[value]

    def tables(self, at: _At, table: Mapping[str, Any], key: str) -> list[tuple[_At, dict[str, Any]]]:
        found: Sequence[Any] = self.take(at, table, key, list, [])
        kept = []
        for place, item in enumerate(found):
            if isinstance(item, dict):
                kept.append((at.below(f"{key} {place + 1}", key, place), item))
            else:
                self.note(at, f"{key} {place + 1} is to be a table, got {item!r}", key=key)
        return kept

    def step(self, at: _At, table: Mapping[str, Any]) -> int | str:
        found: int | str | None = self.take(at, table, "step", (int, str), None)
        if found is None:
            self.note(at, "there is no step", 'write step = 3, or step = "its-id"')
            return 0
        return found


def _report(reading: _Reading, at: _At, table: Mapping[str, Any]) -> Report:
    reading.known(at, table, "step", "status", "output", "late", "sop")
    return Report(
        step=reading.step(at, table),
        status=reading.word(at, table, "status", REPORTED, Phase.COMPLETED),
        output=table.get("output"),
        late=reading.take(at, table, "late", bool, False),
        sop=reading.take(at, table, "sop", str, None),
    )


def _answer(reading: _Reading, at: _At, table: Mapping[str, Any]) -> Answer:
    reading.known(at, table, "step", "answer", "value", "comment", "by", "late", "sop")
    return Answer(
        step=reading.step(at, table),
        verdict=reading.word(at, table, "answer", {v.value: v for v in Verdict}, Verdict.APPROVE),
        value=table.get("value"),
        comment=reading.take(at, table, "comment", str, ""),
        by=reading.take(at, table, "by", str, "rehearsal"),
        late=reading.take(at, table, "late", bool, False),
        sop=reading.take(at, table, "sop", str, None),
    )


def _places(reading: _Reading, at: _At, table: Mapping[str, Any], key: str) -> tuple[int | str, ...] | None:
    found = reading.take(at, table, key, list, None)
    if found is None:
        return None
    if not all(isinstance(item, int | str) and not isinstance(item, bool) for item in found):
        reading.note(at, f'{key} is to list step numbers, ids or executions such as "2.1"', key=key)
        return None
    return tuple(found)


def _expected(reading: _Reading, at: _At, table: Mapping[str, Any]) -> Expected:
    reading.known(at, table, "status", "path", "gates", "reason", "output", "outputs")
    finals = {status.value: status for status in Status}
    return Expected(
        status=reading.word(at, table, "status", finals, None),
        path=_places(reading, at, table, "path"),
        gates=_places(reading, at, table, "gates"),
        reason=reading.take(at, table, "reason", str, None),
        output=table.get("output"),
        has_output="output" in table,
        outputs=reading.take(at, table, "outputs", dict, {}),
    )


def _case(reading: _Reading, at: _At, table: Mapping[str, Any]) -> Case:
    name = reading.take(at, table, "name", str, at.words)
    at = _At(f"case {name!r}", at.path)
    reading.known(at, table, "name", "inputs", "reports", "gates", "expect")
    expect = reading.take(at, table, "expect", dict, {})
    if not expect:
        reading.note(at, "nothing is expected of it", 'write expect = { status = "completed", path = [1, 2] }')
    return Case(
        name=name,
        inputs=table.get("inputs"),
        reports=tuple(_report(reading, one, item) for one, item in reading.tables(at, table, "reports")),
        answers=tuple(_answer(reading, one, item) for one, item in reading.tables(at, table, "gates")),
        expected=_expected(reading, at.below("expect", "expect"), expect),
    )


def _text(file: FilePath) -> str:
    try:
        data = file.read_bytes()
        if len(data) > _MAX_BYTES:
            raise BadArgument("too_large", f"{file} is larger than {_MAX_BYTES} bytes.", "Split it into several files.")
        return data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise BadArgument("bad_argument", f"{file} cannot be read: {reason}.", "Name a readable TOML file.") from error


def read_script(file: FilePath) -> tuple[Case, ...]:
    """The cases of a file. Raises `InvalidSop` with every problem, `BadArgument` when it cannot be read."""
    text = _text(file)
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line, message = syntax_problem(error, text)
        raise InvalidSop("bad_test", f"{file}:{line} is no TOML: {message}.", "Correct it there.") from error
    except RecursionError as error:
        raise InvalidSop("bad_test", f"{file} is nested too deeply.", "No case needs that.") from error
    reading, top = _Reading(file, locate(text)), _At("the file", ())
    reading.known(top, table, "case")
    found = reading.tables(top, table, "case")
    cases = tuple(_case(reading, at, item) for at, item in found)
    names = [case.name for case in cases]
    for place, (at, _) in enumerate(found):
        if names[place] in names[:place]:
            reading.note(_At(f"case {names[place]!r}", at.path), "the name stands twice", key="name")
    if not cases:
        reading.note(top, "there is no case", "begin one with [[case]]")
    if reading.problems:
        many = f"{len(reading.problems)} problems" if len(reading.problems) > 1 else "1 problem"
        raise InvalidSop("bad_test", f"{file} has {many}.", "Correct them first.", reading.problems)
    return cases
