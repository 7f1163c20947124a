"""One ASGI application out of its parts: health, console, MCP."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from starlette.applications import Starlette
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from procedo.access.tokens import Tokens
from procedo.errors import StoreError
from procedo.ports import Store
from procedo.surfaces.web.doors import BASE
from procedo.surfaces.web.protection import Protection
from procedo.surfaces.web.site import PLACES

__all__ = ["HEALTH_PATHS", "Front", "Health", "OpenDoor", "guarded"]

HEALTH_PATHS: Final = frozenset({"/health", "/ready"})

_JSON: Final = {"cache-control": "no-store"}
_PATIENCE_S: Final = 2.0
"""How long the store may be locked by somebody before that is told, in seconds."""
_FRESH: Final = timedelta(seconds=5)
"""How long it counts that the disk took something: whoever asks all the time must not make it write all the time."""


def guarded(pages: list[Route], origins: tuple[str, ...]) -> Protection:
    """The console behind its protection."""
    return Protection(Starlette(routes=pages), origins)


class Health:
    """`/health`: the process answers. `/ready`: it takes work, and the store takes records. Nothing tells of a run."""

    def __init__(self, store: Store, stopping: asyncio.Event, now: Callable[[], datetime]) -> None:
        self._store = store
        self._stopping = stopping
        self._now = now
        self._written_at: datetime | None = None
        self._looking: asyncio.Task[str] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["method"] in ("GET", "HEAD"):
            response = await self._answer(scope["path"])
        else:
            response = Response(status_code=405, headers={"allow": "GET, HEAD"})
        await response(scope, receive, send)

    async def _answer(self, path: str) -> Response:
        if path == "/ready":
            reason = await self._unready()
            if reason:
                return JSONResponse({"status": "unavailable", "reason": reason}, 503, _JSON)
        return JSONResponse({"status": "ok"}, headers=_JSON)

    async def _unready(self) -> str:
        """Why nothing should be sent here now; empty when there is no reason."""
        if self._stopping.is_set():
            return "stopping"
        # Those who ask while the store is locked wait for one look together, and do not queue up behind it.
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        done, _ = await asyncio.wait({self._looking}, timeout=_PATIENCE_S)
        return self._looking.result() if done else "store_busy"

    async def _look(self) -> str:
        # A full disk gives the lock, and takes nothing: only what is written tells.
        now = self._now()
        fresh = self._written_at is not None and timedelta(0) <= now - self._written_at < _FRESH
        try:
            await self._store.write(lambda writer: None if fresh else writer.touch())
        except StoreError as error:
            self._written_at = None
            return error.code
        if not fresh:
            self._written_at = now
        return ""


class OpenDoor:
    """Guards an MCP endpoint that takes calls without tokens: once there are tokens, nobody comes in without."""

    def __init__(self, app: ASGIApp, tokens: Tokens) -> None:
        self._app = app
        self._tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and await self._tokens.any():
            text = "Tokens were made since this server started without any; it takes them after a restart."
            body = {"error": "invalid_token", "error_description": text}
            headers = {"www-authenticate": f'Bearer error="invalid_token", error_description="{text}"', **_JSON}
            await JSONResponse(body, 401, headers)(scope, receive, send)
            return
        await self._app(scope, receive, send)


class Front:
    """Sends each request to its part; what no part knows goes to MCP, which also owns the start and the end.

    `beside` are further parts by their whole path.
    """

    def __init__(
        self, mcp: ASGIApp, page: ASGIApp, health: Health, beside: Mapping[str, ASGIApp] = MappingProxyType({})
    ) -> None:
        self._mcp = mcp
        self._page = page
        self._health = health
        self._beside = beside

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the lifespan."""
        path = scope.get("path", "")
        if scope["type"] != "http":
            await self._mcp(scope, receive, send)
        elif path in HEALTH_PATHS:
            await self._health(scope, receive, send)
        elif path in self._beside:
            await self._beside[path](scope, receive, send)
        elif any(path == place or path.startswith(f"{place}/") for place in PLACES):
            await self._page(scope, receive, send)
        elif path == "/":
            await RedirectResponse(BASE, 303)(scope, receive, send)
        else:
            await self._mcp(scope, receive, send)
