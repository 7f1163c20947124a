"""Pieces of text for people, models and terminals: foreign text is cleaned, and cut for display. Pure."""

import json
import unicodedata
from datetime import UTC, datetime
from typing import Final

from procedo.core.frames import plain
from procedo.core.model import Json

__all__ = ["TREACHEROUS", "capped", "compact", "line", "spelled_out", "stamp"]

TREACHEROUS: Final = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs"})
"""The categories of characters that can make a text look like something it is not: controls, formats such as
direction overrides and what has no width, line separators, lone surrogates."""


class _Spelling(dict[int, str]):
    """What stands for each character, found when it is met."""

    def __init__(self, kept: str) -> None:
        super().__init__((ord(c), c) for c in kept)

    def __missing__(self, number: int) -> str:
        c = chr(number)
        self[number] = json.dumps(c)[1:-1] if unicodedata.category(c) in TREACHEROUS else c
        return self[number]


def spelled_out(text: str, kept: str = "") -> str:
    r"""The text with its treacherous characters, but for the `kept` ones, as JSON spells them: `\u001b`.

    So the strings of a JSON text keep their values.
    """
    return text if text.isprintable() else text.translate(_Spelling(kept))


def line(text: str, limit: int = 300) -> str:
    """Foreign text on one line: cleaned, blanks joined, cut at `limit` characters."""
    text = " ".join(plain(text).split())
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def stamp(moment: datetime) -> str:
    """The moment as UTC text, to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def compact(value: Json) -> str:
    """The value as JSON on one line, in the characters that it has."""
    return json.dumps(value, ensure_ascii=False)


def capped(value: Json, limit: int) -> Json:
    """The value when its JSON has at most `limit` characters, else an object with its size and its beginning.

    For display only. The result is always whole JSON.
    """
    text = compact(value)
    if len(text) <= limit:
        return value
    head = value if isinstance(value, str) else text
    return {"cut": True, "characters": len(text), "beginning": head[:limit]}
