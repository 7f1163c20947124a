"""What every group of pages works with: the application, who visits, how refusals are told, and live updates."""

from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeAlias
from urllib.parse import quote

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from procedo.access.permitted import Permitted
from procedo.access.reached import reached
from procedo.access.tokens import Tokens
from procedo.config.settings import Settings
from procedo.errors import NotFound, ProcedoError
from procedo.inbox_address import InboxAddress
from procedo.ports import Clock, Store
from procedo.runs import Runs, Surface
from procedo.sopfile.library import Library
from procedo.surfaces.web.doors import Doors
from procedo.surfaces.web.live import Streams
from procedo.surfaces.web.logins import Visitor
from procedo.surfaces.web.pages import Pages, status_of
from procedo.surfaces.web.words import shown

__all__ = ["ConsoleApp", "Frame", "Handler"]

_ROUTE: Final = "the inbox page"
_FORM_SPARE: Final = 65_536
_ESCAPED: Final = 3
"""A byte of text takes up to three in a form."""
_TITLES: Final = {
    "superseded": "You saw an older version",
    "already_decided": "Somebody else was first",
    "expired": "Too late",
    "withdrawn": "Nothing left to decide",
    "unknown_gate": "No such gate",
    "unknown_run": "No such run",
    "unknown_sop": "No such procedure",
    "no_page": "No such page",
    "not_permitted": "Not permitted",
}

_HINTS: Final = {"unknown_run": "The list of runs shows those that there are.", "unknown_sop": "See the catalogue."}
"""What to do, where the general hint speaks of tools that a person at a page does not have."""

Handler: TypeAlias = Callable[[Request, Visitor], Awaitable[Response]]


class ConsoleApp(Protocol):
    """What the pages need of the application."""

    @property
    def settings(self) -> Settings:
        """The workspace's settings."""

    @property
    def library(self) -> Library:
        """The procedures."""

    @property
    def store(self) -> Store:
        """The store."""

    @property
    def runs(self) -> Runs:
        """The one write path."""

    @property
    def tokens(self) -> Tokens:
        """The credentials."""

    @property
    def clock(self) -> Clock:
        """Time."""

    @property
    def inbox(self) -> InboxAddress:
        """Where the inbox is found, for those who are told about gates."""


class Frame(Struct, frozen=True):
    """Given to each group of pages, which makes its routes with it."""

    app: ConsoleApp
    pages: Pages
    doors: Doors
    streams: Streams

    @property
    def form_limit(self) -> int:
        """The most bytes that a form may have which carries one value of a run."""
        return _ESCAPED * self.app.settings.max_value_bytes + _FORM_SPARE

    def runs(self, visitor: Visitor) -> Runs:
        """The verbs behind the roles of a visitor."""
        return Permitted(self.app.runs, visitor.access)

    def library(self, visitor: Visitor) -> Library:
        """The procedures that there are for a visitor."""
        return reached(self.app.library, visitor.access.reach)

    def surface(self, visitor: Visitor) -> Surface:
        """Where the calls of a visitor come in."""
        return Surface(visitor.access.principal, route=_ROUTE, host=False)

    def route(self, path: str, handler: Handler, *, method: str = "GET", back: str = "", back_text: str = "") -> Route:
        """A page for visitors: others are sent to the login, and what is refused is told on a page.

        `back` and `back_text` make the link of that page; the path's own parameters may stand in `back`.
        """

        async def handle(request: Request) -> Response:
            visitor = await self.doors.visitor(request)
            if visitor is None:
                return self.doors.to_login(request)
            try:
                return await handler(request, visitor)
            except ProcedoError as error:
                return self._refused(error, visitor, request, back, back_text)

        return Route(path, handle, methods=[method])

    def _refused(self, error: ProcedoError, visitor: Visitor, request: Request, back: str, back_text: str) -> Response:
        title = _TITLES.get(error.code, "Nothing was changed")
        more = {}
        if back and not isinstance(error, NotFound):
            names = {name: quote(str(value), safe="") for name, value in request.path_params.items()}
            more = {"link": back.format(**names), "link_text": back_text}
        hint = _HINTS.get(error.code, "") if error.hint.startswith("sop_") else error.hint
        status = status_of(error)
        return self.pages.told(title, shown(error.message), shown(hint), status=status, visitor=visitor, **more)

    def not_yours(self, visitor: Visitor, link: str, link_text: str, *, done: str = "changed") -> Response:
        """The answer to a form that was not made for this session, and by which nothing was `done`."""
        message = f"That form did not come from your own page; nothing was {done}."
        return self.pages.told("Not taken", message, status=403, visitor=visitor, link=link, link_text=link_text)
