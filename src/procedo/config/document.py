"""`procedo.toml` as text becomes checked values and problems, by the table of keys alone.

Nothing is guessed: an unknown key or table and a value of another form are problems with their line.
What several keys mean together is judged in `policies` and `loading`.
"""

import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final, TypeAlias

from msgspec import Struct, field

from procedo.config.agent_keys import not_here
from procedo.config.forms import name as name_form
from procedo.config.keys import KEYS, Key, default
from procedo.core.model import Json
from procedo.tomlplace import Places, locate, syntax_problem

__all__ = ["FILE_NAME", "Document", "TablePath", "read"]

FILE_NAME: Final = "procedo.toml"
TablePath: TypeAlias = tuple[str | int, ...]

_TABLES: Final[Mapping[str, Mapping[str, Key]]] = {
    table: {key.name: key for key in KEYS if key.table == table} for table in {key.table for key in KEYS}
}


class Document(Struct):
    """The values that were read, where they stand, and every problem so far."""

    places: Places = field(default_factory=lambda: Places({}))
    values: dict[TablePath, Json] = field(default_factory=dict)
    tables: set[TablePath] = field(default_factory=set)
    broken: set[TablePath] = field(default_factory=set)
    problems: list[tuple[int, str]] = field(default_factory=list)

    def value(self, table: str, name: str, *chosen: str | int) -> Json:
        """The value of a key, or its default.

        `chosen` are, from left to right, the names that stand for `<…>` and the positions that stand for
        `[]` in the table's name.
        """
        return self.values.get((*_filled(table, chosen), name), default(table, name))

    def stated(self, table: str, name: str, *chosen: str | int) -> bool:
        """True when the file itself gives the key a usable value."""
        return (*_filled(table, chosen), name) in self.values

    def broke(self, table: str, name: str, *chosen: str | int) -> bool:
        """True when the file's value could not be used: judging the default instead would add a false problem."""
        return (*_filled(table, chosen), name) in self.broken

    def names(self, table: str) -> tuple[str, ...]:
        """The names that the user chose for `<…>` at the end of this table's name, in the order of the file."""
        above = tuple(table.split("."))[:-1]
        chosen = [path for path in self.tables if len(path) == len(above) + 1 and path[:-1] == above]
        return tuple(str(path[-1]) for path in sorted(chosen, key=lambda path: self.places.line(*path)))

    def count(self, table: str, *chosen: str | int) -> int:
        """How many tables a list of tables (`…[]`) has."""
        above = _filled(table.removesuffix("[]"), chosen)
        return sum(path[:-1] == above and isinstance(path[-1], int) for path in self.tables)

    def object_to(self, path: TablePath, code: str, message: str, hint: str) -> None:
        """Note a problem at the place of this key or table."""
        self.note(self.places.line(*path), code, message, hint)

    def note(self, line: int, code: str, message: str, hint: str) -> None:
        """Note a problem at this line."""
        self.problems.append((line, f"{FILE_NAME}:{line}: error[{code}]: {message} ({hint})"))


def _filled(table: str, chosen: TablePath) -> TablePath:
    names = iter(chosen)
    path: list[str | int] = []
    for part in table.split("."):
        path.append(next(names) if part.startswith("<") else part.removesuffix("[]"))
        if part.endswith("[]"):
            path.append(next(names))
    return tuple(path)


def read(text: str) -> Document:
    """Read the whole document; problems are collected, never raised."""
    document = Document()
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line, message = syntax_problem(error, text)
        document.note(line, "syntax", f"this is no TOML: {message}", "see https://toml.io for the syntax")
        return document
    except RecursionError:
        document.note(1, "syntax", "values are nested too deeply", "no key of this file needs nesting")
        return document
    document.places = locate(text)
    _read_table(document, raw, (), ())
    return document


def _read_table(document: Document, raw: Mapping[str, Json], path: TablePath, pattern: tuple[str, ...]) -> None:
    keys = _TABLES.get(".".join(pattern), {})
    below = {
        parts[len(pattern)] for parts in _patterns() if len(parts) > len(pattern) and parts[: len(pattern)] == pattern
    }
    if ".".join(pattern) in _TABLES:
        document.tables.add(path)
    for key, value in raw.items():
        here = (*path, key)
        if key in keys:
            _read_value(document, here, keys[key], value)
        elif (part := _part_for(key, below)) is None:
            _object_to_unknown(document, here, pattern, {*keys, *below}, is_table=isinstance(value, dict))
        elif part.endswith("[]"):
            _read_list(document, value, here, (*pattern, part))
        elif not isinstance(value, dict):
            hint = f"write it as a table of its own: [{_dotted(here)}]"
            document.object_to(here, "wrong-type", f"{key!r} has to be a table, got {_kind(value)}", hint)
        else:
            if part.startswith("<"):
                _check_name(document, here, raw)
            _read_table(document, value, here, (*pattern, part))
    for key, wanted in keys.items():
        if wanted.required and key not in raw:
            hint = f"add {key}: {wanted.form.words}"
            document.broken.add((*path, key))
            document.object_to(path, "missing-key", f"[{_dotted(path)}] lacks {key!r}", hint)


def _read_list(document: Document, value: Json, path: TablePath, pattern: tuple[str, ...]) -> None:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        message = f"{path[-1]!r} has to be a list of tables, got {_kind(value)}"
        document.object_to(path, "wrong-type", message, f"write each one as a table of its own: [[{_dotted(path)}]]")
        return
    for number, item in enumerate(value):
        _read_table(document, item, (*path, number), pattern)


def _dotted(path: TablePath) -> str:
    return ".".join(str(part) for part in path if isinstance(part, str))


def _patterns() -> list[tuple[str, ...]]:
    return [tuple(table.split(".")) for table in _TABLES]


def _part_for(key: str, below: set[str]) -> str | None:
    if key in below:
        return key
    if f"{key}[]" in below:
        return f"{key}[]"
    return next((part for part in below if part.startswith("<")), None)


def _read_value(document: Document, path: TablePath, key: Key, value: Json) -> None:
    try:
        document.values[path] = key.form.read(value)
    except ValueError as error:
        document.broken.add(path)
        shown = "(not shown)" if key.form.masked else _short(value)
        message = f"{_dotted(path)} = {shown} cannot be used"
        document.object_to(path, "bad-value", message, str(error))


def _check_name(document: Document, path: TablePath, siblings: Mapping[str, Json]) -> None:
    try:
        name_form().read(path[-1])
    except ValueError as error:
        document.object_to(path, "bad-name", f"{path[-1]!r} is no usable name", str(error))
    alike = [other for other in siblings if other != path[-1] and other.casefold() == str(path[-1]).casefold()]
    if alike:
        hint = "choose names that differ in more than upper and lower case"
        document.object_to(path, "name-collision", f"{path[-1]!r} and {alike[0]!r} read alike", hint)


def _object_to_unknown(
    document: Document, path: TablePath, pattern: tuple[str, ...], known: set[str], *, is_table: bool
) -> None:
    key, table = str(path[-1]), _dotted(path[:-1])
    known = {name.removesuffix("[]") for name in known}
    where = f"in [{table}]" if table else "at the top of the file"
    homes = sorted({other.table for other in KEYS if other.name == key and not is_table})
    if told := not_here(".".join(pattern), key):
        hint = told
    elif is_table and (elsewhere := sorted(_tables_called(key))):
        hint = f"write it as [{'] or ['.join(elsewhere)}]"
    elif near := get_close_matches(key, sorted(name for name in known if not name.startswith("<")), n=1):
        hint = f"did you mean {near[0]!r}?"
    elif homes:
        hint = f"it belongs in [{'] or ['.join(homes)}]"
    else:
        hint = f"known here: {', '.join(sorted(known))}"
    document.object_to(path, "unknown-key", f"unknown key {key!r} {where}", hint)


def _tables_called(name: str) -> set[str]:
    """The full names of the tables whose own name this is, below the top of the file."""
    ways = [[part.removesuffix("[]") for part in pattern] for pattern in _patterns()]
    return {".".join(way[: way.index(name) + 1]) for way in ways if name in way[1:]}


def _kind(value: Json) -> str:
    if isinstance(value, bool):
        return "true or false"
    for kind, words in ((str, "text"), (list, "a list"), (dict, "a table"), (int, "a number"), (float, "a number")):
        if isinstance(value, kind):
            return words
    return "a date or time"


def _short(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
