"""Runs: the list, one run, what may be done to it, its values and its sessions. No GET changes anything."""

from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from procedo.core.access import Role
from procedo.core.altered import altered
from procedo.core.model import Json
from procedo.core.state import Status
from procedo.errors import BadArgument, InvalidSop, NotFound, Refused
from procedo.runs import History
from procedo.surfaces.redaction import masked
from procedo.surfaces.web.form import number_in, read_form
from procedo.surfaces.web.frame import Frame
from procedo.surfaces.web.logins import Visitor
from procedo.surfaces.web.pages import status_of
from procedo.surfaces.web.runcontrols import Control, control, perform, taken
from procedo.surfaces.web.runlist import LOOKED, Query, entry, find, list_version
from procedo.surfaces.web.runpage import reads_transcripts, run_page, run_version
from procedo.surfaces.web.standing import status_words
from procedo.surfaces.web.transcriptpage import transcript_page
from procedo.surfaces.web.words import shown, written

__all__ = ["routes"]

_VERBS: Final = ("cancel", "pause", "resume", "retry")
_SMALL: Final = 65_536
_PART: Final = 20_000
"""How many characters of a value stand on one page."""


def routes(frame: Frame) -> list[Route]:
    """The routes of the runs."""
    pages = _RunPages(frame)
    run = "/runs/{run_id}"
    back = {"back": run, "back_text": "Look at the run as it is now"}
    start = {"back": "/runs", "back_text": "To all runs"}
    return [
        frame.route("/runs", pages.list, **start),
        frame.route("/runs/events", pages.list_events),
        frame.route(run, pages.run, **start),
        frame.route(f"{run}/events", pages.run_events),
        frame.route(f"{run}/inputs", pages.inputs, **back),
        frame.route(f"{run}/output", pages.output, **back),
        frame.route(f"{run}/outputs/{{execution_id}}", pages.execution_output, **back),
        frame.route(f"{run}/transcripts/{{execution_id}}", pages.transcript, **back),
        *(frame.route(f"{run}/{verb}", pages.confirm, **back) for verb in _VERBS),
        *(frame.route(f"{run}/{verb}", pages.perform, method="POST", **back) for verb in _VERBS),
    ]


class _RunPages:
    """The handlers."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    # --- the list ---------------------------------------------------------------------------------

    async def list(self, request: Request, visitor: Visitor) -> Response:
        """Runs, filtered; the id of one leads straight to it."""
        runs, now = self._frame.runs(visitor), self._frame.app.clock.now()
        query = Query.of(request.query_params)
        if query.words and await self._exists(query.words, visitor):
            return RedirectResponse(f"/runs/{query.words}", 303)
        found, counts = await find(runs, query), await runs.counts()
        names = sorted({item.name for item in self._frame.library(visitor).entries()} | ({query.sop} - {""}))
        return self._frame.pages.render(
            "runs.html",
            visitor=visitor,
            version=list_version(found, counts),
            query=query,
            runs=[entry(one, now) for one in found.runs],
            found=found,
            looked=LOOKED,
            names=names,
            statuses=[(str(status), status_words(status)) for status in Status],
            counts=[(str(one), status_words(one), count) for one, count in counts.items() if count],
            total=sum(counts.values()),
        )

    async def _exists(self, run_id: str, visitor: Visitor) -> bool:
        try:
            await self._frame.runs(visitor).look(run_id)
        except NotFound:
            return False
        return True

    async def list_events(self, request: Request, visitor: Visitor) -> Response:
        """Versions of the list as it changes."""
        runs, query = self._frame.runs(visitor), Query.of(request.query_params)

        async def version() -> str | None:
            if await self._frame.doors.visitor(request) is None:
                return None
            counts = await runs.counts()
            return list_version(await find(runs, query), counts)

        return self._frame.streams.stream(version, visitor.access.principal.identity)

    # --- one run ----------------------------------------------------------------------------------

    async def _history(self, request: Request, visitor: Visitor) -> History:
        return await self._frame.runs(visitor).history(request.path_params["run_id"])

    async def run(self, request: Request, visitor: Visitor) -> Response:
        """One run."""
        await self._frame.runs(visitor).state(request.path_params["run_id"], self._frame.surface(visitor))
        history = await self._history(request, visitor)
        current = self._current(history.snapshot.run.sop, visitor)
        whole = request.query_params.get("record") == "all"
        now = self._frame.app.clock.now()
        values = run_page(history, visitor, now, current=current, whole_record=whole)
        return self._frame.pages.render("run.html", **values)

    def _current(self, name: str, visitor: Visitor) -> str | None:
        """The digest of a procedure as it is in the library, if it is there and loads."""
        try:
            sop = self._frame.library(visitor).get(name).sop
        except (NotFound, InvalidSop):
            return None
        return None if sop is None else sop.digest

    async def run_events(self, request: Request, visitor: Visitor) -> Response:
        """Versions of one run as it changes."""
        runs, run_id = self._frame.runs(visitor), request.path_params["run_id"]

        async def version() -> str | None:
            if await self._frame.doors.visitor(request) is None:
                return None
            spent = (await runs.accounted(await runs.look(run_id))).sessions
            # Looked at once more at the end: what moves it after that is news to the stream.
            return run_version(altered(await runs.look(run_id), sessions=spent))

        await version()  # a run that does not exist is told before the stream begins
        return self._frame.streams.stream(version, visitor.access.principal.identity)

    # --- controls ---------------------------------------------------------------------------------

    async def confirm(self, request: Request, visitor: Visitor) -> Response:
        """Ask before something is done."""
        return await self._confirm(request, visitor)

    @staticmethod
    def _verb(request: Request) -> str:
        return request.url.path.rpartition("/")[2]

    def _chosen(self, request: Request, visitor: Visitor, history: History) -> Control:
        return control(history, visitor, self._verb(request), request.query_params.get("step", ""))

    async def _confirm(
        self, request: Request, visitor: Visitor, status: int = 200, problem: str = "", reason: str = ""
    ) -> Response:
        history = await self._history(request, visitor)
        run = history.snapshot.run
        return self._frame.pages.render(
            "control.html",
            status,
            visitor=visitor,
            control=self._chosen(request, visitor, history),
            run=run,
            status_words=status_words(run.status),
            problem=problem,
            reason=reason,
        )

    async def perform(self, request: Request, visitor: Visitor) -> Response:
        """Do what was confirmed, and show the run: the new one where a retry began one."""
        run_id = request.path_params["run_id"]
        form = await read_form(request, _SMALL)
        if not visitor.sent(form.get("form_token", "")):
            return self._frame.not_yours(visitor, f"/runs/{run_id}", "Look at the run")
        history = await self._history(request, visitor)
        if visitor.access.may(Role.OPERATE) and taken(history.snapshot.run, visitor, self._verb(request), form):
            return RedirectResponse(f"/runs/{run_id}", 303)
        chosen = self._chosen(request, visitor, history)
        runs, surface = self._frame.runs(visitor), self._frame.surface(visitor)
        try:
            snapshot = await perform(chosen, runs, run_id, surface, form)
        except BadArgument as error:
            reason = form.get("reason", "")
            return await self._confirm(request, visitor, status_of(error), shown(str(error)), reason)
        return RedirectResponse(f"/runs/{snapshot.run.id}", 303)

    # --- values -----------------------------------------------------------------------------------

    async def inputs(self, request: Request, visitor: Visitor) -> Response:
        """What the run was started with, whole."""
        history = await self._history(request, visitor)
        return self._value(request, visitor, "Inputs", history.snapshot.run.inputs)

    async def output(self, request: Request, visitor: Visitor) -> Response:
        """What the run gave, whole."""
        end = (await self._history(request, visitor)).snapshot.run.end
        if end is None:
            raise Refused("not_ended", "The run has no output yet.", "It has one when it is completed.")
        return self._value(request, visitor, "Output of the run", end.output)

    async def execution_output(self, request: Request, visitor: Visitor) -> Response:
        """What one execution gave, whole."""
        history, execution_id = await self._history(request, visitor), request.path_params["execution_id"]
        found = next((one for one in history.executions if one.id == execution_id), None)
        if found is None or found.closing is None:
            raise NotFound("unknown_execution", f"The run has no output of an execution {execution_id!r}.")
        return self._value(request, visitor, f"Output of {found.id}", found.closing.output)

    def _value(self, request: Request, visitor: Visitor, title: str, value: Json) -> Response:
        text = written(masked(value))
        given = request.query_params.get("from", "0")
        start = number_in(given)
        if start is None or start > len(text):
            raise BadArgument("wrong_place", f"{given[:20]!r} is no place in this value.", "Begin at its start.")
        return self._frame.pages.render(
            "value.html",
            visitor=visitor,
            run_id=request.path_params["run_id"],
            title=title,
            text=text[start : start + _PART],
            start=start,
            end=min(len(text), start + _PART),
            length=len(text),
            code=not isinstance(value, str),
            before=max(0, start - _PART) if start else None,
            after=start + _PART if start + _PART < len(text) else None,
        )

    async def transcript(self, request: Request, visitor: Visitor) -> Response:
        """What the agent of an execution said and did; for people who operate."""
        if not reads_transcripts(visitor):
            raise Refused("not_permitted", "Transcripts are for people with the role operate.", "Nothing was shown.")
        run_id, execution_id = request.path_params["run_id"], request.path_params["execution_id"]
        found = await self._frame.runs(visitor).transcript(run_id, execution_id)
        if found is None:
            raise NotFound("no_session", f"Execution {execution_id!r} was not carried out by an agent of this server.")
        values: Mapping[str, object] = transcript_page(found, self._frame.app.clock.now())
        return self._frame.pages.render("transcript.html", visitor=visitor, run_id=run_id, **values)
