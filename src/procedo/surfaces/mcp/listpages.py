"""Lists of procedures in pages: a library may have hundreds.

A cursor names the item that a page ended with, so that one which comes or goes meanwhile shifts nothing.
"""

import base64
import binascii
from collections.abc import Iterable
from typing import Final, TypeVar

from procedo.errors import BadArgument

__all__ = ["MOST", "paged"]

T = TypeVar("T")
MOST: Final = 100
"""The most items of a page."""


def paged(items: Iterable[tuple[str, T]], cursor: str | None) -> tuple[list[T], str | None]:
    """The items behind a cursor, by their keys, and the cursor of the next page. Raises `BadArgument`."""
    after = "" if cursor is None else _read(cursor)
    left = sorted((pair for pair in items if pair[0] > after), key=lambda pair: pair[0])
    page = left[:MOST]
    further = base64.urlsafe_b64encode(page[-1][0].encode("utf-8", "surrogatepass")).decode() if left[MOST:] else None
    return [item for _, item in page], further


def _read(cursor: str) -> str:
    try:
        return base64.b64decode(cursor, b"-_", validate=True).decode("utf-8", "surrogatepass")
    except (binascii.Error, ValueError) as error:
        message = f"{cursor[:40]!r} is no cursor of a list."
        raise BadArgument("bad_cursor", message, "Send none, or the nextCursor of the page before.") from error
