"""The console: every page, and the files that pages load. No GET changes anything."""

import asyncio
import mimetypes
from collections.abc import Awaitable, Callable
from importlib import resources
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from procedo.errors import NotFound
from procedo.surfaces.drawing import STYLE
from procedo.surfaces.web import cataloguepages, inboxpages, runpages, startform
from procedo.surfaces.web.code import TerminalCode
from procedo.surfaces.web.doors import BASE, Cookie, Doors
from procedo.surfaces.web.frame import ConsoleApp, Frame
from procedo.surfaces.web.live import Streams
from procedo.surfaces.web.logins import Logins, Visitor
from procedo.surfaces.web.pages import Pages
from procedo.surfaces.web.throttle import Throttle

__all__ = ["PLACES", "ConsoleApp", "console"]

PLACES: Final = (BASE, "/runs", "/catalogue")
"""Every path of the console is one of these or lies below one of them."""
_GROUPS: Final[tuple[Callable[[Frame], list[Route]], ...]] = (
    inboxpages.routes,
    runpages.routes,
    startform.routes,
    cataloguepages.routes,
)
_FILES: Final = ("console.css", "catalogue.css", "runs.css", "live.js", "icon.svg")


def console(
    app: ConsoleApp, code: TerminalCode, *, origin: str, operator: str, stopping: asyncio.Event | None = None
) -> list[Route]:
    """The pages for an application. `origin` is where people reach them, `operator` who logs in by terminal code."""
    now = app.clock.now
    pages = Pages(BASE)
    logins = Logins(app.store, app.tokens, code, operator, now)
    doors = Doors(logins, pages, Cookie.at(origin), Throttle(now))
    frame = Frame(app, pages, doors, Streams(app.store, stopping or asyncio.Event()))
    files = [Route(f"{BASE}/{name}", _file(name), methods=["GET"]) for name in _FILES]
    files.append(Route(f"{BASE}/drawing.css", _sent(STYLE.encode(), "text/css"), methods=["GET"]))
    nothing = [frame.route(f"{place}/{{rest:path}}", _nothing) for place in PLACES]
    return [*files, *doors.routes(), *(route for group in _GROUPS for route in group(frame)), *nothing]


async def _nothing(_: Request, __: Visitor) -> Response:
    raise NotFound("no_page", "Nothing is found at this address.", "The navigation leads to everything that there is.")


def _file(name: str) -> Callable[[Request], Awaitable[Response]]:
    content = (resources.files("procedo.surfaces.web") / "static" / name).read_bytes()
    return _sent(content, mimetypes.guess_type(name)[0] or "application/octet-stream")


def _sent(content: bytes, kind: str) -> Callable[[Request], Awaitable[Response]]:
    async def answer(_: Request) -> Response:
        return Response(content, media_type=kind, headers={"cache-control": "no-cache"})

    return answer
