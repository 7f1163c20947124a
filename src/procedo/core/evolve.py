"""How a run changes with each event. Never fails on an event that `decide` made; knows no rules.

The table at the end has one entry for each kind of event, and a test holds it complete. An entry gives the fields
of the run that change, so that an event makes one copy of the run, however much it changes.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias, TypeVar

from procedo.core import messages as m
from procedo.core.altered import altered
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

Changes: TypeAlias = dict[str, Any]
"""Fields of a run, with what they become."""

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


def _step(run: Run, step: int, **changes: Any) -> Changes:
    return {"steps": _put(run.steps, step, altered(run.steps[step], **changes))}


def _execution(run: Run, execution_id: str, **changes: Any) -> Changes:
    return {"executions": _put(run.executions, execution_id, altered(run.executions[execution_id], **changes))}


def _gate(run: Run, gate_id: str, **changes: Any) -> Changes:
    return {"gates": _put(run.gates, gate_id, altered(run.gates[gate_id], **changes))}


def _fan(run: Run, step: int, **changes: Any) -> Changes:
    return {"fans": _put(run.fans, step, altered(run.fans[step], **changes))}


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


def _again(run: Run, e: m.RunStarted, _: datetime) -> Changes:
    raise KeyError(f"{e.run_id} starts twice: {run.id} is there already")


def _reach_narrowed(run: Run, e: m.ReachNarrowed, _: datetime) -> Changes:
    return {"reach": (*run.reach, *e.reach)}


def _step_visited(run: Run, e: m.StepVisited, _: datetime) -> Changes:
    return _step(run, e.step, visits=run.steps[e.step].visits + 1, opened_seq=run.seq + 1)


def _unchanged(_run: Run, _event: m.Event, _: datetime) -> Changes:
    return {}


def _arrival_pended(run: Run, e: m.ArrivalPended, _: datetime) -> Changes:
    return {"pending": (*run.pending, e.pending)}


def _arrival_released(run: Run, e: m.ArrivalReleased, _: datetime) -> Changes:
    return {"pending": tuple(p for p in run.pending if p.arrival != e.pending.arrival)}


def _dispatch_held(run: Run, e: m.DispatchHeld, at: datetime) -> Changes:
    held: Changes = {"held": (*run.held, e.held)}
    return held | {"slot_reason": e.slot, "slot_since": run.slot_since or at} if e.slot else held


def _dispatches_released(_run: Run, _event: m.DispatchesReleased, _: datetime) -> Changes:
    return {"held": (), "slot_reason": "", "slot_since": None}


def _gate_opened(run: Run, e: m.GateOpened, _: datetime) -> Changes:
    return {"gates": _put(run.gates, e.gate.id, e.gate), "gate_count": run.gate_count + 1}


def _vote_cast(run: Run, e: m.VoteCast, _: datetime) -> Changes:
    others = tuple(v for v in run.gates[e.gate_id].votes if v.identity != e.vote.identity)
    return _gate(run, e.gate_id, votes=(*others, e.vote))


def _vote_retracted(run: Run, e: m.VoteRetracted, _: datetime) -> Changes:
    votes = tuple(v for v in run.gates[e.gate_id].votes if v.identity != e.identity)
    return _gate(run, e.gate_id, votes=votes)


def _gate_resolved(run: Run, e: m.GateResolved, at: datetime) -> Changes:
    return _gate(
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


def _glass_broken(run: Run, e: m.GlassBroken, _: datetime) -> Changes:
    return _gate(run, e.gate_id, glass_broken=True)


def _revision_asked(run: Run, e: m.RevisionAsked, _: datetime) -> Changes:
    revises = run.gates[e.gate_id].revises + 1
    return _gate(run, e.gate_id, redrafting=True, revises=revises, votes=(), due_at=None)


def _gate_presented(run: Run, e: m.GatePresented, at: datetime) -> Changes:
    return _gate(
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


def _revision_failed(run: Run, e: m.RevisionFailed, at: datetime) -> Changes:
    return _gate(run, e.gate_id, redrafting=False, due_at=e.due_at, waiting_since=at)


def _gate_reminded(run: Run, e: m.GateReminded, at: datetime) -> Changes:
    reminders = run.gates[e.gate_id].reminders + 1
    return _gate(run, e.gate_id, reminders=reminders, due_at=e.due_at, waiting_since=at)


def _gate_withdrawn(run: Run, e: m.GateWithdrawn, _: datetime) -> Changes:
    return _gate(run, e.gate_id, withdrawn=e.reason, due_at=None)


def _fan_opened(run: Run, e: m.FanOpened, _: datetime) -> Changes:
    return {"fans": _put(run.fans, e.arrival.step, Fan(e.arrival, e.items))}


def _item_opened(run: Run, e: m.ItemOpened, _: datetime) -> Changes:
    return _fan(run, e.step, following=e.item + 1)


def _fan_gathered(run: Run, e: m.FanGathered, at: datetime) -> Changes:
    execution = Execution(
        id=e.execution_id,
        arrival=run.fans[e.step].arrival,
        performer=Performer.SERVER,
        agent="",
        opened_at=at,
        phase=Phase.COMPLETED,
        closing=Closing(at=at, by="system", digest="", output=e.output),
    )
    return {
        "fans": _without(run.fans, e.step),
        "executions": _put(run.executions, execution.id, execution),
        **_good_output(run, execution.id, e.step, e.output, executions=run.steps[e.step].executions + 1),
    }


def _fan_abandoned(run: Run, e: m.FanAbandoned, at: datetime) -> Changes:
    return {
        "fans": _without(run.fans, e.step),
        "pending": tuple(p for p in run.pending if p.arrival.step != e.step),
        **_open_closed(run, e.reason, at, step=e.step),
    }


def _execution_opened(run: Run, e: m.ExecutionOpened, _: datetime) -> Changes:
    step = e.execution.step
    return {
        "executions": _put(run.executions, e.execution.id, e.execution),
        **_step(run, step, executions=run.steps[step].executions + 1),
    }


def _effect_started(run: Run, e: m.EffectStarted | m.SessionBegan, _: datetime) -> Changes:
    return _execution(run, e.execution_id, fence=e.fence, effect_started=True)


def _effect_repeated(run: Run, e: m.EffectRepeated, _: datetime) -> Changes:
    return _execution(run, e.execution_id, effect_started=False, phase=Phase.OPEN)


def _execution_halted(run: Run, e: m.ExecutionHalted, _: datetime) -> Changes:
    return _execution(run, e.execution_id, phase=Phase.HALTED)


def _execution_resumed(run: Run, e: m.ExecutionResumed, _: datetime) -> Changes:
    return _execution(run, e.execution_id, phase=Phase.OPEN, due_at=e.due_at)


def _execution_extended(run: Run, e: m.ExecutionExtended, _: datetime) -> Changes:
    return _execution(run, e.execution_id, phase=Phase.OPEN, due_at=e.due_at)


def _output_claimed(run: Run, e: m.OutputClaimed, _: datetime) -> Changes:
    return _execution(
        run, e.execution_id, phase=Phase.VERIFYING, claimed=e.output, claim_digest=e.digest, claim_by=e.by
    )


def _closed(run: Run, execution: Execution, phase: Phase, closing: Closing) -> Changes:
    """An execution has ended, and whoever performed it counts among the run's executors."""
    changes = _execution(run, execution.id, phase=phase, closing=closing, claimed=None)
    if execution.performer in (Performer.HOST, Performer.PROGRAM, Performer.AGENT):
        changes["executors"] = run.executors | {closing.by}
    return changes


def _good_output(run: Run, execution_id: str, step: int, output: object, **counts: int) -> Changes:
    state = _step(run, step, completed=execution_id, output=output, completed_seq=run.seq + 1, **counts)
    return {**state, "last_output": output}


def _item_done(run: Run, arrival: Arrival, execution_id: str, output: object) -> Changes:
    fan, item = run.fans[arrival.step], arrival.item if arrival.item is not None else 0
    return _fan(run, arrival.step, done=_put(fan.done, item, execution_id), outputs=_put(fan.outputs, item, output))


def _execution_completed(run: Run, e: m.ExecutionCompleted, at: datetime) -> Changes:
    execution = run.executions[e.execution_id]
    closing = Closing(at=at, by=e.by, digest=e.digest, output=e.output, notes=e.notes)
    changes = _closed(run, execution, Phase.COMPLETED, closing)
    if execution.arrival.item is None:
        return changes | _good_output(run, execution.id, execution.step, e.output)
    return changes | _item_done(run, execution.arrival, execution.id, e.output)


def _execution_failed(run: Run, e: m.ExecutionFailed, at: datetime) -> Changes:
    closing = Closing(at=at, by=e.by, digest=e.digest, output=e.output, reason=e.reason)
    return _closed(run, run.executions[e.execution_id], Phase.FAILED, closing)


def _execution_skipped(run: Run, e: m.ExecutionSkipped, at: datetime) -> Changes:
    execution = run.executions[e.execution_id]
    closing = Closing(at=at, by=e.by, digest=e.digest, output=e.output, reason="skipped")
    changes = _closed(run, execution, Phase.SKIPPED, closing)
    if execution.arrival.item is None:
        return changes
    return changes | _item_done(run, execution.arrival, execution.id, None)


def _run_held(_run: Run, e: m.RunHeld, at: datetime) -> Changes:
    return {"pause": Pause(by=e.by.key, at=at, reason=e.reason)}


def _run_released(_run: Run, _event: m.RunReleased, _: datetime) -> Changes:
    return {"pause": None}


def _open_closed(run: Run, reason: str, at: datetime, step: int | None = None) -> Changes:
    """Nothing stays open behind an end: executions are closed as cancelled, gates withdrawn."""
    executions: dict[str, Execution] = dict(run.executions)
    gates: dict[str, Gate] = dict(run.gates)
    for execution in run.open_executions:
        if step in (None, execution.step):
            closing = Closing(at=at, by="system", digest="", reason=reason)
            executions[execution.id] = altered(execution, phase=Phase.CANCELLED, closing=closing, claimed=None)
    for gate in (g for g in run.gates.values() if g.live):
        if step in (None, gate.step):
            gates[gate.id] = altered(gate, withdrawn=reason, redrafting=False, due_at=None)
    return {"executions": executions, "gates": gates}


def _ended(run: Run, end: End) -> Changes:
    """What was pending or held stays readable: a run that takes this one up begins there, too."""
    closed = _open_closed(run, f"the run is {end.status}", end.at)
    return {**closed, "end": end, "fans": EMPTY, "pause": None, "slot_reason": "", "slot_since": None}


def _run_completed(run: Run, e: m.RunCompleted, at: datetime) -> Changes:
    return _ended(run, End(Status.COMPLETED, at, "system", output=e.output))


def _run_failed(run: Run, e: m.RunFailed, at: datetime) -> Changes:
    return _ended(run, End(Status.FAILED, at, "system", reason=e.reason))


def _run_cancelled(run: Run, e: m.RunCancelled, at: datetime) -> Changes:
    return _ended(run, End(Status.CANCELLED, at, str(e.by), reason=e.reason, denied=e.denied))


_TABLE: Final[Mapping[type[Any], Callable[[Run, Any, datetime], Changes]]] = {
    m.RunStarted: _again,
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
    return altered(run, seq=run.seq + 1, active_at=at, **_TABLE[type(event)](run, event, at))
