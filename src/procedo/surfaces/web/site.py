"""The inbox page: the list, one gate, a decision. No GET changes anything."""

import asyncio
import hashlib
import mimetypes
from collections.abc import Awaitable, Callable, Iterable, Mapping
from importlib import resources
from typing import Final, Protocol, TypeAlias

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from procedo.access.permitted import Permitted
from procedo.access.tokens import Tokens
from procedo.config.settings import Settings
from procedo.core.model import Json
from procedo.core.state import GateKind, Verdict
from procedo.errors import BadArgument, NotFound, ProcedoError
from procedo.inbox_address import InboxAddress
from procedo.ports import Clock, OpenGate, Store
from procedo.runs import Runs, Surface
from procedo.surfaces.overview import inbox_view
from procedo.surfaces.text import compact, line
from procedo.surfaces.web.answers import barred, given_value, given_verdict
from procedo.surfaces.web.code import TerminalCode
from procedo.surfaces.web.doors import BASE, Cookie, Doors
from procedo.surfaces.web.form import read_form
from procedo.surfaces.web.gatepage import gate_page, gate_version
from procedo.surfaces.web.live import Streams
from procedo.surfaces.web.logins import Logins, Visitor
from procedo.surfaces.web.pages import Pages, status_of
from procedo.surfaces.web.throttle import Throttle
from procedo.surfaces.web.words import shown, when

__all__ = ["Inbox", "InboxApp", "inbox"]

_ROUTE: Final = "the inbox page"
_MOST_GATES: Final = 200
_SHORT: Final = 240
_FORM_SPARE: Final = 65_536
_ESCAPED: Final = 3
"""A byte of text takes up to three in a form."""
_FILES: Final = ("inbox.css", "live.js", "icon.svg")

Handler: TypeAlias = Callable[[Request, Visitor], Awaitable[Response]]


class InboxApp(Protocol):
    """What the page needs of the application."""

    @property
    def settings(self) -> Settings:
        """The workspace's settings."""

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
        """Where the page is found, for those who are told about gates."""


def inbox(
    app: InboxApp, code: TerminalCode, *, origin: str, operator: str, stopping: asyncio.Event | None = None
) -> "Inbox":
    """The page for an application. `origin` is where people reach it, `operator` who logs in by terminal code."""
    now = app.clock.now
    pages = Pages(BASE)
    logins = Logins(app.store, app.tokens, code, operator, now)
    doors = Doors(logins, pages, Cookie.at(origin), Throttle(now))
    return Inbox(app, pages, doors, Streams(app.store, stopping or asyncio.Event()))


class Inbox:
    """The handlers of the page."""

    def __init__(self, app: InboxApp, pages: Pages, doors: Doors, streams: Streams) -> None:
        self._app = app
        self._pages = pages
        self._doors = doors
        self._streams = streams
        self._limit = _ESCAPED * app.settings.max_value_bytes + _FORM_SPARE

    def routes(self) -> list[Route]:
        """Every route of the page."""
        files = [Route(f"{BASE}/{name}", _file(name), methods=["GET"]) for name in _FILES]
        return [
            *files,
            *self._doors.routes(),
            Route(BASE, self._seen_by(self.list), methods=["GET"]),
            Route(f"{BASE}/events", self._seen_by(self.events), methods=["GET"]),
            Route(f"{BASE}/gates/{{gate_id}}", self._seen_by(self.gate), methods=["GET"]),
            Route(f"{BASE}/gates/{{gate_id}}", self._seen_by(self.decide), methods=["POST"]),
        ]

    def _seen_by(self, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        """A handler for visitors: others are sent to the login, and what is refused is told on a page."""

        async def handle(request: Request) -> Response:
            visitor = await self._doors.visitor(request)
            if visitor is None:
                return self._doors.to_login(request)
            try:
                return await handler(request, visitor)
            except ProcedoError as error:
                return self._refused(error, visitor, request)

        return handle

    def _refused(self, error: ProcedoError, visitor: Visitor, request: Request) -> Response:
        titles = {
            "superseded": "You saw an older version",
            "already_decided": "Somebody else was first",
            "expired": "Too late",
            "withdrawn": "Nothing left to decide",
            "unknown_gate": "No such gate",
        }
        title = titles.get(error.code, "Nothing was changed")
        back = (
            {"link": request.url.path, "link_text": "Look at the gate as it is now"}
            if "gate_id" in request.path_params
            else {}
        )
        if isinstance(error, NotFound):
            back = {"link": BASE, "link_text": "To the inbox"}
        return self._pages.told(
            title, shown(error.message), shown(error.hint), status=status_of(error), visitor=visitor, **back
        )

    def _runs(self, visitor: Visitor) -> Runs:
        return Permitted(self._app.runs, visitor.access)

    # --- the list ---------------------------------------------------------------------------------

    async def list(self, request: Request, visitor: Visitor) -> Response:
        """The gates that wait: the visitor's own, or all."""
        runs, now = self._runs(visitor), self._app.clock.now()
        everything = request.query_params.get("show") == "all"
        mine = await runs.inbox(_surface(visitor), mine=True)
        found = await runs.inbox(_surface(visitor)) if everything else mine
        looked = [await runs.gate(one.gate.id) for one in found[:_MOST_GATES]]
        looked = [pair for pair in looked if pair[0].gate.open]
        own = {one.gate.id for one in mine}
        entries = [
            {
                **view,
                "title": shown(view["title"]),
                "asks": shown(line(view["asks"], _SHORT)),
                "who": shown(view["may_decide"]),
                "waiting": when(pair[0].gate.waiting_since, now),
                "due": None if pair[0].gate.due_at is None else when(pair[0].gate.due_at, now),
                "mine": pair[0].gate.id in own and barred(pair[1], pair[0].gate, visitor) is None,
                "about": shown(line(_about(view["content"]), _SHORT)),
                "votes": view.get("votes", []),
            }
            for view, pair in zip(inbox_view(looked)["gates"], looked, strict=True)
        ]
        return self._pages.render(
            "inbox.html",
            visitor=visitor,
            version=_version(found),
            everything=everything,
            gates=entries,
            left_off=max(0, len(found) - _MOST_GATES),
            others=0 if everything else len(await runs.inbox(_surface(visitor))) - len(found),
        )

    # --- one gate ---------------------------------------------------------------------------------

    async def gate(self, request: Request, visitor: Visitor) -> Response:
        """One gate, open or decided."""
        return await self._gate_page(request.path_params["gate_id"], visitor)

    async def _gate_page(
        self,
        gate_id: str,
        visitor: Visitor,
        status: int = 200,
        problem: str = "",
        typed: Mapping[str, str] | None = None,
    ) -> Response:
        runs = self._runs(visitor)
        found, _ = await runs.gate(gate_id)
        history = await runs.history(found.run_id)
        values = gate_page(found, history, visitor, self._app.clock.now())
        fields = typed or {}
        more = {"problem": problem, "comment": fields.get("comment", ""), "changed": fields.get("value")}
        return self._pages.render("gate.html", status, **values, **more)

    async def decide(self, request: Request, visitor: Visitor) -> Response:
        """Take an answer. It counts for what was on the page: its gate, run, revision and digest."""
        gate_id = request.path_params["gate_id"]
        form = await read_form(request, self._limit)
        if not visitor.sent(form.get("form_token", "")):
            message = "That answer did not come from your own page; nothing was decided."
            return self._pages.told(
                "Not taken", message, status=403, visitor=visitor, link=request.url.path, link_text="Look at the gate"
            )
        try:
            await self._answer(gate_id, form, visitor)
        except BadArgument as error:
            return await self._gate_page(gate_id, visitor, status_of(error), shown(str(error)), form)
        return RedirectResponse(request.url.path, 303)

    async def _answer(self, gate_id: str, form: Mapping[str, str], visitor: Visitor) -> None:
        runs = self._runs(visitor)
        found, snapshot = await runs.gate(gate_id)
        verdict, comment = given_verdict(form.get("verdict", "")), form.get("comment", "").replace("\r\n", "\n").strip()
        if verdict is Verdict.REVISE and not comment:
            raise BadArgument("missing_guidance", "Say in the comment what the next draft should be like.")
        value: Json = None
        if verdict is Verdict.AMEND:
            value = given_value(snapshot, found.gate, form.get("value", ""))
        if not form.get("revision", "").isdecimal() or not form.get("digest") or not form.get("run"):
            raise BadArgument("bad_form", "The form does not say what it answers.", "Use the page.")
        await runs.decide(
            found.gate.id,
            verdict,
            _surface(visitor),
            value=value,
            comment=comment,
            revision=int(form["revision"]),
            digest=form["digest"],
            run_id=form["run"],
            lasting=found.gate.kind is GateKind.TOOL_CALL and form.get("lasting") == "yes",
        )

    # --- live -------------------------------------------------------------------------------------

    async def events(self, request: Request, visitor: Visitor) -> Response:
        """Versions of the list, or of one gate, as they change."""
        gate_id, everything = request.query_params.get("gate"), request.query_params.get("show") == "all"
        runs = self._runs(visitor)

        async def version() -> str | None:
            if await self._doors.visitor(request) is None:
                return None
            if gate_id:
                found, _ = await runs.gate(gate_id)
                return gate_version(found.gate)
            return _version(await runs.inbox(_surface(visitor), mine=not everything))

        await version()  # a gate that does not exist is told before the stream begins
        return self._streams.stream(version)


def _surface(visitor: Visitor) -> Surface:
    return Surface(visitor.access.principal, route=_ROUTE, host=False)


def _about(content: Json) -> str:
    if isinstance(content, Mapping):
        return "; ".join(f"{key}: {_bare(item)}" for key, item in content.items())
    return "" if content is None else _bare(content)


def _bare(value: Json) -> str:
    return value if isinstance(value, str) else compact(value)


def _version(found: Iterable[OpenGate]) -> str:
    text = " ".join(f"{one.gate.id}/{gate_version(one.gate)}" for one in found)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _file(name: str) -> Callable[[Request], Awaitable[Response]]:
    content = (resources.files("procedo.surfaces.web") / "static" / name).read_bytes()
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"

    async def answer(_: Request) -> Response:
        return Response(content, media_type=kind, headers={"cache-control": "no-cache"})

    return answer
