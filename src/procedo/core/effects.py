"""What has to happen outside a transition because of it. Pure: events in, effects out.

An effect's id is made of the run, the subject and the event's number, so that the same transition always
names the same effects.
"""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from procedo.core import messages as m
from procedo.core.notice import Occasion
from procedo.core.state import Performer, Phase, Run

__all__ = ["Effect", "EffectKind", "effects", "standing"]


class EffectKind(StrEnum):
    """What a carrier has to do."""

    PERFORM = "perform"
    """Carry out an execution that belongs to the server, another agent or a sub-run."""
    VERIFY = "verify"
    """Judge a claimed output by a capability."""
    TICK = "tick"
    """Let time act on the run."""
    SLOTS = "slots"
    """A slot has become free: wake the runs that wait for one."""
    REPORT = "report"
    """A sub-run ended: tell its parent."""
    CHILDREN = "children"
    """Executions were closed: cancel the sub-runs that still work for them."""
    NOTICE = "notice"
    """People are to be told about a gate."""


class Effect(Struct, frozen=True):
    """Something to be done at least once, at `due_at` or at once.

    `occasion` is the moment that a notice is about. `rank` grows with each effect for the same execution, so
    that a claim on a later one is newer than any claim on an earlier one.
    """

    id: str
    kind: EffectKind
    subject: str = ""
    due_at: datetime | None = None
    occasion: Occasion | None = None
    rank: int = 0


_SERVER_SIDE = (Performer.SERVER, Performer.CHILD, Performer.AGENT)


def _perform(run: Run, execution_id: str) -> bool:
    """True when the work is still to be done after the whole transition."""
    execution = run.executions.get(execution_id)
    return execution is not None and execution.phase is Phase.OPEN and execution.performer in _SERVER_SIDE


def effects(before: Run | None, after: Run, events: Sequence[m.Event]) -> tuple[Effect, ...]:
    """The effects of one transition, in the order of their causes."""
    first = after.seq - len(events) + 1
    found = [e for seq, event in enumerate(events, first) if (e := _of_event(after, events, event, seq)) is not None]
    if after.end is not None and (before is None or before.end is None):
        if after.parent is not None:
            found.append(Effect(f"{after.id}:end", EffectKind.REPORT, after.parent.execution))
        if _has_children(after):
            found.append(Effect(f"{after.id}:children", EffectKind.CHILDREN))
    if after.due_at is not None and (before is None or before.due_at != after.due_at):
        found.append(Effect(f"{after.id}:tick:{after.due_at.isoformat()}", EffectKind.TICK, due_at=after.due_at))
    if before is not None and before.holds_slot and not after.holds_slot:
        found.append(Effect(f"{after.id}:slots:{after.revision}", EffectKind.SLOTS))
    return (*found, *_notices(before, after, events, first))


def standing(run: Run) -> tuple[Effect, ...]:
    """What a run needs in a store that takes it over as it stands: people are told what waits, and time is watched."""
    found = [
        Effect(f"{gate.id}:adopted", EffectKind.NOTICE, gate.id, occasion=Occasion.OPENED)
        for gate in run.open_gates
        if gate.live
    ]
    if run.due_at is not None:
        found.append(Effect(f"{run.id}:tick:{run.due_at.isoformat()}", EffectKind.TICK, due_at=run.due_at))
    return tuple(found)


def _notices(before: Run | None, after: Run, events: Sequence[m.Event], first: int) -> list[Effect]:
    """One for each moment that outlasts the transition: of a gate that came and went within it nobody is told."""
    told = []
    for seq, event in enumerate(events, first):
        found = _occasion(event)
        if found is not None and after.gates[found[0]].live:
            told.append(Effect(f"{after.id}:{seq}", EffectKind.NOTICE, found[0], occasion=found[1]))
    for gate in () if before is None else before.gates.values():
        if gate.live and not after.gates[gate.id].live:
            told.append(Effect(f"{gate.id}:resolved", EffectKind.NOTICE, gate.id, occasion=Occasion.RESOLVED))
    return told


def _occasion(event: m.Event) -> tuple[str, Occasion] | None:
    if isinstance(event, m.GateOpened):
        return event.gate.id, Occasion.OPENED
    if isinstance(event, m.GatePresented | m.RevisionFailed):
        return event.gate_id, Occasion.PRESENTED
    if isinstance(event, m.GateReminded) and event.due_at is not None:
        return event.gate_id, Occasion.ESCALATED if event.escalated else Occasion.REMINDED
    return None


def _of_event(after: Run, events: Sequence[m.Event], event: m.Event, seq: int) -> Effect | None:
    name = f"{after.id}:{seq}"
    if isinstance(event, m.OutputClaimed):
        verifying = after.executions[event.execution_id].phase is Phase.VERIFYING
        return Effect(name, EffectKind.VERIFY, event.execution_id) if verifying else None
    if isinstance(event, m.ExecutionFailed | m.ExecutionSkipped | m.FanAbandoned):
        return Effect(f"{name}:children", EffectKind.CHILDREN) if _has_children(after) else None
    if isinstance(event, m.ExecutionOpened):
        wanted, execution_id = True, event.execution.id
    elif isinstance(event, m.EffectRepeated):
        wanted, execution_id = not _begun(events, event.execution_id), event.execution_id
    elif isinstance(event, m.ExecutionResumed | m.ExecutionExtended):
        wanted, execution_id = True, event.execution_id
    else:
        return None
    if not wanted or not _perform(after, execution_id):
        return None
    return Effect(name, EffectKind.PERFORM, execution_id, rank=seq)


def _has_children(after: Run) -> bool:
    return any(e.performer is Performer.CHILD for e in after.executions.values())


def _begun(events: Sequence[m.Event], execution_id: str) -> bool:
    """True when the same claim that found the interruption begins the effect again."""
    return any(isinstance(e, m.EffectStarted) and e.execution_id == execution_id for e in events)
