"""Which bullets of a step are fields, which are text, and which are mistakes.

A bullet whose text begins with a known key directly followed by a colon is that field. One that begins
with nearly such a key and a colon is a problem: another case, dashes for underscores, the name that the
field has in `SOP.toml`, a usual mistake (`reference.MISTAKEN`), or a slip of the pen: one letter for
keys from five letters, two for keys from nine, two letters swapped. Words in `reference.ORDINARY` and
everything else are text: `- note: bring gloves`.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from procedo.sopfile.reference import BULLETS, MISTAKEN, ORDINARY, STEP, is_extension

__all__ = ["field_of", "meant"]

_KEY: Final = re.compile(r"([A-Za-z][A-Za-z0-9_-]*):")
_NEAR: Final = re.compile(r"([A-Za-z][A-Za-z0-9 ._-]{0,40}?)\s*:(?!//)")


def field_of(text: str) -> tuple[str, str] | None:
    """The known key (or `x-` extension) that a bullet's text begins with, and the rest; None when it has none."""
    found = _KEY.match(text)
    if found is None or not (found.group(1) in BULLETS or is_extension(found.group(1))):
        return None
    return found.group(1), text[found.end() :]


def meant(text: str) -> str | None:
    """The key that a bullet's text nearly begins with, or None when it is text."""
    found = _NEAR.match(text)
    return _meant(found.group(1)) if found else None


def _form(word: str) -> str:
    return word.strip().casefold().replace("-", "_").replace(" ", "_")


def _forms() -> Mapping[str, str]:
    """The key to write, by every form that means it."""
    forms = {_form(bullet): field.bullets[0] for bullet, field in BULLETS.items()}
    for name, field in STEP.items():
        if field.bullets:
            forms[_form(name)] = field.bullets[0]
            forms.setdefault(_form(name.rsplit(".", 1)[-1]), field.bullets[0])
    return MappingProxyType({**MISTAKEN, **forms})


_FORMS: Final = _forms()


@lru_cache(maxsize=4096)
def _meant(word: str) -> str | None:
    form = _form(word)
    if form in ORDINARY:
        return None
    if form in _FORMS:
        return _FORMS[form]
    return next((key for known, key in _FORMS.items() if known not in MISTAKEN and _slip(form, known)), None)


def _slip(word: str, key: str) -> bool:
    if abs(len(word) - len(key)) > 2 or len(key) < 4:
        return False
    if len(key) < 5:
        return _swapped(word, key) or (len(word) != len(key) and _distance(word, key, 1) <= 1)
    allowed = 1 if len(key) < 9 else 2
    return _swapped(word, key) or _distance(word, key, allowed) <= allowed


def _swapped(word: str, key: str) -> bool:
    different = [at for at in range(min(len(word), len(key))) if word[at] != key[at]]
    if len(word) != len(key) or len(different) != 2 or different[1] != different[0] + 1:
        return False
    first, second = different
    return word[first] == key[second] and word[second] == key[first]


def _distance(word: str, key: str, most: int) -> int:
    """The edit distance, or a greater number than `most`."""
    row = list(range(len(key) + 1))
    for at, letter in enumerate(word, 1):
        above, row = row, [at]
        for to, other in enumerate(key, 1):
            row.append(min(row[-1] + 1, above[to] + 1, above[to - 1] + (letter != other)))
        if min(row) > most:
            return most + 1
    return row[-1]
