"""What changed between two presentations of a gate, line by line."""

import difflib
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from procedo.core.model import Json
from procedo.surfaces.web.words import blocks

__all__ = ["Line", "difference"]

_CONTEXT: Final = 3
_LONGEST: Final = 2_000
"""Comparing takes time that grows with the square of the lines."""


class Line(Struct, frozen=True):
    """One line: `kind` is added, removed, same or gap."""

    kind: str
    text: str


def difference(before: Json, after: Json) -> tuple[Line, ...]:
    """The lines that differ, with some around them; empty when nothing differs, or when it is too long to compare."""
    old, new = _text(before), _text(after)
    if old == new or len(old) + len(new) > _LONGEST:
        return ()
    return tuple(_lines(old, new))


def _text(value: Json) -> list[str]:
    """The lines of a value; the texts in an object are broken into their own lines."""
    return [
        text for block in blocks(value) for text in (*([block.name] if block.name else []), *block.text.splitlines())
    ]


def _lines(old: list[str], new: list[str]) -> Iterator[Line]:
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for number, group in enumerate(matcher.get_grouped_opcodes(_CONTEXT)):
        if number:
            yield Line("gap", "")
        for tag, old_from, old_to, new_from, new_to in group:
            if tag == "equal":
                yield from (Line("same", text) for text in old[old_from:old_to])
                continue
            yield from (Line("removed", text) for text in old[old_from:old_to])
            yield from (Line("added", text) for text in new[new_from:new_to])
