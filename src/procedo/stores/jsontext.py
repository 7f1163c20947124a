"""JSON values and times as the texts that are stored."""

import json
from datetime import UTC, datetime
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quoted
from typing import Final

from procedo.core.model import Json
from procedo.errors import StoreError

__all__ = ["canonical", "instant", "moment", "parsed", "quoted", "text", "unreadable"]

# Plain ASCII: a text that holds half a surrogate pair is legal in JSON, and SQLite could not keep it.
_TEXT: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False, default=dict)
_CANONICAL: Final = json.JSONEncoder(
    separators=(",", ":"), allow_nan=False, check_circular=False, sort_keys=True, default=dict
)


def _written(encoder: json.JSONEncoder, value: Json) -> str:
    try:
        return encoder.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        message = f"A value cannot be kept, because it is no JSON: {error}."
        raise StoreError("not_json", message, "Numbers must be finite, keys text, nesting moderate.") from error


def text(value: Json) -> str:
    """The compact JSON text of a value, its keys in their own order."""
    return _written(_TEXT, value)


def canonical(value: Json) -> str:
    """The one JSON text of a value for hashing: sorted keys, no blanks, ASCII."""
    return _written(_CANONICAL, value)


def parsed(stored: str) -> Json:
    """The value of a stored text."""
    try:
        return json.loads(stored)
    except (TypeError, ValueError, RecursionError) as error:
        raise unreadable(f"it is no JSON: {error}") from error


@lru_cache(maxsize=512)  # a transition writes the same time several times
def moment(value: datetime) -> str:
    """A time as fixed-width UTC text, so that the order of texts is the order of times."""
    if value.tzinfo is not UTC:
        if value.tzinfo is None:
            raise StoreError("naive_time", f"The time {value.isoformat()} has no time zone.", "Times are UTC.")
        value = value.astimezone(UTC)
    return value.isoformat(timespec="microseconds")[:26] + "Z"


def instant(stored: str) -> datetime:
    """The time of a stored text."""
    try:
        value = datetime.fromisoformat(stored)
    except (TypeError, ValueError) as error:
        raise unreadable(f"{stored!r} is no time") from error
    if value.tzinfo is None:
        raise unreadable(f"the time {stored!r} has no time zone")
    return value


def unreadable(reason: str) -> StoreError:
    """The error for a stored record that cannot be understood."""
    hint = "It was changed from outside, or written by a newer procedo: run `procedo audit verify`, or update."
    return StoreError("unreadable_record", f"A stored record cannot be read: {reason}.", hint)
