"""Foreign text and times as a page shows them. Escaping is the templates' work."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from procedo.core.characters import spelled_out
from procedo.core.model import Json

__all__ = ["Block", "When", "actor", "blocks", "cut", "shown", "when", "written"]

_PRIVATE: Final = frozenset({"Co"})
_JOINERS: Final = "\u200d"
"""Joins the parts of emoji and of letters in some scripts; shows nothing by itself."""
_KEY: Final = re.compile(r"(human|agent|system):(host|cli|web|http|system):(.*)", re.DOTALL)
_DOORS: Final[Mapping[str, str]] = {
    "host": "at the host",
    "cli": "in the terminal",
    "web": "in the console",
    "http": "over HTTP",
    "system": "in the server",
}
_UNITS: Final = ((86_400, "day"), (3_600, "hour"), (60, "minute"))


def shown(text: str) -> str:
    """The text with every invisible and direction-changing character made visible; newlines and tabs stay."""
    return spelled_out(text.replace("\r\n", "\n"), "\n\t" + _JOINERS, lambda c: f"⟨U+{ord(c):04X}⟩", _PRIVATE)


def actor(key: str) -> str:
    """Who acted and at which door, from a principal's key; other words stay as they are."""
    found = _KEY.fullmatch(key)
    if found is None:
        return shown(key)
    kind, source, subject = found.groups()
    if kind == "system":
        return "the server"
    return f"{shown(subject) or 'nobody known'} ({'a model ' if kind == 'agent' else ''}{_DOORS[source]})"


def written(value: Json) -> str:
    """A value for reading: text as it is, everything else as indented JSON."""
    return shown(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2))


class Block(Struct, frozen=True):
    """A part of a value: a name (empty for the whole), and its text. `code` is JSON and not prose."""

    name: str
    text: str
    code: bool


def blocks(value: Json) -> tuple[Block, ...]:
    """A value part by part: the fields of an object, or the whole."""
    if isinstance(value, Mapping) and value:
        return tuple(Block(shown(str(key)), written(item), not isinstance(item, str)) for key, item in value.items())
    if value is None:
        return ()
    return (Block("", written(value), not isinstance(value, str)),)


def cut(text: str, limit: int) -> tuple[str, int]:
    """The beginning of a text, and how many characters were left off."""
    return (text, 0) if len(text) <= limit else (text[:limit], len(text) - limit)


class When(Struct, frozen=True):
    """A moment: for machines, for the eye, and how far away it is."""

    iso: str
    text: str
    ago: str


def _span(seconds: float) -> str:
    left = max(0, round(seconds))
    for size, unit in _UNITS:
        if left >= size:
            number = left // size
            return f"{number} {unit}{'s' if number > 1 else ''}"
    return "a moment"


def when(moment: datetime, now: datetime) -> When:
    """A moment as seen from now."""
    moment = moment.astimezone(UTC)
    seconds = (now - moment).total_seconds()
    ago = f"{_span(seconds)} ago" if seconds > -1 else f"in {_span(-seconds)}"
    return When(moment.strftime("%Y-%m-%dT%H:%M:%SZ"), moment.strftime("%d %b %Y, %H:%M UTC"), ago)
