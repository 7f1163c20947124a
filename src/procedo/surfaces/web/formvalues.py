"""Reading a form: the JSON value that the texts of its fields stand for, or what cannot be read, at its field.

Nothing is validated here beyond what has to be read: the schema is checked where runs are started.

A field is sent under its kind and the place of its value: `v/address/street` is the text of a field, `j/address` JSON
instead of a field, `n/items` the number of rows, `o/address` further properties as JSON.
"""

import json
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from msgspec import Struct, field

from procedo.core.model import Json
from procedo.surfaces.web.fields import Choice, Field, Group, Lines, Number, Raw, Rows, Text
from procedo.surfaces.web.words import shown

__all__ = ["ABSENT", "MOST_ROWS", "Entries", "Reading", "below", "parsed", "read", "rows_of"]

Entries = Mapping[str, str]
ABSENT: Final = object()
"""The value of a property that is not given."""
MOST_ROWS: Final = 50
_INTEGER: Final = re.compile(r"[+-]?\d+")
_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


class Reading(Struct):
    """What a form says: the value, what could not be read by its place, and the names that were looked at.

    `touched` when anything was put into the fields at all.
    """

    value: Json = ABSENT
    touched: bool = False
    problems: dict[str, str] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)


def below(at: str, key: str | int) -> str:
    """The place of a part of the value at `at`, which is empty for the whole."""
    part = str(key).replace("~", "~0").replace("/", "~1")
    return f"{at}/{quote(part, safe='~', errors='surrogatepass')}"


def read(asked: Field, sent: Entries, at: str = "") -> Reading:
    """The value of a field as it was sent."""
    found = Reading()
    if f"j{at}" in sent or isinstance(asked, Raw):
        _read_json(sent, at, found)
        return found
    match asked:
        case Group():
            _read_group(asked, sent, at, found)
        case Rows():
            _read_rows(asked, sent, at, found)
        case Lines():
            _read_lines(asked, sent, at, found)
        case _:
            _read_one(asked, sent, at, found)
    if found.value is ABSENT and asked.required and asked.nullable and not found.problems:
        found.value = None
    return found


def _text(sent: Entries, name: str, found: Reading) -> str:
    """A text as it was typed: browsers send each line break as two characters."""
    found.names.add(name)
    text = sent.get(name, "").replace("\r\n", "\n").replace("\r", "\n")
    found.touched = found.touched or bool(text)
    return text


def _read_json(sent: Entries, at: str, found: Reading) -> None:
    text = _text(sent, f"j{at}", found)
    if not text.strip():
        return
    try:
        found.value = parsed(text)
    except ValueError as error:
        found.problems[at] = f"This is no JSON: {error}."


def _read_one(asked: Field, sent: Entries, at: str, found: Reading) -> None:
    text = _text(sent, f"v{at}", found)
    if isinstance(asked, Text) and asked.rows:
        text = text.rstrip("\n")
    if not text or (isinstance(asked, Number) and not text.strip()):
        return
    try:
        match asked:
            case Number():
                found.value = _number(text)
            case Choice():
                found.value = parsed(text)
            case _:
                found.value = text
    except ValueError:
        told = "Choose one of these." if isinstance(asked, Choice) else _no_number(text)
        found.problems[at] = told


def _no_number(text: str) -> str:
    return f"Write a number in digits, such as 12; this is “{shown(text[:60])}”."


def _read_lines(asked: Lines, sent: Entries, at: str, found: Reading) -> None:
    entries: list[Json] = []
    wrong: list[str] = []
    for number, line in enumerate(_text(sent, f"v{at}", found).split("\n"), 1):
        if not line.strip():
            continue
        try:
            entries.append(_entry(line, asked.item))
        except ValueError:
            told = "write true or false" if asked.item == "boolean" else "write a number in digits"
            wrong.append(f"Line {number}: {told}; this is “{shown(line[:60])}”.")
    if wrong:
        found.problems[at] = " ".join(wrong[:5])
    elif entries or (asked.required and not asked.nullable):
        found.value = entries


def _entry(line: str, kind: str) -> Json:
    if kind == "string":
        return line
    if kind == "boolean":
        return {"true": True, "false": False}[line.strip()] if line.strip() in ("true", "false") else parsed("")
    return _number(line)


def _read_group(asked: Group, sent: Entries, at: str, found: Reading) -> None:
    value: dict[str, Json] = {}
    for one in asked.fields:
        inner = read(one, sent, below(at, one.key))
        _take(inner, found)
        if inner.value is not ABSENT:
            value[one.key] = inner.value
    if asked.others:
        _read_others(value, sent, at, found)
    if found.touched or (asked.required and not asked.nullable):
        found.value = value


def _read_others(value: dict[str, Json], sent: Entries, at: str, found: Reading) -> None:
    text = _text(sent, f"o{at}", found)
    if not text.strip():
        return
    place = f"{at}#others"
    try:
        others = parsed(text)
    except ValueError as error:
        found.problems[place] = f"This is no JSON: {error}."
        return
    if not isinstance(others, dict):
        found.problems[place] = 'Write an object: {"name": "value"}.'
    elif twice := [name for name in others if name in value]:
        found.problems[place] = f"{shown(', '.join(twice))} has a field of its own: give it once."
    else:
        value.update(others)


def _read_rows(asked: Rows, sent: Entries, at: str, found: Reading) -> None:
    found.names.add(f"n{at}")
    value: list[Json] = []
    for number in range(rows_of(sent, at)):
        inner = read(asked.item, sent, below(at, number))
        _take(inner, found)
        found.touched = True
        value.append(None if inner.value is ABSENT else inner.value)
    if value or (asked.required and not asked.nullable):
        found.value = value


def rows_of(sent: Entries, at: str) -> int:
    """How many rows of a list were sent."""
    text = sent.get(f"n{at}", "")
    return min(int(text), MOST_ROWS) if text.isascii() and text.isdecimal() and len(text) < 5 else 0


def _take(inner: Reading, found: Reading) -> None:
    found.problems |= inner.problems
    found.names |= inner.names
    found.touched = found.touched or inner.touched


def _number(text: str) -> Json:
    """A number as it is written: 1.0 stays what it is, and the schema says whether it is an integer."""
    text = text.strip()
    if _INTEGER.fullmatch(text) and text.isascii():
        return int(text)
    if not _NUMBER.fullmatch(text) or not text.isascii():
        raise ValueError
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError
    return number


def parsed(text: str) -> Json:
    """JSON in which nothing is silently lost. Raises `ValueError` in words."""
    try:
        return json.loads(text, parse_constant=_no_constant, parse_int=_whole, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} at line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _no_constant(word: str) -> Json:
    raise ValueError(f"{word} is no JSON value")


def _whole(digits: str) -> int:
    try:
        return int(digits)
    except ValueError as error:
        raise ValueError("a number has too many digits") from error


def _once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("an object names a property twice")
    return value
