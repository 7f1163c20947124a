"""Reading a form that a page sent."""

import asyncio
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import Request

from procedo.errors import BadArgument

__all__ = ["number_in", "read_form"]

_FORM: Final = "application/x-www-form-urlencoded"
_MOST_FIELDS: Final = 20
_MOST_DIGITS: Final = 12
_PATIENCE_S: Final = 30.0
"""How long a form may take to come: whoever sends one byte now and then keeps no connection for ever."""


def number_in(text: str) -> int | None:
    """A number as our pages write it into addresses and forms, or None for everything else, however long."""
    written = text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
    return int(text) if written else None


async def _body(request: Request, limit: int) -> bytes:
    body = bytearray()
    try:
        async with asyncio.timeout(_PATIENCE_S):
            async for part in request.stream():
                body += part
                if len(body) > limit:
                    message = f"The form has more than {limit} bytes; nothing was changed."
                    raise BadArgument("too_large", message, "Shorten your text.")
    except TimeoutError as error:
        message = f"The form did not come within {_PATIENCE_S:g} seconds; nothing was changed."
        raise BadArgument("too_slow", message, "Send it again.") from error
    return bytes(body)


async def read_form(request: Request, limit: int, most: int = _MOST_FIELDS) -> Mapping[str, str]:
    """The fields of a form with at most `limit` bytes and `most` fields.

    Raises `BadArgument`, also for a field that is sent twice.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _FORM:
        raise BadArgument("bad_form", f"A form is sent as {_FORM}, not as {kind or 'nothing'}.", "Use the page.")
    body = await _body(request, limit)
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=most, errors="strict")
    except ValueError as error:
        raise BadArgument("bad_form", f"The form cannot be read: {error}.", "Use the page.") from error
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise BadArgument("bad_form", "The form names a field twice.", "Use the page.")
    return fields
