"""TOML text of plain values: what `tomllib` reads back as the same."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

from procedo.core.model import Json

__all__ = ["inline", "key", "pair", "table"]

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def key(name: str) -> str:
    """A key, in quotes where it needs them."""
    return name if _BARE.fullmatch(name) else _quoted(name)


def inline(value: Json) -> str:
    """A value on one line. Raises `ValueError` for null, which TOML does not have."""
    match value:
        case None:
            raise ValueError("TOML has no null")
        case bool():
            return "true" if value else "false"
        case str():
            return _quoted(value)
        case int() | float():
            return repr(value)
        case Mapping():
            return "{ " + ", ".join(f"{key(name)} = {inline(item)}" for name, item in value.items()) + " }"
        case _:
            return "[" + ", ".join(inline(item) for item in value) + "]"


def pair(name: str, value: Json) -> str:
    """A line `name = value`; a text of several lines keeps them."""
    if isinstance(value, str) and "\n" in value:
        return f'{key(name)} = """\n' + "\n".join(map(_line, value.split("\n"))) + '"""'
    return f"{key(name)} = {inline(value)}"


def _line(text: str) -> str:
    escaped = _escaped(text)
    plain = escaped.replace('\\"', '"') == text and '""' not in text and not text.endswith('"')
    return text if plain else escaped


def table(path: tuple[str, ...], values: Mapping[str, Json]) -> Iterator[str]:
    """The lines of a table, with the tables inside it below; the first line is its header."""
    inner = {name: value for name, value in values.items() if isinstance(value, Mapping) and value}
    headed = len(inner) < len(values) or not values
    if headed:
        yield f"[{'.'.join(key(part) for part in path)}]"
        yield from (pair(name, value) for name, value in values.items() if name not in inner)
    for number, (name, value) in enumerate(inner.items()):
        if headed or number:
            yield ""
        yield from table((*path, name), value)


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1].replace("\x7f", "\\u007F")


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'
