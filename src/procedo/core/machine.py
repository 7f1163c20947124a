"""Which commands are legal, and what they cause. The one place where a run is decided about.

    decide(sop, run, command, moment) -> events        raises Refused and leaves the run as it was
    evolve(run, event, at) -> run                      never fails            (module evolve)
    actions(sop, run) -> what has to happen next       a pure view            (module actions)

Two tables hold the legal moves: `LEGAL` tells for each status which commands are looked at, `REPORTS`
for each phase of an execution what becomes of a result. The handlers below only say what a legal
command causes. Theory: a command either becomes events or is refused with a typed reason that names what
is open; the same command again becomes no events and is thereby answered like the first time.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final

from procedo.core import messages as m
from procedo.core.decisions import answer, approve_by_policy, expire
from procedo.core.dispatch import proceed, settle
from procedo.core.draft import Draft, Moment
from procedo.core.evolve import begun
from procedo.core.gates import open_gate
from procedo.core.model import Json, Sop
from procedo.core.outputs import digest
from procedo.core.reach import without
from procedo.core.results import accept, attempt_failed, complete, halt, identity_of, judge, skip
from procedo.core.state import Arrival, Execution, Gate, GateKind, Performer, Phase, Run, Status
from procedo.errors import Conflict, NotFound, Refused

__all__ = ["LEGAL", "REPORTS", "Fate", "decide", "drafted", "open_work"]


class Fate(Enum):
    """What becomes of a result that arrives at an execution."""

    ACCEPT = "it is taken"
    REPLAY = "the same again is answered as before, anything else conflicts"
    CLAIMED = "as REPLAY, against the result that is being verified"
    HALTED = "refused: a person has to decide first"


_LIVE: Final = frozenset({m.Report, m.Begin, m.Finish, m.Judge, m.Ask, m.Decide, m.Cancel, m.Reopen, m.Tick})
_FINAL: Final = frozenset({m.Report, m.Finish, m.Decide, m.Tick})

LEGAL: Final[Mapping[Status | None, frozenset[type[Any]]]] = {
    None: frozenset({m.Start}),
    Status.RUNNING: _LIVE | {m.Hold},
    Status.WAITING_APPROVAL: _LIVE | {m.Hold},
    Status.PAUSED_CHECKPOINT: _LIVE | {m.Hold},
    Status.PENDING: _LIVE | {m.Hold},
    Status.PAUSED: _LIVE | {m.Release},
    # Behind an end only repeats are answered; a time that comes too late changes nothing.
    Status.COMPLETED: _FINAL,
    Status.FAILED: _FINAL,
    Status.CANCELLED: _FINAL,
}

REPORTS: Final[Mapping[Phase, Fate]] = {
    Phase.OPEN: Fate.ACCEPT,
    Phase.VERIFYING: Fate.CLAIMED,
    Phase.HALTED: Fate.HALTED,
    Phase.COMPLETED: Fate.REPLAY,
    Phase.FAILED: Fate.REPLAY,
    Phase.SKIPPED: Fate.REPLAY,
    Phase.CANCELLED: Fate.REPLAY,
}


def decide(sop: Sop, run: Run | None, command: m.Command, moment: Moment) -> list[m.Event]:
    """The events that a command causes; none when it repeats what was done already.

    Raises `Refused` (or `Conflict`, `NotFound`, `BadArgument`) when it may not happen now.
    """
    return drafted(sop, run, command, moment).events


def drafted(sop: Sop, run: Run | None, command: m.Command, moment: Moment) -> Draft:
    """The events that a command causes, and the run as they leave it; raises as `decide`."""
    status = run.status if run is not None else None
    if type(command) not in LEGAL[status]:
        raise _illegal(run, command)
    if isinstance(command, m.Start):
        return _start(sop, command, moment)
    if run is None:
        raise KeyError("only Start is legal without a run")
    draft = Draft(sop, run, moment)
    _HANDLERS[type(command)](draft, command)
    if draft.events:
        if isinstance(command, m.MOVING) and (more := without(command.reach, run.reach)):
            draft.emit(m.ReachNarrowed(more))
        _settle(draft)
    return draft


def _settle(draft: Draft) -> None:
    settle(draft)
    while approve_by_policy(draft):
        settle(draft)


def open_work(run: Run) -> str:
    """What is open in a run, in words, with the call that is right for it."""
    if run.end is not None:
        return f"The run is {run.end.status}; nothing is open."
    told = []
    for execution in run.open_executions:
        if execution.performer in (Performer.HOST, Performer.PROGRAM) and execution.phase is Phase.OPEN:
            told.append(
                f"execution {execution.id} is open: report it with sop_advance and execution_id {execution.id!r}"
            )
        elif execution.phase is not Phase.HALTED:
            told.append(f"execution {execution.id} is at work ({execution.performer}): follow it with sop_status")
    told += [
        f"gate {gate.code} at step {gate.step} waits for a person: it is decided in the operator's inbox"
        for gate in run.open_gates
    ]
    told += [f"step {pending.arrival.step} is pending: follow it with sop_status" for pending in run.pending]
    if run.pause is not None:
        told.append("the run is paused by an operator: sop_resume ends the pause")
    if run.slot_reason:
        told.append(f"the run waits for a slot ({run.slot_reason})")
    text = "; ".join(told) or "nothing is open"
    return f"{text[:1].upper()}{text[1:]}."


def _illegal(run: Run | None, command: m.Command) -> Refused:
    name = type(command).__name__.lower()
    if run is None:
        return NotFound("unknown_run", f"There is no run to {name}.", "sop_status lists the runs.")
    if run.end is not None:
        by = f" by {run.end.by}" if run.end.status is Status.CANCELLED else ""
        return Refused(
            "ended", f"Run {run.id} is already {run.end.status}{by}.", f"Reason: {run.end.reason or 'none'}."
        )
    if isinstance(command, m.Hold) and run.pause is not None:
        return Refused("paused", f"Run {run.id} is already paused by {run.pause.by}.", "Resume it to go on.")
    if isinstance(command, m.Release):
        return Refused("not_paused", f"Run {run.id} is not paused.", open_work(run))
    return Conflict("exists", f"Run {run.id} exists already.", "Every start makes a new id.")


def _start(sop: Sop, command: m.Start, moment: Moment) -> Draft:
    started = m.RunStarted(
        run_id=command.run_id,
        sop=sop.name,
        digest=sop.digest,
        version=sop.version,
        mode=command.mode,
        host_agent=command.host_agent,
        by=command.by,
        marker=command.marker,
        inputs=command.inputs,
        can_ask=command.can_ask,
        route=command.route,
        ceiling=command.ceiling,
        reach=without(command.reach, ()),
        key=command.key,
        parent=command.parent,
        retry_of=command.retry_of,
        pins=command.pins,
        lineage=command.lineage,
    )
    draft = Draft(sop, begun(started, moment.now), moment, [started])
    # A new run was admitted with its slot in the same transaction.
    draft.slot_free = True
    for number, output in command.adopted.items():
        _adopt_output(draft, number, output, command.retry_of or "")
    draft.queue.extend(command.begin_at or (Arrival(sop.steps[0].number),))
    _settle(draft)
    return draft


def _adopt_output(draft: Draft, number: int, output: Json, origin: str) -> None:
    execution = Execution(f"{number}.1", Arrival(number), Performer.SERVER, "", draft.moment.now)
    draft.emit(m.ExecutionOpened(execution))
    draft.emit(m.ExecutionCompleted(execution.id, output, "", "system", (f"taken over from run {origin}",)))


def _execution(draft: Draft, execution_id: str) -> Execution:
    execution = draft.run.executions.get(execution_id)
    if execution is None:
        message = f"Execution {execution_id!r} is not open in run {draft.run.id}."
        raise Refused("not_open", message, open_work(draft.run))
    return execution


def _is_repeat(draft: Draft, execution: Execution, identity: str) -> bool:
    """True for the same result again. Raises when the execution takes no result any more."""
    fate = REPORTS[execution.phase]
    if fate is Fate.ACCEPT:
        return False
    if fate is Fate.HALTED:
        message = f"Execution {execution.id} is halted: a person has to decide about it first."
        raise Refused("halted", message, open_work(draft.run))
    known = execution.claim_digest if fate is Fate.CLAIMED else None
    if execution.closing is not None:
        known = execution.closing.digest
    if known == identity:
        return True
    message = f"Execution {execution.id} already has its result ({execution.phase}); this one differs."
    raise Conflict("already_reported", message, open_work(draft.run))


def _report(draft: Draft, command: m.Report) -> None:
    execution = _execution(draft, command.execution_id)
    identity = identity_of(command.status, command.output)
    if _is_repeat(draft, execution, identity):
        return
    if execution.performer not in (Performer.HOST, Performer.PROGRAM):
        message = f"Execution {execution.id} is performed by the {execution.performer}, not by the caller."
        raise Refused("not_yours", message, open_work(draft.run))
    by = command.by.key
    if command.status is Phase.COMPLETED:
        accept(draft, execution, command.output, by, identity)
    elif command.status is Phase.SKIPPED:
        skip(draft, execution, command.output, by, identity)
    else:
        told = command.output if isinstance(command.output, str) else ""
        reason = told or (f"reported as failed: {command.output}" if command.output else "reported as failed")
        attempt_failed(draft, execution, reason, by, command.output, identity)


def _begin(draft: Draft, command: m.Begin) -> None:
    execution = _execution(draft, command.execution_id)
    if execution.phase is not Phase.OPEN or execution.performer not in (Performer.SERVER, Performer.AGENT):
        raise Conflict("not_open", f"Execution {execution.id} is not to be begun ({execution.phase}).")
    if command.fence <= execution.fence:
        raise Conflict("stale", f"Claim {command.fence} of execution {execution.id} is not the newest.")
    if execution.performer is Performer.AGENT:
        # A session knows from its own rows what happened before; it is never begun twice from the start.
        draft.emit(_begun(execution, command))
        return
    if execution.effect_started and not command.repeatable:
        halt(draft, execution, GateKind.INTERRUPTED, "the server was interrupted while it happened", execution.input)
        return
    if execution.effect_started:
        draft.emit(m.EffectRepeated(execution.id, "it is declared repeatable"))
    draft.emit(m.EffectStarted(execution.id, command.fence))


def _begun(execution: Execution, command: m.Begin) -> m.EffectStarted | m.SessionBegan:
    who = command.acting
    if who is None:
        return m.EffectStarted(execution.id, command.fence)
    return m.SessionBegan(execution.id, command.fence, who.agent, who.delegating, who.depth, who.contract, who.scripted)


def _finish(draft: Draft, command: m.Finish) -> None:
    execution = _execution(draft, command.execution_id)
    if execution.phase is not Phase.OPEN or command.fence < execution.fence:
        raise Conflict(
            "stale", f"Claim {command.fence} of execution {execution.id} is not the newest, or it is closed."
        )
    by = command.acting
    if command.status is Phase.COMPLETED:
        accept(draft, execution, command.output, by, identity_of(command.status, command.output))
    elif command.status is Phase.HALTED:
        halt(draft, execution, GateKind.INTERRUPTED, command.reason, execution.input)
    else:
        attempt_failed(draft, execution, command.reason, by, command.output)


def _judge(draft: Draft, command: m.Judge) -> None:
    execution = _execution(draft, command.execution_id)
    if execution.phase is not Phase.VERIFYING:
        raise Conflict("not_open", f"Execution {execution.id} is not being verified ({execution.phase}).")
    judge(draft, execution.id, command.verdict, command.reason)


def _is_same_question(gate: Gate, command: m.Ask) -> bool:
    named = (gate.execution, gate.call, gate.kind) == (command.execution_id, command.call, command.kind)
    return named and digest(gate.content) == digest(command.content)


def _ask(draft: Draft, command: m.Ask) -> None:
    execution = _execution(draft, command.execution_id)
    if execution.performer is not Performer.AGENT or execution.phase.closed or command.fence < execution.fence:
        raise Conflict(
            "stale", f"Claim {command.fence} of execution {execution.id} is not the newest, or it is closed."
        )
    asked = [g for g in draft.run.gates.values() if _is_same_question(g, command)]
    if execution.phase is Phase.OPEN:
        draft.emit(m.ExecutionHalted(execution.id, command.why))
    if any(gate.open for gate in asked):
        return
    if asked:
        # The answer came while the session was on its way to ask: it goes on at once, and finds it.
        draft.emit(m.ExecutionResumed(execution.id, execution.due_at))
        return
    open_gate(
        draft,
        command.kind,
        execution.arrival,
        command.content,
        execution=execution.id,
        why=command.why,
        call=command.call,
        policy=command.policy,
        limit_s=command.timeout_s,
    )


def _decide(draft: Draft, command: m.Decide) -> None:
    answer(draft, command)


def _cancel(draft: Draft, command: m.Cancel) -> None:
    draft.emit(m.RunCancelled(command.reason, command.by))


def _hold(draft: Draft, command: m.Hold) -> None:
    draft.emit(m.RunHeld(command.by, command.reason))


def _release(draft: Draft, command: m.Release) -> None:
    draft.emit(m.RunReleased(command.by))
    _redispatch(draft)


def _redispatch(draft: Draft) -> None:
    held = draft.run.held
    draft.emit(m.DispatchesReleased())
    for dispatch in held:
        if dispatch.approved and draft.run.end is None:
            proceed(draft, dispatch.arrival)
        elif not dispatch.approved:
            draft.queue.append(dispatch.arrival)


def _reopen(draft: Draft, command: m.Reopen) -> None:
    step = draft.sop.by_number.get(command.step)
    if step is None:
        known = ", ".join(str(s.number) for s in draft.sop.steps)
        raise NotFound("unknown_step", f"{draft.sop.name} has no step {command.step}.", f"Its steps are {known}.")
    run = draft.run
    busy = [e.step for e in run.open_executions] + [g.step for g in run.open_gates] + list(run.fans)
    if step.number in busy:
        raise Refused("under_way", f"Step {step.number} is under way.", open_work(run))
    last = run.executions.get(f"{step.number}.{run.steps[step.number].executions}")
    waiting = next((p.arrival for p in run.pending if p.arrival.step == step.number), None)
    if last is None and waiting is None:
        raise Refused("never_reached", f"Step {step.number} was never executed in this run.", open_work(run))
    if last is not None and last.phase is Phase.COMPLETED:
        message = f"Step {step.number} is completed; a finished execution is never run again."
        raise Refused("completed", message, open_work(run))
    sources = last.arrival.sources if last is not None else waiting.sources if waiting is not None else ()
    draft.emit(m.Routed(step.number, (step.number,), f"reopened by {command.by}"))
    draft.queue.append(Arrival(step.number, sources))


def _tick(draft: Draft, _command: m.Tick) -> None:
    now = draft.moment.now
    for execution in draft.run.open_executions:
        if execution.phase is not Phase.HALTED and execution.due_at is not None and execution.due_at <= now:
            _overdue(draft, execution)
            settle(draft)
        if draft.run.end is not None:
            return
    for gate in draft.run.open_gates:
        if gate.due_at is not None and gate.due_at <= now and draft.run.gates[gate.id].open:
            expire(draft, gate)
            settle(draft)
    if draft.run.slot_reason and draft.slot_free and draft.run.pause is None:
        _redispatch(draft)
    if draft.run.end is None:
        settle(draft)


def _overdue(draft: Draft, execution: Execution) -> None:
    step = draft.step(execution.step)
    if execution.performer is Performer.TIMER:
        waited = (draft.moment.now - execution.opened_at).total_seconds()
        complete(draft, execution, {"waited_ms": round(waited * 1000)}, "system", "")
        return
    reason = f"step {step.number} exceeded {step.timeout_s:g}s"
    if step.on_timeout.value == "gate":
        halt(draft, execution, GateKind.TIMEOUT, f"exceeded {step.timeout_s:g}s", execution.claimed)
    else:
        attempt_failed(draft, execution, reason, "system")


_HANDLERS: Final[Mapping[type[Any], Callable[[Draft, Any], None]]] = {
    m.Report: _report,
    m.Begin: _begin,
    m.Finish: _finish,
    m.Judge: _judge,
    m.Ask: _ask,
    m.Decide: _decide,
    m.Cancel: _cancel,
    m.Hold: _hold,
    m.Release: _release,
    m.Reopen: _reopen,
    m.Tick: _tick,
}
