"""Lists that go beyond one run's present: live runs, the inbox, and a run's whole history. Secrets are masked."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from procedo.core.approval import Policy
from procedo.core.state import Execution, Gate, Phase, Run, Status
from procedo.ports import OpenGate, Record, Summary
from procedo.runs import Snapshot, Surface
from procedo.surfaces import links
from procedo.surfaces.gates import gate_view, what_is_asked
from procedo.surfaces.graph import StepMark
from procedo.surfaces.record_shapes import DecisionView, ExecutionView, HistoryView, RecordView
from procedo.surfaces.redaction import masked, masked_text
from procedo.surfaces.shapes import AttentionView, InboxEntry, InboxView, RunLine
from procedo.surfaces.text import stamp
from procedo.surfaces.views import run_view

__all__ = ["attention_view", "history_view", "inbox_view", "record_view", "run_line", "step_marks", "ways_taken"]

_OUTPUT_LIMIT: Final = 4_000
_RECORD_LIMIT: Final = 1_000
_GATE_LIMIT: Final = 8_000


def run_line(summary: Summary) -> RunLine:
    """A run in a list."""
    view: RunLine = {
        "run_id": summary.run_id,
        "sop": summary.sop,
        "version": summary.version,
        "status": summary.status,
        "started_at": stamp(summary.started_at),
        "last_activity": stamp(summary.active_at),
    }
    if summary.ended_at is not None:
        view["ended_at"] = stamp(summary.ended_at)
    if summary.reason:
        view["reason"] = masked_text(summary.reason)
    if summary.open_gates:
        view["open_gates"] = summary.open_gates
    if summary.parent_run is not None:
        view["parent_run"] = summary.parent_run
    return view


def attention_view(runs: Iterable[Summary], counts: Mapping[Status, int]) -> AttentionView:
    """The runs that have not ended, and how many runs have each status."""
    lines = [run_line(summary) for summary in runs]
    view: AttentionView = {"runs": lines, "counts": {str(status): number for status, number in counts.items()}}
    if not lines:
        view["note"] = "No run is live. sop_list names the procedures, sop_start starts one."
    return view


def inbox_view(gates: Iterable[tuple[OpenGate, Snapshot]]) -> InboxView:
    """Every open gate with the data to judge; each comes with its run, as `Runs.gate` answers."""
    return {"gates": [_inbox_entry(found, snapshot) for found, snapshot in gates]}


def _inbox_entry(found: OpenGate, snapshot: Snapshot) -> InboxEntry:
    policy: Policy | None = snapshot.policies.get(found.gate.id)
    view = gate_view(found.gate, snapshot.sop, snapshot.run, policy, _GATE_LIMIT, snapshot.tellings)
    return {"run_id": found.run_id, "sop": found.sop, **view}


def history_view(
    snapshot: Snapshot,
    executions: Sequence[Execution],
    gates: Sequence[Gate],
    records: Sequence[Record],
    surface: Surface,
) -> HistoryView:
    """Everything that happened in a run, in order; every attempt is listed, the latest one last."""
    run = snapshot.run
    return {
        "run": run_view(snapshot, surface),
        "started_at": stamp(run.started_at),
        "started_by": str(run.starter),
        "inputs": links.cut(masked(run.inputs), _OUTPUT_LIMIT, links.inputs(run.id)),
        "executions": [_execution(run.id, execution, _titles(snapshot)) for execution in executions],
        "gates": [_decision(gate) for gate in gates],
        "records": [_record(record) for record in records],
    }


def _titles(snapshot: Snapshot) -> Callable[[int], str]:
    return lambda number: snapshot.sop.by_number[number].title


def _execution(run_id: str, execution: Execution, title: Callable[[int], str]) -> ExecutionView:
    view: ExecutionView = {
        "execution_id": execution.id,
        "step": execution.step,
        "title": title(execution.step),
        "attempt": execution.arrival.attempt,
        "phase": execution.phase,
        "performer": execution.performer,
        "agent": execution.agent,
        "opened_at": stamp(execution.opened_at),
    }
    closing = execution.closing
    if closing is not None:
        view["closed_at"] = stamp(closing.at)
        view["by"] = closing.by
        if closing.reason:
            view["reason"] = masked_text(closing.reason)
        if closing.output is not None:
            view["output"] = links.cut(
                masked(closing.output), _OUTPUT_LIMIT, links.step(run_id, execution.step, execution.id)
            )
        if closing.notes:
            view["notes"] = [masked_text(note) for note in closing.notes]
    return view


def _decision(gate: Gate) -> DecisionView:
    view: DecisionView = {
        "gate_id": gate.id,
        "code": gate.code,
        "kind": gate.kind,
        "step": gate.step,
        "asks": what_is_asked(gate),
        "opened_at": stamp(gate.opened_at),
        "revision": gate.revision,
    }
    if gate.verdict is not None:
        view["verdict"] = gate.verdict
    if gate.decided_by is not None:
        view["by"] = str(gate.decided_by)
    if gate.decided_at is not None:
        view["at"] = stamp(gate.decided_at)
    if gate.expired:
        view["expired"] = True
    if gate.glass_broken:
        view["break_glass"] = True
    if gate.withdrawn:
        view["withdrawn"] = masked_text(gate.withdrawn)
    if gate.comment:
        view["comment"] = masked_text(gate.comment)
    return view


def _record(record: Record) -> RecordView:
    view = record_view(record)
    address = links.timeline(record.run_id, record.seq - 1)
    return {**view, "data": links.cut(view["data"], _RECORD_LIMIT, address)}


def record_view(record: Record) -> RecordView:
    """A line of the record, whole."""
    view: RecordView = {
        "seq": record.seq,
        "at": stamp(record.at),
        "kind": record.kind,
        "acting": record.acting,
        "data": masked(record.data),
    }
    if record.execution_id is not None:
        view["execution_id"] = record.execution_id
    return view


_MARKED: Final[Mapping[Phase, StepMark]] = {
    Phase.COMPLETED: "done",
    Phase.FAILED: "failed",
    Phase.CANCELLED: "cancelled",
    Phase.SKIPPED: "skipped",
}


def step_marks(run: Run, executions: Iterable[Execution]) -> dict[int, StepMark]:
    """How each step stands in a run, for its graph: by its latest execution; what is open wins, a gate before all."""
    marks: dict[int, StepMark] = {}
    for execution in sorted(executions, key=lambda one: not one.phase.closed):
        marks[execution.step] = _MARKED.get(execution.phase, "active")
    for gate in run.open_gates:
        marks[gate.step] = "waiting"
    return marks


def ways_taken(executions: Iterable[Execution]) -> frozenset[tuple[int, int]]:
    """The ways from step to step on which a run came to its executions."""
    return frozenset(
        (int(source.partition(".")[0]), execution.step)
        for execution in executions
        for source in execution.arrival.sources
    )
