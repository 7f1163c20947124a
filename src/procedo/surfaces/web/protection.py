"""What every answer of the page carries and every request has to pass, whatever it is about.

Pure ASGI, so that a stream of events is passed through as it comes.
"""

from collections.abc import Collection
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Protection", "hosts_of"]

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=()",
    "cache-control": "no-store",
}


def hosts_of(origins: Collection[str]) -> frozenset[str]:
    """The Host headers that belong to these origins."""
    return frozenset(urlsplit(origin).netloc for origin in origins)


class Protection:
    """Lets requests pass that were made for one of our own origins, and adds the headers to each answer.

    `origins` are the addresses at which people reach this server, as `scheme://host:port`. A page of another
    site can name us as its target but not as the host that it looked up, nor as the origin of its form.
    """

    def __init__(self, app: ASGIApp, origins: Collection[str]) -> None:
        self._app = app
        self._origins = frozenset(origins)
        self._hosts = hosts_of(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        objection = self._objection(scope["method"], Headers(scope=scope))
        await (objection or self._app)(scope, receive, guarded)

    def _objection(self, method: str, headers: Headers) -> PlainTextResponse | None:
        if headers.get("host", "") not in self._hosts:
            return PlainTextResponse("This server is not reached under that name.\n", 421)
        if method in ("GET", "HEAD"):
            return None
        origin = headers.get("origin")
        if origin is not None and origin not in self._origins:
            return PlainTextResponse("Forms of other sites are not taken here.\n", 403)
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return PlainTextResponse("Forms of other sites are not taken here.\n", 403)
        return None
