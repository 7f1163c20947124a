"""Counts what was committed, and reads the numbers that the store alone knows."""

from collections import Counter
from datetime import datetime
from typing import Final

from procedo.core import messages as m
from procedo.core.session import CallRow, CallState, SessionState, TurnRow
from procedo.core.state import Execution, Gate, Phase, Status
from procedo.ports import Reader
from procedo.telemetry import instruments as i
from procedo.telemetry.happenings import Commit, Move, Written
from procedo.telemetry.meters import Labels, Meters, Samples

__all__ = ["Counting", "sampled"]

_NONE: Final = "none"
_ENDS: Final = {m.RunCompleted: Status.COMPLETED, m.RunFailed: Status.FAILED, m.RunCancelled: Status.CANCELLED}
_OUTCOMES: Final = {
    m.ExecutionCompleted: Phase.COMPLETED,
    m.ExecutionFailed: Phase.FAILED,
    m.ExecutionSkipped: Phase.SKIPPED,
}


class Counting:
    """A `Watcher` that keeps the meters."""

    def __init__(self, meters: Meters) -> None:
        self._meters = meters

    def committed(self, commit: Commit) -> None:
        """See `Watcher.committed`."""
        for move in commit.moves:
            self._move(move)
        for written in commit.sessions:
            self._session(written)
        for telling in commit.tellings:
            outcome = "delivered" if not telling.error else "given_up" if telling.given_up else "failed"
            self._meters.add(i.NOTICES, 1, telling.route, outcome)

    def _move(self, move: Move) -> None:
        self._meters.add(i.TRANSITIONS, 1, move.who.command)
        for event in move.events:
            if isinstance(event, m.RunStarted):
                self._meters.add(i.RUNS_STARTED, 1, event.sop)
            elif type(event) in _ENDS:
                self._meters.add(i.RUNS_ENDED, 1, move.after.sop, _ENDS[type(event)])
            elif isinstance(event, m.ExecutionCompleted | m.ExecutionFailed | m.ExecutionSkipped):
                self._execution(move, event.execution_id, _OUTCOMES[type(event)])
            elif isinstance(event, m.GateResolved):
                self._gate(move, event.gate_id, "expired" if event.expired else str(event.verdict))
            elif isinstance(event, m.GateWithdrawn):
                self._gate(move, event.gate_id, "withdrawn")

    def _execution(self, move: Move, execution_id: str, outcome: str) -> None:
        found = move.after.executions.get(execution_id) or _before(move, execution_id)
        if found is not None:
            seconds = (move.at - found.opened_at).total_seconds()
            self._meters.record(i.STEP_DURATION, seconds, move.after.sop, found.performer, outcome)

    def _gate(self, move: Move, gate_id: str, verdict: str) -> None:
        gate = move.after.gates.get(gate_id) or (move.before.gates.get(gate_id) if move.before is not None else None)
        if gate is None:
            return
        policy = gate.policy or _NONE
        self._meters.add(i.GATES_CLOSED, 1, policy, verdict)
        self._meters.record(i.GATE_WAIT, (move.at - gate.opened_at).total_seconds(), policy)

    def _session(self, written: Written) -> None:
        row = written.row
        if row.state is not SessionState.RUNNING:
            self._meters.add(i.SESSIONS, 1, row.agent, row.state)
        for turn in written.turns:
            self._turn(row.agent, turn)
        for call in written.calls:
            self._call(row.agent, call)

    def _turn(self, agent: str, turn: TurnRow) -> None:
        if not turn.answered:
            if turn.lost:
                self._meters.add(i.MODEL_REQUESTS, 1, agent, turn.model_asked, "lost")
            return
        model, asked = turn.model_asked, ("chat", turn.provider or _NONE, turn.model_asked)
        self._meters.add(i.MODEL_REQUESTS, 1, agent, model, "answered")
        self._meters.record(i.GENAI_DURATION, turn.seconds, *asked)
        for direction, tokens in (("input", turn.input_tokens), ("output", turn.output_tokens)):
            if tokens is not None:
                self._meters.add(i.TOKENS, tokens, agent, model, direction)
                self._meters.record(i.GENAI_TOKENS, tokens, *asked, direction)
        if turn.cost_usd is not None:
            self._meters.add(i.COST, float(turn.cost_usd), agent, model)

    def _call(self, agent: str, call: CallRow) -> None:
        if call.state is CallState.DONE and call.outcome is not None:
            self._meters.add(i.TOOL_CALLS, 1, agent, call.outcome)


def _before(move: Move, execution_id: str) -> Execution | None:
    return move.before.executions.get(execution_id) if move.before is not None else None


def sampled(reader: Reader, now: datetime) -> Samples:
    """The gauges as the store has them now: they hold across processes and restarts."""
    counts = reader.counts()
    gates: dict[Labels, list[Gate]] = {}
    for found in reader.open_gates():
        gates.setdefault((found.gate.policy or _NONE,), []).append(found.gate)
    return {
        i.RUNS: {(str(status),): float(counts.get(status, 0)) for status in Status},
        i.GATES_OPEN: {policy: float(len(found)) for policy, found in gates.items()},
        i.GATE_AGE: {
            policy: max((now - min(gate.opened_at for gate in found)).total_seconds(), 0.0)
            for policy, found in gates.items()
        },
        i.JOBS_WAITING: {(kind,): float(count) for kind, count in reader.jobs_waiting(now).items()},
        i.NOTICES_UNDELIVERED: {
            (route,): float(count) for route, count in Counter(one.route for one in reader.tellings()).items()
        },
    }
