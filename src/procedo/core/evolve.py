"""How a run changes with each event. Never fails on an event that `decide` made; knows no rules.

The table at the end has one entry for each kind of event, and a test holds it complete.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, TypeVar

from procedo.core import messages as m
from procedo.core.altered import altered as replace
from procedo.core.model import EMPTY
from procedo.core.state import (
    Arrival,
    Closing,
    End,
    Execution,
    Fan,
    Gate,
    Pause,
    Performer,
    Phase,
    Run,
    Status,
    StepState,
)

__all__ = ["FreshSteps", "begun", "evolve"]

K = TypeVar("K")
V = TypeVar("V")


class FreshSteps(dict[int, StepState]):
    """The step states of a run that is held completely: a step without an entry was never visited."""

    def __missing__(self, step: int) -> StepState:
        return StepState()


def _put(mapping: Mapping[K, V], key: K, value: V) -> Mapping[K, V]:
    copy: dict[K, V] = FreshSteps(mapping) if isinstance(mapping, FreshSteps) else dict(mapping)  # type: ignore[assignment]  # keys and values keep their types
    copy[key] = value
    return copy


def _without(mapping: Mapping[K, V], key: K) -> Mapping[K, V]:
    return {k: v for k, v in mapping.items() if k != key}


def _with_step(run: Run, step: int, **changes: Any) -> Run:
    return replace(run, steps=_put(run.steps, step, replace(run.steps[step], **changes)))


def _with_execution(run: Run, execution_id: str, **changes: Any) -> Run:
    execution = replace(run.executions[execution_id], **changes)
    return replace(run, executions=_put(run.executions, execution_id, execution))


def _with_gate(run: Run, gate_id: str, **changes: Any) -> Run:
    return replace(run, gates=_put(run.gates, gate_id, replace(run.gates[gate_id], **changes)))


def _run_started(_: Run, e: m.RunStarted, at: datetime) -> Run:
    return begun(e, at)


def begun(e: m.RunStarted, at: datetime) -> Run:
    """The run as its first event makes it."""
    return Run(
        id=e.run_id,
        sop=e.sop,
        digest=e.digest,
        version=e.version,
        mode=e.mode,
        host_agent=e.host_agent,
        starter=e.by,
        marker=e.marker,
        inputs=e.inputs,
        started_at=at,
        active_at=at,
        seq=1,
        can_ask=e.can_ask,
        route=e.route,
        ceiling=e.ceiling,
        reach=e.reach,
        key=e.key,
        parent=e.parent,
        retry_of=e.retry_of,
        pins=e.pins,
        lineage=e.lineage,
        steps=FreshSteps(),
    )


def _reach_narrowed(run: Run, e: m.ReachNarrowed, _: datetime) -> Run:
    return replace(run, reach=(*run.reach, *e.reach))


def _step_visited(run: Run, e: m.StepVisited, _: datetime) -> Run:
    return _with_step(run, e.step, visits=run.steps[e.step].visits + 1, opened_seq=run.seq)


def _unchanged(run: Run, _event: m.Event, _: datetime) -> Run:
    return run


def _arrival_pended(run: Run, e: m.ArrivalPended, _: datetime) -> Run:
    return replace(run, pending=(*run.pending, e.pending))


def _arrival_released(run: Run, e: m.ArrivalReleased, _: datetime) -> Run:
    return replace(run, pending=tuple(p for p in run.pending if p.arrival != e.pending.arrival))


def _dispatch_held(run: Run, e: m.DispatchHeld, at: datetime) -> Run:
    run = replace(run, held=(*run.held, e.held))
    return replace(run, slot_reason=e.slot, slot_since=run.slot_since or at) if e.slot else run


def _dispatches_released(run: Run, _event: m.DispatchesReleased, _: datetime) -> Run:
    return replace(run, held=(), slot_reason="", slot_since=None)


def _gate_opened(run: Run, e: m.GateOpened, _: datetime) -> Run:
    return replace(run, gates=_put(run.gates, e.gate.id, e.gate), gate_count=run.gate_count + 1)


def _vote_cast(run: Run, e: m.VoteCast, _: datetime) -> Run:
    others = tuple(v for v in run.gates[e.gate_id].votes if v.identity != e.vote.identity)
    return _with_gate(run, e.gate_id, votes=(*others, e.vote))


def _vote_retracted(run: Run, e: m.VoteRetracted, _: datetime) -> Run:
    votes = tuple(v for v in run.gates[e.gate_id].votes if v.identity != e.identity)
    return _with_gate(run, e.gate_id, votes=votes)


def _gate_resolved(run: Run, e: m.GateResolved, at: datetime) -> Run:
    return _with_gate(
        run,
        e.gate_id,
        verdict=e.verdict,
        decided_by=e.by,
        decided_at=at,
        comment=e.comment,
        value=e.value,
        value_digest=e.value_digest,
        lasting=e.lasting,
        expired=e.expired,
        due_at=None,
    )


def _glass_broken(run: Run, e: m.GlassBroken, _: datetime) -> Run:
    return _with_gate(run, e.gate_id, glass_broken=True)


def _revision_asked(run: Run, e: m.RevisionAsked, _: datetime) -> Run:
    revises = run.gates[e.gate_id].revises + 1
    return _with_gate(run, e.gate_id, redrafting=True, revises=revises, votes=(), due_at=None)


def _gate_presented(run: Run, e: m.GatePresented, at: datetime) -> Run:
    return _with_gate(
        run,
        e.gate_id,
        redrafting=False,
        revision=run.gates[e.gate_id].revision + 1,
        arrival=e.arrival,
        draft=e.draft,
        prompt=e.prompt,
        content=e.content,
        digest=e.digest,
        due_at=e.due_at,
        waiting_since=at,
    )


def _revision_failed(run: Run, e: m.RevisionFailed, at: datetime) -> Run:
    return _with_gate(run, e.gate_id, redrafting=False, due_at=e.due_at, waiting_since=at)


def _gate_reminded(run: Run, e: m.GateReminded, at: datetime) -> Run:
    reminders = run.gates[e.gate_id].reminders + 1
    return _with_gate(run, e.gate_id, reminders=reminders, due_at=e.due_at, waiting_since=at)


def _gate_withdrawn(run: Run, e: m.GateWithdrawn, _: datetime) -> Run:
    return _with_gate(run, e.gate_id, withdrawn=e.reason, due_at=None)


def _fan_opened(run: Run, e: m.FanOpened, _: datetime) -> Run:
    return replace(run, fans=_put(run.fans, e.arrival.step, Fan(e.arrival, e.items)))


def _item_opened(run: Run, e: m.ItemOpened, _: datetime) -> Run:
    fan = replace(run.fans[e.step], following=e.item + 1)
    return replace(run, fans=_put(run.fans, e.step, fan))


def _fan_gathered(run: Run, e: m.FanGathered, at: datetime) -> Run:
    fan = run.fans[e.step]
    closing = Closing(at=at, by="system", digest="", output=e.output)
    execution = Execution(
        id=e.execution_id,
        arrival=fan.arrival,
        performer=Performer.SERVER,
        agent="",
        opened_at=at,
        phase=Phase.COMPLETED,
        closing=closing,
    )
    run = replace(run, fans=_without(run.fans, e.step), executions=_put(run.executions, execution.id, execution))
    run = _with_step(run, e.step, executions=run.steps[e.step].executions + 1)
    return _with_good_output(run, execution.id, e.step, e.output)


def _fan_abandoned(run: Run, e: m.FanAbandoned, at: datetime) -> Run:
    run = replace(run, fans=_without(run.fans, e.step))
    run = replace(run, pending=tuple(p for p in run.pending if p.arrival.step != e.step))
    return _with_open_closed(run, e.reason, at, step=e.step)


def _execution_opened(run: Run, e: m.ExecutionOpened, _: datetime) -> Run:
    step = e.execution.step
    run = replace(run, executions=_put(run.executions, e.execution.id, e.execution))
    return _with_step(run, step, executions=run.steps[step].executions + 1)


def _effect_started(run: Run, e: m.EffectStarted | m.SessionBegan, _: datetime) -> Run:
    return _with_execution(run, e.execution_id, fence=e.fence, effect_started=True)


def _effect_repeated(run: Run, e: m.EffectRepeated, _: datetime) -> Run:
    return _with_execution(run, e.execution_id, effect_started=False, phase=Phase.OPEN)


def _execution_halted(run: Run, e: m.ExecutionHalted, _: datetime) -> Run:
    return _with_execution(run, e.execution_id, phase=Phase.HALTED)


def _execution_resumed(run: Run, e: m.ExecutionResumed, _: datetime) -> Run:
    return _with_execution(run, e.execution_id, phase=Phase.OPEN, due_at=e.due_at)


def _execution_extended(run: Run, e: m.ExecutionExtended, _: datetime) -> Run:
    return _with_execution(run, e.execution_id, phase=Phase.OPEN, due_at=e.due_at)


def _output_claimed(run: Run, e: m.OutputClaimed, _: datetime) -> Run:
    return _with_execution(
        run, e.execution_id, phase=Phase.VERIFYING, claimed=e.output, claim_digest=e.digest, claim_by=e.by
    )


def _with_executor(run: Run, execution: Execution, by: str) -> Run:
    if execution.performer in (Performer.HOST, Performer.PROGRAM, Performer.AGENT):
        return replace(run, executors=run.executors | {by})
    return run


def _with_good_output(run: Run, execution_id: str, step: int, output: object) -> Run:
    run = _with_step(run, step, completed=execution_id, output=output, completed_seq=run.seq)
    return replace(run, last_output=output)


def _execution_completed(run: Run, e: m.ExecutionCompleted, at: datetime) -> Run:
    execution = run.executions[e.execution_id]
    closing = Closing(at=at, by=e.by, digest=e.digest, output=e.output, notes=e.notes)
    run = _with_execution(run, e.execution_id, phase=Phase.COMPLETED, closing=closing, claimed=None)
    run = _with_executor(run, execution, e.by)
    if execution.arrival.item is None:
        return _with_good_output(run, execution.id, execution.step, e.output)
    return _with_item(run, execution.arrival, execution.id, e.output)


def _with_item(run: Run, arrival: Arrival, execution_id: str, output: object) -> Run:
    fan = run.fans[arrival.step]
    item = arrival.item if arrival.item is not None else 0
    fan = replace(fan, done=_put(fan.done, item, execution_id), outputs=_put(fan.outputs, item, output))
    return replace(run, fans=_put(run.fans, arrival.step, fan))


def _execution_failed(run: Run, e: m.ExecutionFailed, at: datetime) -> Run:
    closing = Closing(at=at, by=e.by, digest=e.digest, output=e.output, reason=e.reason)
    run = _with_executor(run, run.executions[e.execution_id], e.by)
    return _with_execution(run, e.execution_id, phase=Phase.FAILED, closing=closing, claimed=None)


def _execution_skipped(run: Run, e: m.ExecutionSkipped, at: datetime) -> Run:
    execution = run.executions[e.execution_id]
    closing = Closing(at=at, by=e.by, digest=e.digest, output=e.output, reason="skipped")
    run = _with_executor(run, execution, e.by)
    run = _with_execution(run, e.execution_id, phase=Phase.SKIPPED, closing=closing, claimed=None)
    if execution.arrival.item is None:
        return run
    return _with_item(run, execution.arrival, execution.id, None)


def _run_held(run: Run, e: m.RunHeld, at: datetime) -> Run:
    return replace(run, pause=Pause(by=e.by.key, at=at, reason=e.reason))


def _run_released(run: Run, _event: m.RunReleased, _: datetime) -> Run:
    return replace(run, pause=None)


def _with_open_closed(run: Run, reason: str, at: datetime, step: int | None = None) -> Run:
    """Nothing stays open behind an end: executions are closed as cancelled, gates withdrawn."""
    executions: dict[str, Execution] = dict(run.executions)
    gates: dict[str, Gate] = dict(run.gates)
    for execution in run.open_executions:
        if step in (None, execution.step):
            closing = Closing(at=at, by="system", digest="", reason=reason)
            executions[execution.id] = replace(execution, phase=Phase.CANCELLED, closing=closing, claimed=None)
    for gate in (g for g in run.gates.values() if g.live):
        if step in (None, gate.step):
            gates[gate.id] = replace(gate, withdrawn=reason, redrafting=False, due_at=None)
    return replace(run, executions=executions, gates=gates)


def _ended(run: Run, end: End) -> Run:
    """What was pending or held stays readable: a run that takes this one up begins there, too."""
    run = _with_open_closed(run, f"the run is {end.status}", end.at)
    return replace(run, end=end, fans=EMPTY, pause=None, slot_reason="", slot_since=None)


def _run_completed(run: Run, e: m.RunCompleted, at: datetime) -> Run:
    return _ended(run, End(Status.COMPLETED, at, "system", output=e.output))


def _run_failed(run: Run, e: m.RunFailed, at: datetime) -> Run:
    return _ended(run, End(Status.FAILED, at, "system", reason=e.reason))


def _run_cancelled(run: Run, e: m.RunCancelled, at: datetime) -> Run:
    return _ended(run, End(Status.CANCELLED, at, str(e.by), reason=e.reason, denied=e.denied))


_TABLE: Final[Mapping[type[Any], Callable[[Run, Any, datetime], Run]]] = {
    m.RunStarted: _run_started,
    m.ReachNarrowed: _reach_narrowed,
    m.StepVisited: _step_visited,
    m.StepPassedOver: _unchanged,
    m.ArrivalPended: _arrival_pended,
    m.ArrivalReleased: _arrival_released,
    m.DispatchHeld: _dispatch_held,
    m.DispatchesReleased: _dispatches_released,
    m.GateOpened: _gate_opened,
    m.VoteCast: _vote_cast,
    m.VoteRetracted: _vote_retracted,
    m.GlassBroken: _glass_broken,
    m.AutoApproved: _unchanged,
    m.GateResolved: _gate_resolved,
    m.RevisionAsked: _revision_asked,
    m.GatePresented: _gate_presented,
    m.RevisionFailed: _revision_failed,
    m.GateReminded: _gate_reminded,
    m.GateWithdrawn: _gate_withdrawn,
    m.FanOpened: _fan_opened,
    m.ItemOpened: _item_opened,
    m.FanGathered: _fan_gathered,
    m.FanAbandoned: _fan_abandoned,
    m.ExecutionOpened: _execution_opened,
    m.EffectStarted: _effect_started,
    m.SessionBegan: _effect_started,
    m.EffectRepeated: _effect_repeated,
    m.ExecutionHalted: _execution_halted,
    m.ExecutionResumed: _execution_resumed,
    m.ExecutionExtended: _execution_extended,
    m.OutputClaimed: _output_claimed,
    m.ExecutionCompleted: _execution_completed,
    m.ExecutionFailed: _execution_failed,
    m.ExecutionSkipped: _execution_skipped,
    m.Routed: _unchanged,
    m.RunHeld: _run_held,
    m.RunReleased: _run_released,
    m.RunCompleted: _run_completed,
    m.RunFailed: _run_failed,
    m.RunCancelled: _run_cancelled,
}


def evolve(run: Run | None, event: m.Event, at: datetime) -> Run:
    """The run after an event that happened at that time. `run` is None before the first event only."""
    if run is None:
        if not isinstance(event, m.RunStarted):
            raise KeyError(f"{type(event).__name__} before RunStarted")
        return begun(event, at)
    counted = replace(run, seq=run.seq + 1, active_at=at)
    return _TABLE[type(event)](counted, event, at)
