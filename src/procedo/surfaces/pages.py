"""Long values and long lists in pages: each page says where it stands, and how the next one is had."""

from collections.abc import Iterable
from typing import Final, NotRequired, TypedDict

from msgspec import Struct

from procedo.core.display import compact
from procedo.core.model import Json
from procedo.errors import BadArgument

__all__ = ["DEFAULT_CHARS", "Page", "Span", "further", "listed", "paged", "span"]

DEFAULT_CHARS: Final = 24_000
MOST_CHARS: Final = 200_000


class Span(Struct, frozen=True):
    """Which part is wanted: from `start` (a character, or an item of a list), about `chars` characters."""

    start: int
    chars: int


def _number(name: str, text: str, least: int, most: int) -> int:
    # int() takes signs, blanks, underscores and digits of other scripts as well.
    if not (text.isascii() and text.isdigit()) or not least <= int(text[:12]) <= most:
        message = f"{name} is {text!r}."
        raise BadArgument("bad_page", message, f"It is a whole number from {least} to {most}.")
    return int(text)


def span(start: str = "", chars: str = "", name: str = "cursor") -> Span:
    """The part that an address asks for. Raises `BadArgument`."""
    begin = _number(name, start, 0, 10**9) if start else 0
    return Span(begin, _number("max_chars", chars, 1, MOST_CHARS) if chars else DEFAULT_CHARS)


class Page(TypedDict):
    """A value, whole in `value`, or a `part` of its text with the cursor of the `next` one."""

    value: NotRequired[Json]
    part: NotRequired[str]
    cursor: NotRequired[int]
    characters: NotRequired[int]
    next: NotRequired[str]


def paged(value: Json, wanted: Span, address: str) -> Page:
    """The wanted part of a value. `address` is where it is read, without cursor.

    Raises `BadArgument` for a cursor behind the end.
    """
    text = value if isinstance(value, str) else compact(value)
    if wanted.start == 0 and len(text) <= wanted.chars:
        return {"value": value}
    if wanted.start >= len(text):
        raise BadArgument("bad_page", f"cursor {wanted.start} is behind the end.", f"There are {len(text)} characters.")
    end = wanted.start + wanted.chars
    page: Page = {"part": text[wanted.start : end], "cursor": wanted.start, "characters": len(text)}
    if end < len(text):
        page["next"] = further(address, "cursor", end, wanted)
    return page


def listed(items: Iterable[Json], wanted: Span) -> tuple[list[Json], bool]:
    """As many whole items as fit, at least one; and whether some are left."""
    taken = list[Json]()
    left = wanted.chars
    for item in items:
        left -= len(compact(item))
        if taken and left < 0:
            return taken, True
        taken.append(item)
    return taken, False


def further(address: str, name: str, start: int, wanted: Span) -> str:
    """The address of the next page."""
    mark = "&" if "?" in address else "?"
    size = "" if wanted.chars == DEFAULT_CHARS else f"&max_chars={wanted.chars}"
    return f"{address}{mark}{name}={start}{size}"
