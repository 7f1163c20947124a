"""Times as people write them: `90`, `"15m"`, `"1h30m"`."""

import math
import re
from typing import Final

from procedo.core.model import Json

__all__ = ["UNITS", "in_words", "seconds"]

UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
"""Each unit in seconds."""

_PART: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*", re.ASCII)


def seconds(value: Json) -> float:
    """The length in seconds of a number of seconds, or of text such as `"2h"` or `"1h 30m"`.

    Raises `ValueError` with what was expected.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        if value < 0 or not math.isfinite(value):
            raise ValueError("expected seconds, not negative and finite")
        return float(value)
    if not isinstance(value, str):
        raise ValueError('expected seconds as a number, or text such as "30s", "15m", "2h"')
    text, total, at = value.strip(), 0.0, 0
    while at < len(text) and (part := _PART.match(text, at)):
        total += float(part[1]) * UNITS[part[2]]
        at = part.end()
    if not text or at < len(text):
        raise ValueError('expected a number with a unit (ms, s, m, h, d) such as "30s", "15m", "1h30m"')
    return total


def in_words(length_s: float) -> str:
    """A length in seconds as people read it: `1 h 30 min`, `45 s`."""
    parts = []
    left = length_s
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if left >= size:
            parts.append(f"{int(left // size)} {unit}")
            left %= size
    if left or not parts:
        parts.append(f"{left:g} s")
    return " ".join(parts)
