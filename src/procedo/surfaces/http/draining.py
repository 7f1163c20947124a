"""Ending well: what comes now is refused with the word to try again, what was begun is answered.

Behind the front every request is counted. When the server is to stop, new ones get 503; requests that have not come
whole, and streams on which only news would come, are cut off; the others have a while to be answered.
"""

from typing import Final

import anyio
from mcp.types import INTERNAL_ERROR
from msgspec import Struct, field
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["STOPPING", "Draining"]

STOPPING: Final = "This server is stopping: nothing was done. Send the same request again."
_AGAIN_S: Final = 1
_BODILESS: Final = frozenset({"GET", "HEAD", "DELETE", "OPTIONS"})


class _Request(Struct, eq=False):
    """A request at work. `whole` once its body has come, `begun` once its answer began, `stream` where none ends."""

    whole: bool
    stream: bool
    begun: bool = False
    ended: bool = False
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    def receiving(self, receive: Receive) -> Receive:
        async def received() -> Message:
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body", False):
                self.whole = True
            return message

        return received

    def sending(self, send: Send) -> Send:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.begun = True
            elif message["type"] == "http.response.body" and not message.get("more_body", False):
                self.ended = True
            await send(message)

        return sent


class Draining:
    """Guards an application until it stops.

    `always` are paths that are served to the end; a GET of those in `endless` is a stream of news; those in `rpc` are
    refused in the form of JSON-RPC.
    """

    def __init__(self, app: ASGIApp, *, always: frozenset[str], endless: frozenset[str], rpc: frozenset[str]) -> None:
        self._app = app
        self._always = always
        self._endless = endless
        self._rpc = rpc
        self._requests = set[_Request]()
        self._stopping = False
        self._idle = anyio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the lifespan."""
        if scope["type"] != "http" or scope["path"] in self._always:
            await self._app(scope, receive, send)
            return
        if self._stopping:
            await self._refused(scope["path"])(scope, receive, send)
            return
        stream = scope["method"] == "GET" and scope["path"] in self._endless
        request = _Request(whole=scope["method"] in _BODILESS, stream=stream)
        self._requests.add(request)
        try:
            with request.scope:
                await self._app(scope, request.receiving(receive), request.sending(send))
            if request.scope.cancelled_caught:
                await self._cut_off(request, scope, receive, send)
        finally:
            self._requests.discard(request)
            if not self._requests:
                self._idle.set()

    async def _cut_off(self, request: _Request, scope: Scope, receive: Receive, send: Send) -> None:
        if not request.begun:
            await self._refused(scope["path"])(scope, receive, send)
        elif not request.ended:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _refused(self, path: str) -> Response:
        headers = {"retry-after": str(_AGAIN_S), "connection": "close", "cache-control": "no-store"}
        if path in self._rpc:
            error = {"code": INTERNAL_ERROR, "message": STOPPING, "data": {"code": "stopping"}}
            return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, 503, headers)
        return Response(f"{STOPPING}\n", 503, headers, "text/plain")

    def stop(self) -> None:
        """Refuse what comes from here on, and cut off what nothing is lost of."""
        self._stopping = True
        for request in list(self._requests):
            if request.stream or not request.whole:
                request.scope.cancel()

    async def drained(self, seconds: float) -> bool:
        """Wait until what was begun is answered; False when that took longer than so many seconds."""
        with anyio.move_on_after(seconds):
            while self._requests:
                self._idle = anyio.Event()
                await self._idle.wait()
        return not self._requests
