"""Values that flow: canonical form, digests, and JSON taken out of a model's prose. Pure."""

import hashlib
import json
from typing import Final

from procedo.core.model import Json, Schema, Violation

__all__ = ["canonical", "digest", "recover"]

_DECODER: Final = json.JSONDecoder()


def canonical(value: Json) -> str:
    """The one text of a JSON value: sorted keys, no blanks, no escapes that are not needed."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Json) -> str:
    """SHA-256 of the canonical text, 32 hex digits of it."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:32]


def _embedded(text: str) -> list[Json]:
    """Every complete JSON object or array that stands in a text, outermost only."""
    found: list[Json] = []
    place = 0
    while (place := _next_opening(text, place)) >= 0:
        try:
            value, place = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError):
            place += 1
        else:
            found.append(value)
    return found


def _next_opening(text: str, place: int) -> int:
    places = [at for at in (text.find("{", place), text.find("[", place)) if at >= 0]
    return min(places, default=-1)


def _decoded(text: str) -> tuple[Json, ...]:
    try:
        return (json.loads(text),)
    except (ValueError, RecursionError):
        return ()


def recover(schema: Schema, reported: Json) -> tuple[Json, tuple[Violation, ...]]:
    """The value that a report means under a schema, and how it breaks the schema if it does.

    A value that fits is kept as it is. A text is searched, once, for the JSON it holds: the text itself,
    the same encoded twice, or the single complete value inside prose or a fence. Two values that fit are
    ambiguous and refused. A schema that asks for a string is never mined.
    """
    broken = schema.violations(reported)
    if not broken or not isinstance(reported, str) or schema.wants_string:
        return reported, broken
    whole = _decoded(reported)
    for value in whole:
        inner = _decoded(value) if isinstance(value, str) else ()
        for candidate in (value, *inner):
            if not schema.violations(candidate):
                return candidate, ()
    candidates = _embedded(reported) if not whole else list(whole)
    if len(candidates) == 1:
        return candidates[0], schema.violations(candidates[0])
    fitting = [value for value in candidates if not schema.violations(value)]
    if len(candidates) > 1 and fitting:
        found = f"{len(candidates)} JSON values in one text"
        return reported, (Violation("", "exactly one JSON value", found),)
    return reported, broken
