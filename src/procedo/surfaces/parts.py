"""Parts of a run as they are read one by one: whole, in pages where long. Secrets are masked before anything is cut."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NotRequired, TypedDict

from msgspec import Struct
from msgspec.structs import asdict

from procedo.core.model import Json, Reveal, Sop
from procedo.core.session import CallRow, Message, Transcript, TurnRow
from procedo.core.state import Execution, Gate, Run
from procedo.errors import NotFound
from procedo.ports import Record
from procedo.runs import History, Surface
from procedo.surfaces import links
from procedo.surfaces.graph import StepMark, mermaid
from procedo.surfaces.overview import history_view, record_view, step_marks
from procedo.surfaces.pages import Page, Span, further, listed, paged
from procedo.surfaces.record_shapes import DecisionView, ExecutionView, RecordView
from procedo.surfaces.redaction import masked
from procedo.surfaces.shapes import RunView
from procedo.surfaces.text import stamp

__all__ = [
    "StateView",
    "TimelineView",
    "gate_part",
    "inputs_part",
    "output_part",
    "state_view",
    "step_part",
    "timeline_limit",
    "timeline_view",
    "transcript_view",
]


_SHORTEST_LINE: Final = 64
"""No line of a record is shorter, in characters."""


class StateView(TypedDict):
    """How a run stands, step by step. `graph` is Mermaid, as far as the procedure is revealed."""

    run: RunView
    started_at: str
    started_by: str
    inputs: Json
    steps: Mapping[int, StepMark]
    graph: NotRequired[str]
    executions: list[ExecutionView]
    gates: list[DecisionView]


class TimelineView(TypedDict):
    """The record of a run in order; `next` when there is more."""

    run_id: str
    records: list[RecordView]
    next: NotRequired[str]


def revealed_graph(sop: Sop, run: Run, marks: Mapping[int, StepMark]) -> str | None:
    """The graph with the state of the run, as far as the procedure shows itself beforehand."""
    if sop.reveal is Reveal.CURRENT:
        return None
    return mermaid(sop, run.mode, marks=marks, titles_only=sop.reveal is Reveal.TITLES)


def state_view(history: History, surface: Surface) -> StateView:
    """The present of a run."""
    snapshot = history.snapshot
    whole = history_view(snapshot, history.executions, history.gates, (), surface)
    marks = step_marks(snapshot.run, history.executions)
    view: StateView = {
        "run": whole["run"],
        "started_at": whole["started_at"],
        "started_by": whole["started_by"],
        "inputs": whole["inputs"],
        "steps": marks,
        "executions": whole["executions"],
        "gates": whole["gates"],
    }
    graph = revealed_graph(snapshot.sop, snapshot.run, marks)
    if graph is not None:
        view["graph"] = graph
    return view


def timeline_limit(wanted: Span) -> int:
    """How many lines of a record a page can hold at most."""
    return wanted.chars // _SHORTEST_LINE + 1


def timeline_view(run_id: str, records: Sequence[Record], wanted: Span) -> TimelineView:
    """The record behind line `wanted.start`, of which `records` are the first `timeline_limit` and one more."""
    limit = timeline_limit(wanted)
    views = [record_view(record) for record in records[:limit]]
    taken, more = listed(views, wanted)
    page: TimelineView = {"run_id": run_id, "records": views[: len(taken)]}
    if more or len(records) > limit:
        page["next"] = further(links.timeline(run_id), "after", views[len(taken) - 1]["seq"], wanted)
    return page


def inputs_part(run: Run, wanted: Span) -> Page:
    """What the run was started with."""
    return paged(masked(run.inputs), wanted, links.inputs(run.id))


def output_part(run: Run, wanted: Span) -> Page:
    """What the run gave. Raises `NotFound` while there is no output."""
    if run.end is None:
        message = f"Run {run.id} has no output yet: it is {run.status}."
        raise NotFound("no_output", message, f"{links.run(run.id)} tells how it stands.")
    return paged(masked(run.end.output), wanted, links.output(run.id))


def step_part(history: History, number: int, execution_id: str, wanted: Span) -> Json:
    """The executions of a step, and the output of one of them: the last that has one unless another is named.

    Raises `NotFound` for a step that was not executed, and for an execution that is not of this step.
    """
    run_id = history.snapshot.run.id
    found = [execution for execution in history.executions if execution.step == number]
    if not found:
        known = sorted({execution.step for execution in history.executions})
        message = f"Step {number} was not executed in run {run_id}."
        raise NotFound("unknown_step", message, f"Executed so far: {', '.join(map(str, known)) or 'none'}.")
    chosen = _chosen(found, execution_id)
    view: dict[str, Json] = {
        "run_id": run_id,
        "step": number,
        "executions": [_brief(execution) for execution in found],
    }
    if chosen is not None and chosen.closing is not None:
        address = links.step(run_id, number, execution_id)
        view |= {"execution_id": chosen.id, **paged(masked(chosen.closing.output), wanted, address)}
    return view


def _chosen(found: list[Execution], execution_id: str) -> Execution | None:
    if not execution_id:
        closed = [e for e in found if e.closing is not None and e.closing.output is not None]
        return closed[-1] if closed else None
    named = next((execution for execution in found if execution.id == execution_id), None)
    if named is None:
        ids = ", ".join(execution.id for execution in found)
        raise NotFound(
            "unknown_execution", f"There is no execution {execution_id!r} of this step.", f"There are {ids}."
        )
    return named


def _brief(execution: Execution) -> Json:
    closing = execution.closing
    reason = {"reason": masked(closing.reason)} if closing is not None and closing.reason else {}
    return {"execution_id": execution.id, "agent": execution.agent, "phase": str(execution.phase), **reason}


def gate_part(history: History, code: str, wanted: Span) -> Json:
    """What a gate of this run asks about, whole. Raises `NotFound`."""
    run_id = history.snapshot.run.id
    gate: Gate | None = next((gate for gate in history.gates if code in (gate.code, gate.id)), None)
    if gate is None:
        codes = ", ".join(gate.code for gate in history.gates) or "none"
        raise NotFound("unknown_gate", f"Run {run_id} has no gate {code!r}.", f"Its gates: {codes}.")
    about = {"run_id": run_id, "gate_id": gate.id, "code": gate.code, "revision": gate.revision}
    return {**about, **paged(masked(gate.content), wanted, links.gate(run_id, gate.code))}


def transcript_view(transcript: Transcript, address: str, wanted: Span) -> Json:
    """What an agent's session asked, answered and did, from entry `wanted.start` on. `address` has no cursor."""
    entries = sorted(_entries(transcript), key=lambda entry: (entry[0], entry[1]))
    shown = [entry[2] for entry in entries[wanted.start :]]
    taken, more = listed(shown, wanted)
    session = _plain(transcript.session)
    session.pop("contract")
    view = {"session": masked(session), "entries": taken, "of": len(entries)}
    if more:
        view["next"] = further(address, "cursor", wanted.start + len(taken), wanted)
    return view


def _entries(transcript: Transcript) -> list[tuple[datetime, int, Json]]:
    rows: list[tuple[int, str, Message | TurnRow | CallRow]] = []
    rows += [(0, "turn", row) for row in transcript.turns]
    rows += [(1, "message", row) for row in transcript.messages]
    rows += [(2, "call", row) for row in transcript.calls]
    return [(row.at, order, {"entry": kind, **masked(_plain(row))}) for order, kind, row in rows]


def _plain(row: Any) -> dict[str, Any]:
    """A row as JSON: times as text."""
    if not isinstance(row, Struct):
        raise TypeError(f"{row!r} is no row")
    return {key: stamp(value) if isinstance(value, datetime) else value for key, value in asdict(row).items()}
