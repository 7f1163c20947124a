"""Which bullets of a step are fields, which are text, and which are mistakes.

A bullet whose text begins with a known key directly followed by a colon is that field. One that begins
with nearly such a key and a colon, or with such a key and an equals sign, is a problem: another case, dashes
for underscores, the name that the field has in `SOP.toml`, a usual mistake (`reference.MISTAKEN`), or a slip
of the pen: one letter for keys from five letters, two for keys from nine, two letters swapped. Words in
`reference.ORDINARY` and everything else are text: `- note: bring gloves`.

A line without a dash is a field that lost it when its key is no ordinary word (`depends_on`), or when its
value is one that the field takes: `timeout: 5m` is, `next: open the valve` is not.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from procedo.sopfile.reference import BULLETS, MISTAKEN, ORDINARY, STEP, Type, is_extension
from procedo.sopfile.valueforms import Unreadable
from procedo.sopfile.values import from_bullet

__all__ = ["dashless", "field_of", "meant"]

_KEY: Final = re.compile(r"([A-Za-z][A-Za-z0-9_-]*):")
_NEAR: Final = re.compile(r"([A-Za-z][A-Za-z0-9 ._-]{0,40}?)\s*(?::(?!//)|=(?!=))")
_DASHLESS: Final = re.compile(r"\s*([a-z][a-z_-]*)\s*[:=](?![=/])\s*(.*?)\s*")
_FREE: Final = frozenset({Type.TEXT, Type.JSON})
_PLAIN: Final[Mapping[Type, re.Pattern[str]]] = MappingProxyType(
    {
        Type.NAME: re.compile(r"[\w.:/-]+"),
        Type.LIST: re.compile(r"[\w.:/*-]+(\s*,\s*[\w.:/*-]+)*"),
        Type.CONDITION: re.compile(r".*([=!<>]=|[<>]).*"),
        Type.VERIFY: re.compile(r".*([=!<>]=|[<>]).*|capability:.*"),
        Type.SCHEMA: re.compile(r"\{.*"),
    }
)
"""What a value looks like where the field would take nearly any text."""


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


def dashless(line: str) -> str | None:
    """The key to write when a line of text is a field without its dash, or None."""
    found = _DASHLESS.fullmatch(line)
    key = _FORMS.get(_form(found.group(1))) if found else None
    if found is None or key is None:
        return None
    if found.group(1) in BULLETS and ("_" in key or "-" in key):
        return key
    kind, value = BULLETS[key].type, found.group(2)
    if kind in _FREE or not value or (kind in _PLAIN and not _PLAIN[kind].fullmatch(value)):
        return None
    try:
        from_bullet(kind, value)
    except Unreadable:
        return None
    return key


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
