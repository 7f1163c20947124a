"""The eight tools. Each answers with one view, as structure and as text that says the same."""

import json
from typing import Annotated, Any, Final, Literal, TypeAlias

from mcp.server.mcpserver import Context, ElicitationResult, Resolve
from mcp.types import CallToolResult, TextContent
from pydantic import Field

from procedo.core.altered import altered
from procedo.core.model import Json, Sop
from procedo.core.state import Verdict
from procedo.errors import BadArgument, NotFound, Refused
from procedo.ports import Filter
from procedo.runs import Snapshot, Surface
from procedo.surfaces.catalogue import catalogue_view, describe_view
from procedo.surfaces.mcp.asking import (
    CLOSED,
    Answer,
    Looked,
    NotAsked,
    ask,
    decided,
    look,
    may_decide_itself,
    unanswered,
)
from procedo.surfaces.mcp.callers import caller, engine
from procedo.surfaces.mcp.waiting import DEFAULT_WAIT_S, LONGEST_WAIT_S, settled
from procedo.surfaces.overview import attention_view
from procedo.surfaces.prose import as_text, attention_text, catalogue_text, description_text
from procedo.surfaces.views import run_view

__all__ = ["TOOLS", "run_reply"]

RunId: TypeAlias = Annotated[str, Field(description="id of the run", min_length=1)]
Name: TypeAlias = Annotated[str, Field(description="name of the procedure", min_length=1)]
# Branches of one type each: clients drop what is said about a value of no type, or refuse it.
_ANY_JSON: Final[dict[str, Json]] = {
    "anyOf": [
        {"type": "object", "additionalProperties": True},
        {"type": "array", "items": {}},
        *({"type": kind} for kind in ("string", "number", "boolean", "null")),
    ]
}
WaitS: TypeAlias = Annotated[float, Field(description="seconds to wait for the next action", ge=0, le=LONGEST_WAIT_S)]


def _reply(view: Any, text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=view)


def run_reply(snapshot: Snapshot, surface: Surface, *notes: str, working: bool = True) -> CallToolResult:
    """The answer of a tool that concerns one run."""
    view = run_view(snapshot, surface, working=working)
    if notes:
        view["notes"] = [*view.get("notes", []), *notes]
    return _reply(view, as_text(view, snapshot.run.marker))


async def sop_list(
    ctx: Context,
    name: Annotated[str, Field(description="only this procedure")] = "",
    priority: Annotated[
        Literal["any", "low", "normal", "high", "critical"], Field(description="only this priority")
    ] = "any",
) -> CallToolResult:
    """List the procedures."""
    app = engine(ctx)
    entries = (app.library.find(name),) if name else app.library.entries()
    view = catalogue_view(app.settings.sops_dir, entries, app.settings, priority="" if priority == "any" else priority)
    return _reply(view, catalogue_text(view))


async def sop_describe(ctx: Context, name: Name) -> CallToolResult:
    """Describe one procedure."""
    app = engine(ctx)
    view = describe_view(app.library.get(name), app.settings)
    return _reply(view, description_text(view))


async def sop_start(
    ctx: Context,
    name: Name,
    inputs: Annotated[
        Any, Field(description="the procedure's inputs; see sop_describe", json_schema_extra=_ANY_JSON)
    ] = None,
    idempotency_key: Annotated[str, Field(description="your own key: the same call again starts nothing")] = "",
    wait_s: WaitS = DEFAULT_WAIT_S,
) -> CallToolResult:
    """Start a run."""
    app, surface = engine(ctx), caller(ctx)
    meant = _meant(app.library.get(name).sop, inputs) if isinstance(inputs, str) else inputs
    snapshot = await app.runs.start(name, meant, surface, idempotency_key=idempotency_key or None)
    return run_reply(await settled(ctx, snapshot, surface, wait_s), surface)


def _meant(sop: Sop | None, inputs: str) -> Json:
    """Some hosts send an object as its text: it is read as JSON only where the schema refuses the text itself."""
    schema = sop.inputs.schema if sop is not None and sop.inputs is not None else None
    if schema is None or not schema.violations(inputs):
        return inputs
    try:
        value = json.loads(inputs)
    except (ValueError, RecursionError):
        return inputs
    return value if isinstance(value, dict | list) or not schema.violations(value) else inputs


async def sop_advance(
    ctx: Context,
    run_id: RunId,
    execution_id: Annotated[str, Field(description="execution_id of the action, such as 3.1", min_length=1)],
    status: Literal["completed", "failed", "skipped"],
    output: Annotated[
        Any, Field(description="the result; when failed, the reason", json_schema_extra=_ANY_JSON)
    ] = None,
    wait_s: WaitS = DEFAULT_WAIT_S,
) -> CallToolResult:
    """Report a step."""
    app, surface = engine(ctx), caller(ctx)
    snapshot = await app.runs.advance(run_id, execution_id, status, output, surface)
    return run_reply(await settled(ctx, snapshot, surface, wait_s), surface)


async def sop_approve(
    ctx: Context,
    gate_id: Annotated[str, Field(description="gate_id or code of the gate", min_length=1)],  # noqa: ARG001  # for `look`
    looked: Annotated[Looked, Resolve(look)],
    answer: Annotated[ElicitationResult[Any], Resolve(ask)],
    decision: Annotated[
        Literal["ask", "approve", "deny", "amend", "revise", "repeat", "skip", "fail"],
        Field(description="what you propose; ask = no proposal"),
    ] = "ask",
    comment: Annotated[str, Field(description="your reason, shown to the person")] = "",
    value: Annotated[Any, Field(description="with amend: the proposed value", json_schema_extra=_ANY_JSON)] = None,
) -> CallToolResult:
    """Have a gate decided by the person at the host."""
    runs, surface, gate = engine(ctx).runs, looked.surface, looked.gate
    if answer.action != "accept":
        door, note = unanswered(looked, CLOSED)
        return run_reply(looked.snapshot, door, note)
    given = answer.data
    if isinstance(given, NotAsked) and not may_decide_itself(looked):
        return run_reply(looked.snapshot, surface, given.reason)
    if isinstance(given, Answer):
        return run_reply(await decided(runs, looked, given), surface)
    snapshot = await runs.decide(
        gate.id,
        _own(decision),
        surface,
        value=value,
        comment=comment,
        revision=gate.revision,
        digest=gate.digest,
        run_id=looked.snapshot.run.id,
    )
    return run_reply(snapshot, surface)


def _own(decision: str) -> Verdict:
    if decision == "ask":
        message = "A policy names you as one who decides at this gate, so say what you decide."
        raise BadArgument("missing_decision", message, "Call again with decision and, for a denial, a comment.")
    return Verdict(decision)


async def sop_resume(
    ctx: Context,
    run_id: RunId,
    retry: Annotated[int, Field(description="number of a failed step to open again; 0 = none", ge=0)] = 0,
    wait_s: WaitS = DEFAULT_WAIT_S,
) -> CallToolResult:
    """Pick a run up again."""
    app, surface = engine(ctx), caller(ctx)
    pause = (await app.runs.state(run_id, surface)).run.pause
    if pause is not None:
        message = f"Run {run_id} was paused by {pause.by}: {pause.reason or 'no reason given'}."
        raise Refused(
            "paused", message, "Whoever operates this server ends the pause; tell your user, and do not poll."
        )
    snapshot = await app.runs.resume(run_id, surface, retry=retry or None)
    return run_reply(await settled(ctx, snapshot, surface, wait_s), surface)


async def sop_status(
    ctx: Context,
    run_id: Annotated[str, Field(description="id of the run; empty = all live runs")] = "",
    sop: Annotated[str, Field(description="without run_id: only runs of this procedure")] = "",
    wait_s: WaitS = DEFAULT_WAIT_S,
) -> CallToolResult:
    """Look at a run, or at the live ones."""
    app, surface = engine(ctx), caller(ctx)
    if not run_id:
        runs = await app.runs.list(Filter(sop=sop or None, live=True))
        overview = attention_view(runs, await app.runs.counts())
        return _reply(overview, attention_text(overview))
    snapshot = await app.runs.state(run_id, surface)
    if sop and snapshot.run.sop != sop:
        message = f"Run {run_id} is a run of {snapshot.run.sop!r}, not of {sop!r}."
        raise NotFound("unknown_run", message, "Leave sop out when you name a run.")
    snapshot = await app.runs.accounted(await settled(ctx, snapshot, surface, wait_s))
    return run_reply(altered(snapshot, replayed=False), surface, working=False)


async def sop_cancel(
    ctx: Context, run_id: RunId, reason: Annotated[str, Field(description="kept in the record", min_length=1)]
) -> CallToolResult:
    """End a run."""
    surface = caller(ctx)
    return run_reply(await engine(ctx).runs.cancel(run_id, reason, surface), surface)


TOOLS = (sop_list, sop_describe, sop_start, sop_advance, sop_approve, sop_resume, sop_status, sop_cancel)
