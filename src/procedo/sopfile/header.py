"""Reads `SOP.toml`: the header, triggers, positions, inputs, and steps where they stand there."""

import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from msgspec import Struct

from procedo.core.model import Json
from procedo.sopfile.comments import read_comments
from procedo.sopfile.problems import Findings, nearest
from procedo.sopfile.reference import EVENTS, HEADER, POSITION_KEYS, STEP, TABLES, TRIGGERS, Field, Type, is_extension
from procedo.sopfile.source import Mark, SopSource, StepSource, TriggerSource
from procedo.sopfile.valueforms import Unreadable, plain_json
from procedo.sopfile.values import from_toml
from procedo.tomlplace import Path, Places, locate, syntax_problem

__all__ = ["read_header"]

_BY_TIMEOUT: Final = ("auto_approve", "approve_on_timeout", "approval_timeout_action", "approval_timeout_secs")


def read_header(text: str, file: str, findings: Findings) -> SopSource | None:
    """The definition that a `SOP.toml` holds; None when it is no TOML at all."""
    try:
        document = tomllib.loads(text)
        plain_json(document)
    except Unreadable as error:
        findings.add("toml-syntax", file, 1, error.message)
        return None
    except tomllib.TOMLDecodeError as error:
        findings.add("toml-syntax", file, *syntax_problem(error, text))
        return None
    except RecursionError:
        findings.add("toml-syntax", file, 1, "values are nested too deeply to be read")
        return None
    places = locate(text)
    source = _Reader(file, places, findings, text.split("\n")).document(document)
    return replace(source, comments=read_comments(text, document, places.lines))


class _Reader(Struct, frozen=True):
    """Reads one document; everything wrong goes to `findings` with its line."""

    file: str
    places: Places
    findings: Findings
    lines: Sequence[str]

    def document(self, document: Mapping[str, Json]) -> SopSource:
        self._unknown_keys(document, TABLES, (), "the file")
        header = document.get("sop", {})
        if not isinstance(header, dict) or "sop" not in document:
            hint = "begin the file with [sop], name and description"
            self._add("missing-sop-table", (), "the table [sop] is missing", hint)
            header = {}
        inputs = document.get("inputs")
        known = HEADER if header or "sop" in document else {}
        return SopSource(
            header=self._fields(header, known, ("sop",), "[sop]"),
            steps=tuple(self._steps(self._tables(document, "steps"))),
            inputs=None if inputs is None else Mark(plain_json(inputs), self.places.line("inputs")),
            triggers=tuple(self._triggers(self._tables(document, "triggers"))),
            positions=self._positions(self._tables(document, "positions")),
            position_lines=self._position_lines(self._tables(document, "positions")),
            extensions=_extensions(document),
            sop_extensions=_extensions(header),
            markdown=False,
            file=self.file,
        )

    def _add(self, code: str, path: Path, message: str, hint: str = "") -> None:
        self.findings.add(code, self.file, self.places.line(*path), message, hint)

    def _unknown_keys(self, table: Mapping[str, Json], known: Collection[str], path: Path, where: str) -> None:
        for key in table:
            if key in known or is_extension(key):
                continue
            if key in _BY_TIMEOUT:
                hint = "who decides, and by when, is for the workspace's policies"
                self._add("approval-by-timeout", (*path, key), f"{key!r}: a definition cannot decide for people", hint)
                continue
            near = nearest(key, known)
            hint = f"did you mean {near}?" if near else f"known are: {', '.join(known) or 'no keys'}"
            self._add("unknown-key", (*path, key), f"unknown key {key!r} in {where}", hint)

    def _tables(self, document: Mapping[str, Json], name: str) -> list[Mapping[str, Json]]:
        value = document.get(name, [])
        if isinstance(value, list) and all(isinstance(item, dict) for item in value):
            return value
        self._add("bad-value", (name,), f"{name!r} is an array of tables", f"write [[{name}]]")
        return []

    def _fields(self, table: Mapping[str, Json], known: Mapping[str, Field], path: Path, where: str) -> dict[str, Mark]:
        """The fields of a table; dotted names stand in tables below it."""
        below = {name.split(".")[0] for name in known if "." in name}
        own = {name.split(".")[0] for name in known}
        self._unknown_keys(table, sorted(own), path, where)
        found: dict[str, Mark] = {}
        for key in below & table.keys():
            self._below(table[key], key, known, path)
        for name, field in known.items():
            keys = name.split(".")
            value: Json = table
            for key in keys:
                value = value.get(key) if isinstance(value, Mapping) else None
            if value is not None:
                self._field(field, value, (*path, *keys), found)
        for field in known.values():
            if field.required and field.name not in table:
                self._add("missing-key", path, f"{field.name!r} is missing in {where}")
        return found

    def _below(self, value: Json, key: str, known: Mapping[str, Field], path: Path) -> None:
        names = [name.split(".")[1] for name in known if name.startswith(f"{key}.")]
        if isinstance(value, Mapping):
            self._unknown_keys(value, names, (*path, key), f"{key!r}")
        else:
            self._add("bad-value", (*path, key), f"{key!r} is a table", f"it has {', '.join(names)}")

    def _field(self, field: Field, value: Json, path: Path, found: dict[str, Mark]) -> None:
        try:
            read = from_toml(field.type, value)
        except Unreadable as error:
            self._add(error.code, path, f"{field.name}: {error.message}", error.hint)
            return
        if read is not None:
            found[field.name] = Mark(read, self.places.line(*path))

    def _steps(self, tables: Iterable[Mapping[str, Json]]) -> Iterable[StepSource]:
        for index, table in enumerate(tables):
            path: Path = ("steps", index)
            fields = self._fields(table, STEP, path, f"step {index + 1}")
            number = fields.pop("number", None)
            title, body = fields.pop("title", None), fields.pop("body", None)
            yield StepSource(
                number=(number.value if number else 0) or index + 1,
                title=title.value if title else "",
                body=body.value if body else "",
                fields=fields,
                extensions=_extensions(table),
                file=self.file,
                line=self.places.line(*path),
                body_lines=self._body_lines(body),
            )

    def _body_lines(self, body: Mark | None) -> tuple[int, ...]:
        if body is None:
            return ()
        # A text in three quotes that opens with a line break begins on the line below its key.
        opens = self.lines[body.line - 1].rstrip().endswith(('"""', "'''"))
        first = body.line + opens
        return tuple(range(first, first + body.value.count("\n") + 1))

    def _triggers(self, tables: Iterable[Mapping[str, Json]]) -> Iterable[TriggerSource]:
        for index, table in enumerate(tables):
            path: Path = ("triggers", index)
            kind = table.get("type")
            if not isinstance(kind, str) or kind not in TRIGGERS:
                near = nearest(kind, TRIGGERS) if isinstance(kind, str) else ""
                hint = f"did you mean {near}?" if near else f"known are: {', '.join(TRIGGERS)}"
                self._add("bad-value", (*path, "type"), f"unknown trigger type {kind!r}", hint)
                continue
            known = {key: Field(key, key_type, "") for key, key_type in TRIGGERS[kind].items()}
            rest = {key: value for key, value in table.items() if key != "type"}
            settings = self._fields(rest, known, path, f"a {kind} trigger")
            for key in known:
                if key not in settings and key not in rest and key not in _OPTIONAL:
                    self._add("missing-key", path, f"{key!r} is missing in a {kind} trigger")
            self._events(settings, path)
            values = {key: mark.value for key, mark in settings.items()}
            yield TriggerSource(kind, values, _extensions(table), self.places.line(*path))

    def _events(self, settings: Mapping[str, Mark], path: Path) -> None:
        for word in settings["events"].value if "events" in settings else ():
            if word not in EVENTS:
                hint = f"known are: {', '.join(EVENTS)}"
                self._add("bad-value", (*path, "events"), f"events: unknown event {word!r}", hint)

    def _positions(self, tables: Iterable[Mapping[str, Json]]) -> dict[int, tuple[float, float]]:
        found: dict[int, tuple[float, float]] = {}
        for index, table in enumerate(tables):
            path: Path = ("positions", index)
            self._unknown_keys(table, POSITION_KEYS, path, "a position")
            step = table.get("step")
            try:
                x, y = from_toml(Type.POS, {key: value for key, value in table.items() if key in ("x", "y")})
                found[from_toml(Type.POSITIVE, step)] = (x, y)
            except Unreadable as error:
                self._add(error.code, path, f"position of step {step!r}: {error.message}", error.hint)
        return found

    def _position_lines(self, tables: Iterable[Mapping[str, Json]]) -> dict[int, int]:
        numbers = enumerate(table.get("step") for table in tables)
        return {step: self.places.line("positions", index) for index, step in numbers if isinstance(step, int)}


_OPTIONAL: Final = ("condition", "alias", "events", "calendar_ids", "signal")


def _extensions(table: Mapping[str, Json]) -> dict[str, Json]:
    return {key: plain_json(value) for key, value in table.items() if is_extension(key)}
