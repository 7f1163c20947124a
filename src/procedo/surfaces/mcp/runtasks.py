"""Calls of a run as tasks: started, reported or resumed, until the host has something to do or the run has ended.

A task is derived from its run, so that it survives a restart. Its id is the run and the revision at which the call
left it. Only what cannot be derived is kept, as keys of the run: that the task was made, that it was seen to end, and
that a person closed a question of it. Ending a task ends the waiting; the run is ended by `sop_cancel` alone.

A gate becomes a question where the person at this host may answer it, by the rule of `sop_approve`. Everywhere else the
task ends there, with the view that says who decides.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from mcp.server.context import CallNext, HandlerResult
from mcp.server.elicitation import render_elicitation_schema
from mcp.types import CallToolRequestParams, CallToolResult, ElicitRequest, ElicitRequestFormParams, ElicitResult
from pydantic import ValidationError

from procedo.core import messages as m
from procedo.core.state import Status
from procedo.errors import BadArgument, NotFound
from procedo.ports import Reader, StoredKey, Writer
from procedo.runs import Snapshot, Surface
from procedo.surfaces.gates import may_ask_here
from procedo.surfaces.mcp.asking import CLOSED, Looked, decided, form, question, unanswered
from procedo.surfaces.mcp.callers import Whole, caller, engine, operates
from procedo.surfaces.mcp.calls import Raw, at_the_door
from procedo.surfaces.mcp.tasks import Task, declares_tasks
from procedo.surfaces.mcp.tools import run_reply
from procedo.waiting import is_stop

__all__ = ["RunTasks"]

_CALLS: Final = frozenset({"sop_start", "sop_advance", "sop_resume"})
_AT_ONCE_S: Final = 1.0
"""What the server does in that time is answered at once: a task would only add a round."""
_MOVED_ON: Final = "The run has moved on since this task ended; this is how it stands now."


class RunTasks:
    """See `procedo.surfaces.mcp.tasks.TaskSource`."""

    def __init__(self, app: Whole) -> None:
        self._app = app

    async def begin(self, params: CallToolRequestParams, ctx: Raw, call_next: CallNext) -> HandlerResult | Task | None:
        """Make the call with a short wait, and a task when there is more to wait for."""
        if params.name not in _CALLS or not declares_tasks(ctx):
            return None
        given = dict(params.arguments or {})
        asked = given.get("wait_s", _AT_ONCE_S)
        if isinstance(asked, int | float) and asked > _AT_ONCE_S:
            asked = _AT_ONCE_S
        # The handler behind is given these very params, so what it is to wait is said here.
        params.arguments = {**given, "wait_s": asked}
        result = await call_next(ctx)
        if not isinstance(result, CallToolResult) or result.is_error or result.structured_content is None:
            return result
        at, surface = at_the_door(ctx), caller(at_the_door(ctx))
        snapshot = await engine(at).runs.state(str(result.structured_content["run_id"]), surface)
        if is_stop(snapshot) and not list(_askable(snapshot, surface)):
            return result
        return await self._made(snapshot)

    async def _made(self, snapshot: Snapshot) -> Task:
        run = snapshot.run
        task_id = f"{run.id}.{run.revision}"
        made = StoredKey(_scope(task_id), "made", run.active_at.isoformat(), run.id)
        await self._kept(made)
        return Task(task_id, "working", run.active_at, run.active_at)

    async def look(self, task_id: str, ctx: Raw) -> Task | None:
        """The task by its run, as this caller may see it."""
        made = await self._key(task_id, "made")
        if made is None:
            return None
        at, surface = at_the_door(ctx), caller(at_the_door(ctx))
        try:
            snapshot = await engine(at).runs.state(made.run_id, surface)
        except NotFound:
            return None
        created, active = datetime.fromisoformat(made.digest), snapshot.run.active_at
        ended = await self._key(task_id, "ended")
        if ended is not None and ended.digest == "cancelled":
            return Task(task_id, "cancelled", created, active)
        if ended is None:
            waiting = await self._open(task_id, snapshot, surface)
            if waiting:
                requests = {key: _request(looked) for key, looked in waiting.items()}
                return Task(task_id, "input_required", created, active, requests=requests)
            if not is_stop(snapshot):
                return Task(task_id, "working", created, active)
            ended = StoredKey(_scope(task_id), "ended", str(snapshot.run.revision), made.run_id)
            await self._kept(ended)
        notes = [] if ended.digest == str(snapshot.run.revision) else [_MOVED_ON]
        asked = await self._open(task_id, snapshot, surface)
        for key, looked in _questions(snapshot, surface).items():
            if key not in asked:  # the person closed this one
                surface, note = unanswered(looked, CLOSED)
                notes.append(note)
        reply = run_reply(snapshot, surface, *notes, working=operates(at))
        result = reply.model_dump(mode="json", by_alias=True, exclude_none=True)
        return Task(task_id, "completed", created, active, result=result)

    async def answer(self, task_id: str, responses: Mapping[str, Any], ctx: Raw) -> None:
        """Let the person's answers count. Raises `BadArgument` for one that does not fit its form."""
        at = at_the_door(ctx)
        surface, runs = caller(at), engine(at).runs
        for key, response in responses.items():
            made = await self._key(task_id, "made")
            if made is None or await self._key(task_id, "ended") is not None:
                return
            waiting = await self._open(task_id, await runs.state(made.run_id, surface), surface)
            if key not in waiting:
                continue
            looked = waiting[key]
            try:
                given = ElicitResult.model_validate(response)
                answer = form(looked).model_validate(given.content or {}) if given.action == "accept" else None
            except ValidationError as error:
                asked = f"gate {looked.gate.code} takes {', '.join(map(str, looked.verdicts))}"
                raise BadArgument("bad_answer", f"The answer to {key!r} does not fit.", f"{asked}.") from error
            if answer is None:
                await self._kept(StoredKey(_scope(task_id), key, given.action, made.run_id))
            else:
                await decided(runs, looked, answer)

    async def cancel(self, task_id: str, ctx: Raw) -> None:  # noqa: ARG002  # the caller was looked at before
        """End the waiting. The run goes on."""
        made = await self._key(task_id, "made")
        if made is not None:
            ended = StoredKey(_scope(task_id), "ended", "cancelled", made.run_id)
            await self._kept(ended)

    async def _key(self, task_id: str, key: str) -> StoredKey | None:
        return await self._app.store.read(lambda reader: reader.key(_scope(task_id), key))

    async def _kept(self, key: StoredKey) -> None:
        await self._app.store.write(lambda writer: _keep(writer, key))

    async def _open(self, task_id: str, snapshot: Snapshot, surface: Surface) -> dict[str, Looked]:
        """The questions of the task by key, without those that the person has closed."""
        found = _questions(snapshot, surface)

        def work(reader: Reader) -> dict[str, Looked]:
            return {key: one for key, one in found.items() if reader.key(_scope(task_id), key) is None}

        return await self._app.store.read(work) if found else {}


def _scope(task_id: str) -> str:
    return f"task:{task_id}"


def _keep(writer: Writer, key: StoredKey) -> None:
    """Keep what came first."""
    if writer.key(key.scope, key.key) is None:
        writer.put_key(key)


def _askable(snapshot: Snapshot, surface: Surface) -> Iterator[Looked]:
    """The gates, of sub-runs too, that the person at this host may answer. None while the host itself has to act."""
    if snapshot.run.status is not Status.PAUSED and not any(
        isinstance(action, m.ExecuteStep | m.DeterministicStep) for action in snapshot.actions
    ):
        for gate in snapshot.run.open_gates:
            if may_ask_here(snapshot.policies.get(gate.id), snapshot.run, surface):
                yield Looked(gate, snapshot, surface)
        for child in snapshot.children:
            yield from _askable(child, surface)


def _questions(snapshot: Snapshot, surface: Surface) -> dict[str, Looked]:
    return {f"{looked.gate.id}.{looked.gate.revision}": looked for looked in _askable(snapshot, surface)}


def _request(looked: Looked) -> Any:
    schema = render_elicitation_schema(form(looked))
    params = ElicitRequestFormParams(message=question(looked), requested_schema=schema)
    return ElicitRequest(params=params).model_dump(mode="json", by_alias=True, exclude_none=True)
