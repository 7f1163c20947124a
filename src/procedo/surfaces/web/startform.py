"""Starting a procedure: its form, and what becomes of a form that was sent.

The form only converts. Whether the inputs fit and whether a run may begin is decided where every start is decided;
what is refused there is told on the form, which keeps all that was typed. The form carries a key of its own, so
that sending it twice starts one run.
"""

import re
import secrets
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from procedo.core.access import Role
from procedo.core.model import Json, Sop
from procedo.errors import BadArgument, Conflict, InvalidSop, NotFound, Refused
from procedo.ports import Filter
from procedo.runs import Snapshot
from procedo.sopfile.library import Entry
from procedo.surfaces.redaction import masked
from procedo.surfaces.web.fields import Field, drawn
from procedo.surfaces.web.form import read_form
from procedo.surfaces.web.formfilling import filled, prefilled, with_row, without_row
from procedo.surfaces.web.formvalues import ABSENT, Entries, read
from procedo.surfaces.web.formview import at_fields, nodes, wrong
from procedo.surfaces.web.frame import Frame
from procedo.surfaces.web.logins import Visitor
from procedo.surfaces.web.pages import status_of
from procedo.surfaces.web.words import shown

__all__ = ["routes"]

_MOST_FIELDS: Final = 5_000
_INPUT: Final = re.compile(r"[vjno](?:/.*)?", re.DOTALL)
_ROW: Final = re.compile(r"(.*)/(\d{1,4})", re.DOTALL)
_HINTS: Final[Mapping[str, str]] = {
    "key_in_use": "Follow that run, or cancel it; then start again.",
    "bad_inputs": "",
}
"""What to do, where the general hint speaks of other doors."""


class _Trouble(Struct, frozen=True):
    """Why no run was started: by the place of a field, and what no field stands for."""

    status: int = 200
    places: Mapping[str, str] | None = None
    others: tuple[str, ...] = ()
    hint: str = ""
    focus: str = ""


def routes(frame: Frame) -> list[Route]:
    """The routes of the start form."""
    form = _StartForm(frame)
    path = "/catalogue/{name}/start"
    back = {"back": "/catalogue/{name}", "back_text": "To the procedure"}
    return [frame.route(path, form.ask, **back), frame.route(path, form.sent, method="POST", **back)]


class _StartForm:
    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def _entry(self, request: Request, visitor: Visitor) -> tuple[Entry, Sop]:
        visitor.access.require(Role.OPERATE)
        entry = self._frame.library(visitor).get(request.path_params["name"])
        if entry.sop is None:
            raise InvalidSop("invalid_sop", f"{entry.name!r} cannot be used.")
        return entry, entry.sop

    async def ask(self, request: Request, visitor: Visitor) -> Response:
        """The form, filled with the defaults or with the inputs of an earlier run."""
        _, sop = self._entry(request, visitor)
        asked = _asked(sop)
        entries, note = prefilled(asked), ""
        if earlier := request.query_params.get("from", ""):
            inputs, note = await self._inputs_of(earlier, sop, visitor)
            entries = filled(asked, inputs)
        return await self._page(sop, visitor, entries, _new_key(), note=note)

    async def _inputs_of(self, run_id: str, sop: Sop, visitor: Visitor) -> tuple[Json, str]:
        """The inputs of a run, without what is a secret in them, and a note about that."""
        run = (await self._frame.runs(visitor).look(run_id)).run
        if run.sop != sop.name:
            raise NotFound("unknown_run", f"Run {run_id} is not one of {sop.name!r}, but of {run.sop!r}.")
        inputs = ABSENT if run.inputs is None else run.inputs
        kept: Json = masked(inputs) if inputs is not ABSENT else inputs
        if kept == inputs:
            return inputs, f"Filled in with the inputs of run {run_id}."
        if isinstance(inputs, dict):
            inputs = {name: value for name, value in inputs.items() if kept.get(name) == value}
            return inputs, f"Filled in with the inputs of run {run_id}, without those that hold a secret."
        return ABSENT, f"The inputs of run {run_id} hold a secret and are not shown."

    async def sent(self, request: Request, visitor: Visitor) -> Response:
        """Start a run, or show the form again with everything that was typed."""
        _, sop = self._entry(request, visitor)
        form = await read_form(request, self._frame.form_limit, _MOST_FIELDS)
        if not visitor.sent(form.get("form_token", "")):
            return self._frame.not_yours(visitor, request.url.path, "Open the form", done="started")
        key = form.get("key", "")
        if not 8 <= len(key) <= 100:
            raise BadArgument("bad_form", "The form has no key; nothing was started.", "Use the page.")
        asked, entries = _asked(sop), {name: text for name, text in form.items() if _INPUT.fullmatch(name)}
        if act := form.get("act"):
            entries, focus = _with_act(asked, entries, act)
            return await self._page(sop, visitor, entries, key, _Trouble(focus=focus), form.get("digest", ""))
        reading = read(asked, entries)
        if form.get("digest") != sop.digest:
            told = "The procedure has changed since you opened this page. Look at the form again before you start."
            lost = _lost(entries, reading.names)
            more = (f"It no longer asks for: {lost}.",) if lost else ()
            return await self._page(sop, visitor, entries, key, _Trouble(409, others=(told, *more)))
        if lost := _lost(entries, reading.names):
            raise BadArgument("bad_form", f"The form has fields that are not asked for: {lost}.", "Use the page.")
        if reading.problems:
            return await self._page(sop, visitor, entries, key, _Trouble(422, reading.problems))
        value = None if reading.value is ABSENT else reading.value
        return await self._start(sop, visitor, asked, entries, value, key)

    async def _start(
        self, sop: Sop, visitor: Visitor, asked: Field, entries: Entries, value: Json, key: str
    ) -> Response:
        try:
            snapshot = await self._frame.runs(visitor).start(
                sop.name, value, self._frame.surface(visitor), idempotency_key=key
            )
        except NotFound:
            raise
        except Conflict as error:
            if error.code != "key_reused":
                raise
            told = "This form has started a run already, with other inputs. Send it again to start another one."
            return await self._page(sop, visitor, entries, _new_key(), _Trouble(409, others=(told,)))
        except Refused as error:
            trouble = _refusal(error, asked, entries)
            return await self._page(sop, visitor, entries, key, trouble)
        return self._started(snapshot, visitor)

    def _started(self, snapshot: Snapshot, visitor: Visitor) -> Response:
        link = f"/runs/{quote(snapshot.run.id, safe='')}"
        if not snapshot.coalesced:
            return RedirectResponse(link, 303)
        message = "The procedure has a live run, and this start counts as part of it. No other run was started."
        more = {"link": link, "link_text": "Go to that run"}
        return self._frame.pages.told("One run is live already", message, status=200, visitor=visitor, **more)

    async def _page(
        self,
        sop: Sop,
        visitor: Visitor,
        entries: Entries,
        key: str,
        trouble: _Trouble | None = None,
        digest: str = "",
        *,
        note: str = "",
    ) -> Response:
        trouble = trouble or _Trouble()
        shown_nodes = nodes(_asked(sop), entries, trouble.places or {})
        live = await self._frame.runs(visitor).list(Filter(sop=sop.name, live=True, limit=10)) if trouble.others else ()
        values: dict[str, Any] = {
            "visitor": visitor,
            "section": "catalogue",
            "name": sop.name,
            "description": shown(sop.description),
            "version": "",
            "digest": digest or sop.digest,
            "key": key,
            "nodes": shown_nodes,
            "wrong": wrong(shown_nodes),
            "others": tuple(shown(text) for text in trouble.others),
            "hint": shown(trouble.hint),
            "focus": trouble.focus,
            "note": note,
            "live": live,
            "unknown": sop.inputs is None,
            "gates_first": sop.steps[0].title if sop.steps else "",
        }
        return self._frame.pages.render("start.html", trouble.status, **values)


def _asked(sop: Sop) -> Field:
    return drawn(
        {"description": "Whatever the steps of this procedure read."}
        if sop.inputs is None
        else sop.inputs.schema.source
    )


def _new_key() -> str:
    return secrets.token_urlsafe(16)


def _lost(entries: Entries, read_names: set[str]) -> str:
    """What was typed and is not asked for, in words."""
    return "; ".join(
        shown(f"{name[2:]} “{text[:60]}”") for name, text in entries.items() if text and name not in read_names
    )


def _with_act(asked: Field, entries: dict[str, str], act: str) -> tuple[dict[str, str], str]:
    """The entries after a row was added or removed, and the place that gets the focus."""
    verb, _, at = act.partition(":")
    if verb == "more":
        return with_row(asked, entries, at), at
    row = _ROW.fullmatch(at)
    if verb == "less" and row is not None:
        return without_row(entries, row[1], int(row[2])), row[1]
    raise BadArgument("bad_form", f"{act[:40]!r} is no button of this form.", "Use the page.")


def _refusal(error: Refused, asked: Field, entries: Entries) -> _Trouble:
    if isinstance(error, BadArgument) and error.places:
        places, others = at_fields(asked, entries, error.places)
        return _Trouble(422, places, others)
    return _Trouble(status_of(error), others=(error.message,), hint=_HINTS.get(error.code, error.hint))
