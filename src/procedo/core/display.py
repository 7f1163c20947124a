"""Pieces of text for people, models and terminals: foreign text is cleaned, and cut for display. Pure."""

import json
from datetime import UTC, datetime

from procedo.core.characters import plain
from procedo.core.model import Json

__all__ = ["capped", "compact", "line", "stamp"]


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
