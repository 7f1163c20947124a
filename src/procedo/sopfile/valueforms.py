"""What every reader of values shares: the error, step references, durations, counts, plain JSON."""

import json
import re
from collections.abc import Callable
from datetime import date, time
from typing import Final, TypeAlias

from procedo.core.model import Json
from procedo.duration import seconds

__all__ = [
    "DEEPEST",
    "ID",
    "Reference",
    "Unreadable",
    "count",
    "duration",
    "plain_json",
    "read_json",
    "reference",
    "told",
]

Reference: TypeAlias = "int | str"
ID: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")

DEEPEST: Final = 64
"""How deep a value may be nested."""

_LONGEST: Final = 10 * 366 * 86400


class Unreadable(ValueError):
    """A value that a field cannot take; `code` is that of the problem."""

    def __init__(self, message: str, hint: str = "", code: str = "bad-value") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code


def reference(value: Json) -> Reference:
    """A step reference: a number from 1, or an id. Raises `Unreadable`."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    text = value.strip() if isinstance(value, str) else ""
    if text.isascii() and text.isdigit() and int(text) > 0:
        return int(text)
    if ID.fullmatch(text):
        return text
    raise Unreadable(f"expected a step number or id, got {told(value)}")


def duration(value: Json) -> float:
    """Seconds. Raises `Unreadable`."""
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        value = int(value)
    try:
        length = seconds(value)
    except ValueError as error:
        raise Unreadable(f"expected a duration, got {told(value)}", "write 90s, 15m, 2h, 1d, or seconds") from error
    if not 0 < length <= _LONGEST:
        raise Unreadable(f"{told(value)} is no usable duration", "more than 0 and at most ten years")
    return length


def plain_json(value: Json, depth: int = 0) -> Json:
    """A TOML or JSON value as plain JSON: dates and times become their text. Raises `Unreadable` when too deep."""
    if depth > DEEPEST:
        raise Unreadable(f"values are nested more than {DEEPEST} levels deep")
    if isinstance(value, dict):
        return {key: plain_json(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [plain_json(item, depth + 1) for item in value]
    return value.isoformat() if isinstance(value, date | time) else value


def read_json(text: str) -> Json:
    """A JSON text. Raises `ValueError` when it is none, `Unreadable` when it is too deep."""
    try:
        return plain_json(json.loads(text))
    except RecursionError as error:
        raise Unreadable(f"values are nested more than {DEEPEST} levels deep") from error


def told(value: Json) -> str:
    """A value as its problems show it: JSON, cut at 60 characters."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def count(least: int) -> Callable[[Json], Json]:
    """A reader of whole numbers from `least`, also as text."""

    def read(value: Json) -> Json:
        if isinstance(value, str) and value.isascii() and value.isdigit():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**53:
            return value
        raise Unreadable(f"expected a whole number, {least} or more, got {told(value)}")

    return read
