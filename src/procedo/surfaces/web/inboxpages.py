"""The inbox: the gates that wait, one gate, a decision. No GET changes anything."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from procedo.core.model import Json
from procedo.core.state import GateKind, Verdict
from procedo.errors import BadArgument
from procedo.ports import OpenGate
from procedo.surfaces.overview import inbox_view
from procedo.surfaces.redaction import masked
from procedo.surfaces.text import compact, line
from procedo.surfaces.web.answers import barred, given_value, given_verdict
from procedo.surfaces.web.doors import BASE
from procedo.surfaces.web.form import number_in, read_form
from procedo.surfaces.web.frame import Frame
from procedo.surfaces.web.gatepage import gate_page, gate_version
from procedo.surfaces.web.logins import Visitor
from procedo.surfaces.web.pages import status_of
from procedo.surfaces.web.words import shown, when

__all__ = ["routes"]

_MOST_GATES: Final = 200
_SHORT: Final = 240


def routes(frame: Frame) -> list[Route]:
    """The routes of the inbox."""
    pages, gate = _InboxPages(frame), f"{BASE}/gates/{{gate_id}}"
    back = {"back": gate, "back_text": "Look at the gate as it is now"}
    return [
        frame.route(BASE, pages.list),
        frame.route(f"{BASE}/events", pages.events),
        frame.route(gate, pages.gate, **back),
        frame.route(gate, pages.decide, method="POST", **back),
    ]


class _InboxPages:
    """The handlers."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    # --- the list ---------------------------------------------------------------------------------

    async def list(self, request: Request, visitor: Visitor) -> Response:
        """The gates that wait: the visitor's own, or all."""
        runs, now = self._frame.runs(visitor), self._frame.app.clock.now()
        everything = request.query_params.get("show") == "all"
        mine = await runs.inbox(self._frame.surface(visitor), mine=True)
        found = await runs.inbox(self._frame.surface(visitor)) if everything else mine
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
                "about": shown(line(_about(masked(pair[0].gate.content)), _SHORT)),
                "votes": view.get("votes", []),
            }
            for view, pair in zip(inbox_view(looked)["gates"], looked, strict=True)
        ]
        return self._frame.pages.render(
            "inbox.html",
            visitor=visitor,
            version=_version(found),
            everything=everything,
            gates=entries,
            left_off=max(0, len(found) - _MOST_GATES),
            others=0 if everything else len(await runs.inbox(self._frame.surface(visitor))) - len(found),
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
        runs = self._frame.runs(visitor)
        found, _ = await runs.gate(gate_id)
        history = await runs.history(found.run_id)
        values = gate_page(found, history, visitor, self._frame.app.clock.now())
        fields = typed or {}
        more = {"problem": problem, "comment": fields.get("comment", ""), "changed": fields.get("value")}
        return self._frame.pages.render("gate.html", status, **values, **more)

    async def decide(self, request: Request, visitor: Visitor) -> Response:
        """Take an answer. It counts for what was on the page: its gate, run, revision and digest."""
        gate_id = request.path_params["gate_id"]
        form = await read_form(request, self._frame.form_limit)
        if not visitor.sent(form.get("form_token", "")):
            return self._frame.not_yours(visitor, request.url.path, "Look at the gate", done="decided")
        try:
            await self._answer(gate_id, form, visitor)
        except BadArgument as error:
            return await self._gate_page(gate_id, visitor, status_of(error), shown(str(error)), form)
        return RedirectResponse(request.url.path, 303)

    async def _answer(self, gate_id: str, form: Mapping[str, str], visitor: Visitor) -> None:
        runs = self._frame.runs(visitor)
        found, snapshot = await runs.gate(gate_id)
        verdict, comment = given_verdict(form.get("verdict", "")), form.get("comment", "").replace("\r\n", "\n").strip()
        if verdict is Verdict.REVISE and not comment:
            raise BadArgument("missing_guidance", "Say in the comment what the next draft should be like.")
        value: Json = None
        if verdict is Verdict.AMEND:
            value = given_value(snapshot, found.gate, form.get("value", ""))
        revision = number_in(form.get("revision", ""))
        if revision is None or not form.get("digest") or not form.get("run"):
            raise BadArgument("bad_form", "The form does not say what it answers.", "Use the page.")
        await runs.decide(
            found.gate.id,
            verdict,
            self._frame.surface(visitor),
            value=value,
            comment=comment,
            revision=revision,
            digest=form["digest"],
            run_id=form["run"],
            lasting=found.gate.kind is GateKind.TOOL_CALL and form.get("lasting") == "yes",
        )

    # --- live -------------------------------------------------------------------------------------

    async def events(self, request: Request, visitor: Visitor) -> Response:
        """Versions of the list, or of one gate, as they change."""
        gate_id, everything = request.query_params.get("gate"), request.query_params.get("show") == "all"
        runs = self._frame.runs(visitor)

        async def version() -> str | None:
            if await self._frame.doors.visitor(request) is None:
                return None
            if gate_id:
                found, _ = await runs.gate(gate_id)
                return gate_version(found.gate)
            return _version(await runs.inbox(self._frame.surface(visitor), mine=not everything))

        await version()  # a gate that does not exist is told before the stream begins
        return self._frame.streams.stream(version, visitor.access.principal.identity)


def _about(content: Json) -> str:
    if isinstance(content, Mapping):
        return "; ".join(f"{key}: {_bare(item)}" for key, item in content.items())
    return "" if content is None else _bare(content)


def _bare(value: Json) -> str:
    return value if isinstance(value, str) else compact(value)


def _version(found: Iterable[OpenGate]) -> str:
    text = " ".join(f"{one.gate.id}/{gate_version(one.gate)}" for one in found)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
