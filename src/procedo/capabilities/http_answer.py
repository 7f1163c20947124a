"""What is kept of a web host's answer: status, a few headers, and the body as JSON or as text, bounded."""

import json
from typing import TYPE_CHECKING, Final, NoReturn

from procedo.core.model import Json

if TYPE_CHECKING:
    from httpx2 import Response

__all__ = ["UnusableBody", "answer", "short_body"]

_KEPT: Final = ("content-type", "etag", "last-modified", "link", "location", "retry-after", "x-request-id")
_SHORT: Final = 500


class UnusableBody(Exception):
    """The body is larger than allowed, or packed although that was not asked for."""


async def answer(response: "Response", limit: int) -> Json:
    """The result of a call. Raises `UnusableBody`."""
    data = await _read(response, limit)
    headers = {name: response.headers[name] for name in _KEPT if name in response.headers}
    result: dict[str, Json] = {"status": response.status_code, "headers": headers}
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json" or kind.endswith("+json"):
        try:
            return {**result, "json": _parsed(data)}
        except ValueError:
            pass  # it claims to be JSON and is none: handed on as the text that it is
    return {**result, "body": _text(response, data)}


async def short_body(response: "Response") -> str:
    """The beginning of a body, for an error message; nothing when it is packed."""
    if _coding(response) != "identity":
        return ""
    kept = b""
    async for chunk in response.aiter_raw():
        kept += chunk
        if len(kept) >= _SHORT:
            break
    return " ".join(_text(response, kept[:_SHORT]).split())


def _coding(response: "Response") -> str:
    return str(response.headers.get("content-encoding", "identity")).strip().lower()


async def _read(response: "Response", limit: int) -> bytes:
    # Unpacking could turn a small answer into a huge one, so none is asked for and none is taken.
    if (coding := _coding(response)) != "identity":
        raise UnusableBody(f"the body is packed as {coding!r}, although that was not asked for")
    declared = response.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit and response.request.method != "HEAD":
        raise UnusableBody(f"the body has {declared} bytes, more than the {limit} allowed")
    data = bytearray()
    async for chunk in response.aiter_raw():
        data += chunk
        if len(data) > limit:
            raise UnusableBody(f"the body has more than the {limit} bytes allowed")
    return bytes(data)


def _text(response: "Response", data: bytes) -> str:
    try:
        return data.decode(response.charset_encoding or "utf-8", errors="replace")
    except LookupError:  # an encoding that nobody knows
        return data.decode("utf-8", errors="replace")


def _parsed(data: bytes) -> Json:
    """The JSON value; `ValueError` for what no other JSON reader would take, or no store could keep."""

    def refuse(word: str) -> NoReturn:
        raise ValueError(f"{word} is no JSON")

    try:
        value = json.loads(data, parse_constant=refuse)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    json.dumps(value, ensure_ascii=False, allow_nan=False).encode()  # half a surrogate pair is a ValueError
    return value
