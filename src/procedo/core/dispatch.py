"""From an arrival to an open execution, a gate, or a wait.

The order of the rules: pause, dependencies, visit limit, precondition, input schema, gate, slot, bindings,
performer.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from procedo.core import messages as m
from procedo.core.bindings import MissingValue, resolve
from procedo.core.draft import Draft, input_of, scope_of
from procedo.core.gates import open_gate
from procedo.core.model import Json, Kind, Mode, Step
from procedo.core.routing import gate_needed, missing_dependencies, resolved_agent, route
from procedo.core.state import Arrival, Execution, GateKind, Held, Pending, Performer

__all__ = ["MAX_ITEMS", "WAIT", "finish_branch", "leave", "open_next_items", "proceed", "settle"]

MAX_ITEMS: Final = 1000
WAIT: Final = "wait"
"""The capability whose work is a durable timer of the engine."""


class _CannotBegin(ValueError):
    """A value that the step needs is there, but it is of no use."""


def settle(draft: Draft) -> None:
    """Dispatch whatever is queued, look at every pending arrival again, and end a run in which nothing is left."""
    while draft.run.end is None:
        if draft.queue:
            _arrive(draft, draft.queue.popleft())
        elif not _release_one_pending(draft):
            break
    run = draft.run
    if run.end is None and not (run.open_executions or run.open_gates or run.pending or run.held or run.fans):
        draft.emit(m.RunCompleted(run.last_output))


def _release_one_pending(draft: Draft) -> bool:
    for pending in draft.run.pending:
        if pending.due_at is not None and pending.due_at > draft.moment.now:
            continue
        if pending.due_at is None and missing_dependencies(draft.sop, draft.step(pending.arrival.step), draft.run):
            continue
        draft.emit(m.ArrivalReleased(pending))
        draft.queue.append(pending.arrival)
        return True
    return False


def _arrive(draft: Draft, arrival: Arrival) -> None:
    if draft.run.pause is not None:
        draft.emit(m.DispatchHeld(Held(arrival)))
        return
    step = draft.step(arrival.step)
    if arrival.redraft:
        _present(draft, step, arrival)
        return
    if arrival.attempt == 1:
        missing = missing_dependencies(draft.sop, step, draft.run)
        if missing:
            # Several arrivals at one join are one execution.
            if all(p.arrival.step != step.number for p in draft.run.pending):
                draft.emit(m.ArrivalPended(Pending(arrival, missing)))
            return
        _merge_pending(draft, step)
        if not _visit(draft, step):
            return
        arrival = _joined(draft, step, arrival)
    if step.precondition is not None and arrival.attempt == 1:
        truth = step.precondition.test(scope_of(draft.run, arrival))
        if not truth.value:
            reason = f"if {step.precondition.source!r} is false" + (f": {truth.note}" if truth.note else "")
            draft.emit(m.StepPassedOver(step.number, reason))
            leave(draft, step, arrival.sources)
            return
    _present(draft, step, arrival)


def _merge_pending(draft: Draft, step: Step) -> None:
    """An arrival that can go on takes the place of one that still waits at the same join."""
    for pending in draft.run.pending:
        if pending.arrival.step == step.number and pending.due_at is None:
            draft.emit(m.ArrivalReleased(pending))


def _visit(draft: Draft, step: Step) -> bool:
    limit = draft.moment.limits.visits
    visits = draft.run.steps[step.number].visits
    if visits >= limit:
        draft.emit(m.RunFailed(f"step {step.number} visited {visits} times (limit {limit})"))
        return False
    draft.emit(m.StepVisited(step.number))
    return True


def _joined(draft: Draft, step: Step, arrival: Arrival) -> Arrival:
    """At the join of a fork the input is an object: the output of each dependency by step number."""
    if not draft.sop.forking or len(step.depends_on) < 2:
        return arrival
    sources = tuple(draft.run.steps[n].completed or "" for n in step.depends_on)
    return Arrival(arrival.step, sources, guidance=arrival.guidance)


def _present(draft: Draft, step: Step, arrival: Arrival) -> None:
    """Check the input, then ask at a gate or go on."""
    value = input_of(draft.run, arrival)
    if step.input_schema is not None:
        violations = step.input_schema.violations(value)
        if violations:
            told = "; ".join(str(v) for v in violations)
            draft.emit(m.RunFailed(f"the input of step {step.number} breaks its schema: {told}"))
            return
    if step.is_gate:
        open_gate(draft, GateKind.CHECKPOINT, arrival, value)
    elif arrival.item is None and not arrival.redraft and gate_needed(draft.sop, draft.run.mode, step):
        open_gate(draft, GateKind.APPROVAL, arrival, value)
    else:
        proceed(draft, arrival)


def proceed(draft: Draft, arrival: Arrival) -> None:
    """Give a step to its performer; it has passed its gate, or has none."""
    if draft.run.pause is not None:
        draft.emit(m.DispatchHeld(Held(arrival, approved=True)))
        return
    if not draft.slot_free:
        draft.emit(m.DispatchHeld(Held(arrival, approved=True), slot=draft.moment.slot or ""))
        return
    step = draft.step(arrival.step)
    try:
        if step.for_each is not None and arrival.item is None:
            _open_fan(draft, step, arrival)
        else:
            draft.emit(m.ExecutionOpened(_execution(draft, step, arrival)))
    except (MissingValue, _CannotBegin) as error:
        draft.emit(m.RunFailed(f"step {step.number}: {error}"))


def _execution(draft: Draft, step: Step, arrival: Arrival) -> Execution:
    run, now = draft.run, draft.moment.now
    agent = resolved_agent(draft.sop, step, run.host_agent)
    performer = _performer(draft, step, agent)
    scope = scope_of(run, arrival)
    due_at = now + timedelta(seconds=step.timeout_s) if step.timeout_s is not None else None
    value: Json = None
    if performer in (Performer.SERVER, Performer.CHILD, Performer.TIMER):
        value = _arguments(step, scope)
        agent = performer.value
    if performer is Performer.TIMER:
        due_at = _wake_up(step, value, scope, now)
    # A value that is missing must be found now, not when the step is shown.
    resolve([step.body, *step.calls], scope)
    return Execution(
        id=f"{step.number}.{run.steps[step.number].executions + 1}",
        arrival=arrival,
        performer=performer,
        agent=agent,
        opened_at=now,
        due_at=due_at,
        input=value,
    )


def _performer(draft: Draft, step: Step, agent: str) -> Performer:
    if step.kind is Kind.WAIT or step.capability == WAIT:
        return Performer.TIMER
    if step.kind is Kind.CAPABILITY:
        return Performer.SERVER
    if step.kind is Kind.SOP:
        return Performer.CHILD
    if agent != draft.run.host_agent:
        return Performer.AGENT
    return Performer.PROGRAM if draft.run.mode is Mode.DETERMINISTIC else Performer.HOST


def _arguments(step: Step, scope: Mapping[str, Json]) -> Json:
    """Authored arguments plus the piped value under `input`; without authored ones the piped value itself."""
    piped = scope["input"]
    if not step.has_arguments:
        return piped
    authored = resolve(step.arguments, scope)
    if step.kind is Kind.CAPABILITY and isinstance(authored, dict):
        return {"input": piped, **authored}
    return authored


def _wake_up(step: Step, arguments: Json, scope: Mapping[str, Json], now: datetime) -> datetime:
    if step.wait_until is not None:
        text = resolve(step.wait_until, scope)
        try:
            moment = datetime.fromisoformat(str(text))
        except ValueError:
            raise _CannotBegin(f"wait until {text!r}: not a date and time in ISO 8601 form") from None
        if moment.tzinfo is None:
            raise _CannotBegin(f"wait until {text!r}: a time zone is missing, write 2026-01-31T12:00:00Z")
        return moment
    if step.wait_s is not None:
        return now + timedelta(seconds=step.wait_s)
    return now + timedelta(seconds=_seconds(arguments if isinstance(arguments, dict) else {}))


def _seconds(arguments: Mapping[str, Json]) -> float:
    for key, unit in (("milliseconds", 0.001), ("seconds", 1.0)):
        given = arguments.get(key)
        if isinstance(given, int | float) and not isinstance(given, bool) and given >= 0:
            return given * unit
    raise _CannotBegin("capability wait: expected a number of milliseconds or seconds, 0 or more")


def _open_fan(draft: Draft, step: Step, arrival: Arrival) -> None:
    items = resolve(step.for_each, scope_of(draft.run, arrival))
    if not isinstance(items, list):
        raise _CannotBegin(f"for_each {step.for_each}: expected a list, got {type(items).__name__}")
    if len(items) > MAX_ITEMS:
        raise _CannotBegin(f"for_each {step.for_each}: {len(items)} items, the limit is {MAX_ITEMS}")
    draft.emit(m.FanOpened(arrival, tuple(items)))
    open_next_items(draft, step)


def open_next_items(draft: Draft, step: Step) -> None:
    """Open further items of a `for_each` up to `max_parallel`; gather them when all are done."""
    while (fan := draft.run.fans.get(step.number)) is not None and draft.run.end is None:
        waiting = sum(1 for p in draft.run.pending if p.arrival.step == step.number)
        waiting += sum(1 for h in draft.run.held if h.arrival.step == step.number)
        queued = sum(1 for a in draft.queue if a.step == step.number)
        at_work = sum(1 for e in draft.run.open_executions if e.step == step.number)
        if len(fan.done) == len(fan.items):
            _gather(draft, step)
            return
        if fan.following >= len(fan.items) or at_work + waiting + queued >= step.max_parallel:
            return
        arrival = Arrival(step.number, fan.arrival.sources, item=fan.following)
        draft.emit(m.ItemOpened(step.number, fan.following))
        proceed(draft, arrival)


def _gather(draft: Draft, step: Step) -> None:
    fan = draft.run.fans[step.number]
    output = [fan.outputs[index] for index in range(len(fan.items))]
    execution_id = f"{step.number}.{draft.run.steps[step.number].executions + 1}"
    draft.emit(m.FanGathered(step.number, execution_id, output))
    leave(draft, step, (execution_id,))


def leave(draft: Draft, step: Step, sources: tuple[str, ...]) -> None:
    """Route on from a step that was not failed. A step without an output hands its own input on."""
    chosen = route(draft.sop, step, scope_of(draft.run))
    if chosen.failure:
        draft.emit(m.RunFailed(chosen.failure))
        return
    draft.emit(m.Routed(step.number, chosen.targets, chosen.rule, chosen.notes))
    draft.queue.extend(Arrival(target, sources) for target in chosen.targets)


def finish_branch(draft: Draft, step: Step, execution_id: str, sources: tuple[str, ...]) -> None:
    """What follows a closed, not failed execution: the next item of its `for_each`, or the next step."""
    if draft.execution(execution_id).arrival.item is not None:
        open_next_items(draft, step)
    else:
        leave(draft, step, sources)
