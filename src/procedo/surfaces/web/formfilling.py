"""Filling a form with a value, with defaults, and with more or fewer rows. `formvalues` tells how fields are named.

Whatever value fills a form, the form that is sent unchanged gives this value again: a field that cannot show its
value as it is (an empty text, a control character, a list entry with a line break) shows it as JSON instead.
"""

import json
import re
from collections.abc import Iterator, Mapping

from procedo.core.model import Json
from procedo.surfaces.web.fields import Choice, Field, Group, Lines, Number, Rows, Text
from procedo.surfaces.web.formvalues import ABSENT, MOST_ROWS, Entries, below, read, rows_of
from procedo.surfaces.web.words import shown

__all__ = ["filled", "prefilled", "with_row", "without_row"]


def filled(asked: Field, value: Json, at: str = "") -> dict[str, str]:
    """The entries that show a value. A field that cannot show it shows JSON."""
    if value is ABSENT:
        return {}
    entries = _attempt(asked, value, at)
    if entries is not None and _same(read(asked, entries, at).value, value):
        return entries
    return {f"j{at}": _json_text(value)}


def _attempt(  # noqa: PLR0911  # one for each kind of field
    asked: Field, value: Json, at: str
) -> dict[str, str] | None:
    """The entries of the field itself, or None."""
    if value is None and asked.nullable:
        return {}
    match asked:
        case Text() if isinstance(value, str):
            return {f"v{at}": value} if _plain(value, broken=bool(asked.rows)) else None
        case Number() if isinstance(value, int | float) and not isinstance(value, bool):
            return {f"v{at}": json.dumps(value)}
        case Choice():
            return {f"v{at}": _option(value)} if _option(value) in map(_option, asked.options) else None
        case Lines() if isinstance(value, list):
            texts = [item if isinstance(item, str) else json.dumps(item) for item in value]
            return {f"v{at}": "\n".join(texts)} if all(_plain(text, broken=False) for text in texts) else None
        case Rows() if isinstance(value, list) and len(value) <= MOST_ROWS:
            return {f"n{at}": str(len(value))} | _parts(
                enumerate(value), at, dict.fromkeys(range(len(value)), asked.item)
            )
        case Group() if isinstance(value, dict):
            fields = {one.key: one for one in asked.fields}
            others = {name: item for name, item in value.items() if name not in fields}
            more = {f"o{at}": _json_text(others)} if others else {}
            return more | _parts(((n, i) for n, i in value.items() if n in fields), at, fields)
        case _:
            return None


def _parts(
    parts: "Iterator[tuple[str | int, Json]] | enumerate[Json]", at: str, fields: Mapping[Json, Field]
) -> dict[str, str]:
    entries: dict[str, str] = {}
    for key, item in parts:
        entries |= filled(fields[key], item, below(at, key))
    return entries


def _plain(text: str, *, broken: bool) -> bool:
    """True when a field shows this text as it is, and a browser sends it as it is."""
    return shown(text) == text and "\r" not in text and (broken or "\n" not in text)


def _same(one: Json, other: Json) -> bool:
    """Equality of JSON: true is not 1, and 1 is not 1.0."""
    return one is not ABSENT and json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _option(value: Json) -> str:
    """What a choice sends."""
    return json.dumps(value, sort_keys=True)


def _json_text(value: Json) -> str:
    """JSON for reading and changing; what does not show itself is escaped, which only texts can hold."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return "".join(c if c == "\n" or shown(c) == c else json.dumps(c)[1:-1] for c in text)


def prefilled(asked: Field, at: str = "") -> dict[str, str]:
    """The entries of a form that nobody has touched: the defaults, and as many rows as are needed.

    A default inside an object that may be left out is not filled in: the object would be given by it.
    """
    if asked.has_default:
        return filled(asked, asked.schema["default"], at)
    entries: dict[str, str] = {}
    if isinstance(asked, Rows) and asked.fewest:
        entries[f"n{at}"] = str(min(asked.fewest, MOST_ROWS))
        for number in range(min(asked.fewest, MOST_ROWS)):
            entries |= prefilled(asked.item, below(at, number))
    if isinstance(asked, Group) and asked.required:
        for one in asked.fields:
            entries |= prefilled(one, below(at, one.key))
    return entries


# --- rows ----------------------------------------------------------------------------------------


def with_row(asked: Field, sent: Entries, at: str) -> dict[str, str]:
    """The entries with one more row in the list at this place."""
    rows, count = _rows_at(asked, at), rows_of(sent, at)
    if rows is None or count >= MOST_ROWS:
        return dict(sent)
    return {**sent, f"n{at}": str(count + 1), **prefilled(rows.item, below(at, count))}


def without_row(sent: Entries, at: str, row: int) -> dict[str, str]:
    """The entries without a row; those that follow it move up."""
    left: dict[str, str] = {}
    for name, text in sent.items():
        inside = re.fullmatch(rf"([vjno]){re.escape(at)}/(\d+)((?:/.*)?)", name, re.DOTALL)
        number = int(inside[2]) if inside else -1
        if inside is None or number < row:
            left[name] = text
        elif number > row:
            left[f"{inside[1]}{at}/{number - 1}{inside[3]}"] = text
    left[f"n{at}"] = str(max(0, rows_of(sent, at) - 1))
    return left


def _rows_at(asked: Field, wanted: str, at: str = "") -> Rows | None:
    """The list whose place is `wanted`."""
    if at == wanted:
        return asked if isinstance(asked, Rows) else None
    match asked:
        case Group():
            steps = ((one, below(at, one.key)) for one in asked.fields)
            return next(
                (_rows_at(one, wanted, place) for one, place in steps if f"{wanted}/".startswith(f"{place}/")), None
            )
        case Rows():
            number = re.match(r"/\d+", wanted[len(at) :])
            return None if number is None else _rows_at(asked.item, wanted, at + number[0])
        case _:
            return None
