"""Where a step hands on to, which steps have gates, and what each step needs. Pure questions about a procedure."""

from collections.abc import Mapping

from msgspec import Struct

from procedo.core.model import Json, Mode, OnFailure, Priority, Sop, Step
from procedo.core.state import Run

__all__ = [
    "Route",
    "footprint",
    "gate_needed",
    "in_line",
    "missing_dependencies",
    "reachable",
    "resolved_agent",
    "route",
    "successors",
]

_GATED_PRIORITIES = (Priority.HIGH, Priority.CRITICAL)


class Route(Struct, frozen=True):
    """Where a step hands on to. No targets: the branch ends. `failure` is set when the run must fail instead."""

    targets: tuple[int, ...]
    rule: str
    notes: tuple[str, ...] = ()
    failure: str = ""


def resolved_agent(sop: Sop, step: Step, host_agent: str) -> str:
    """Who performs a step: its own agent, else the procedure's, else the host's. Nobody resolves it again."""
    return step.agent or sop.agent or host_agent


def _mode_gates(mode: Mode, sop: Sop, step: Step) -> bool:
    first = step.number == sop.steps[0].number
    if mode is Mode.STEP_BY_STEP:
        return True
    if mode is Mode.PRIORITY_BASED:
        return first or sop.priority in _GATED_PRIORITIES
    return mode is Mode.SUPERVISED and first


def _step_mode_gates(sop: Sop, step: Step) -> bool:
    if step.mode is Mode.PRIORITY_BASED:
        return sop.priority in _GATED_PRIORITIES
    return step.mode in (Mode.SUPERVISED, Mode.STEP_BY_STEP)


def gate_needed(sop: Sop, mode: Mode, step: Step) -> bool:
    """True when a person must agree before the step begins.

    The step may demand it, the run's mode, or the step's own mode: each can add a gate and none can take
    one away. A checkpoint is itself the gate and gets none in front.
    """
    if step.is_gate:
        return False
    return step.requires_confirmation or _mode_gates(mode, sop, step) or _step_mode_gates(sop, step)


def in_line(sop: Sop, number: int) -> int | None:
    """The step that follows without being named, or None at the end.

    A branch of a fork that would run into its sibling goes on at the join behind both: the next step in
    line with several dependencies. Without such a step the branch ends.
    """
    following = sop.after(number)
    if following is None or not sop.forking:
        return following
    siblings = any(
        following in step.next and any(target <= number for target in step.next) and step.number != number
        for step in sop.forking
    )
    if not siblings:
        return following
    while following is not None and len(sop.by_number[following].depends_on) < 2:
        following = sop.after(following)
    return following


def _ending(sop: Sop, step: Step, rule: str, notes: tuple[str, ...]) -> Route:
    if step.terminal:
        return Route((), "terminal", notes)
    following = in_line(sop, step.number)
    return Route((following,) if following is not None else (), rule, notes)


def route(sop: Sop, step: Step, scope: Mapping[str, Json]) -> Route:
    """Where a step that was not failed hands on to.

    `when` false: next in line, or the end if terminal; `switch` and `next` are passed over. Else the first
    matching port; else `next`; else the end if terminal; else next in line.
    """
    notes: tuple[str, ...] = ()
    if step.when is not None:
        truth = step.when.test(scope)
        if truth.note:
            notes = (f"when {step.when.source!r}: {truth.note}",)
        if not truth.value:
            return _ending(sop, step, "when is false", (*notes, f"when {step.when.source!r} is false"))
    if step.switch:
        return _switch(step, scope, notes)
    if step.next:
        return Route(step.next, "next", notes)
    return _ending(sop, step, "next in line", notes)


def _switch(step: Step, scope: Mapping[str, Json], notes: tuple[str, ...]) -> Route:
    for port in step.switch:
        truth = port.when.test(scope) if port.when is not None else None
        if truth is not None and truth.note:
            notes = (*notes, f"switch {port.name!r}: {truth.note}")
        if truth is None or truth.value:
            targets = (port.target,) if port.target is not None else ()
            return Route(targets, f"switch {port.name}", notes)
    ports = ", ".join(port.name for port in step.switch)
    failure = f"step {step.number}: no port of its switch matched ({ports}) and it has no catch-all"
    return Route((), "switch", notes, failure)


def missing_dependencies(sop: Sop, step: Step, run: Run) -> tuple[int, ...]:
    """The dependencies without a completed output.

    In a procedure that forks, a join asks for results newer than its own last opening, so that a second
    round waits for both of its branches again.
    """
    own = run.steps[step.number]
    join = bool(sop.forking) and len(step.depends_on) > 1
    missing = []
    for number in step.depends_on:
        state = run.steps[number]
        stale = join and state.completed_seq <= own.opened_seq
        if state.completed is None or stale:
            missing.append(number)
    return tuple(missing)


def successors(sop: Sop, step: Step) -> frozenset[int]:
    """Every step that can follow this one, by any rule, a failure or a denial included."""
    found = set(step.next)
    found.update(port.target for port in step.switch if port.target is not None)
    leaves_by_line = not step.terminal and not step.next and not step.switch
    if leaves_by_line or (step.when is not None and not step.terminal):
        found.update(n for n in (in_line(sop, step.number),) if n is not None)
    if step.on_failure.kind is not OnFailure.FAIL and step.on_failure.target is not None:
        found.add(step.on_failure.target)
    if step.on_deny is not None:
        found.add(step.on_deny)
    return frozenset(found)


def reachable(sop: Sop, starts: frozenset[int]) -> frozenset[int]:
    """Every step that can still be reached from these, themselves included."""
    seen: set[int] = set()
    waiting = list(starts)
    while waiting:
        number = waiting.pop()
        if number not in seen:
            seen.add(number)
            waiting.extend(successors(sop, sop.by_number[number]))
    return frozenset(seen)


def _condition_refs(sop: Sop, step: Step) -> frozenset[int]:
    conditions = [step.when, step.precondition, *(port.when for port in step.switch)]
    if step.verify is not None:
        conditions.append(step.verify.condition)
    found: set[int] = set()
    for condition in conditions:
        if condition is not None:
            found.update(sop.by_number if condition.refs is None else condition.refs)
    return frozenset(found)


def footprint(sop: Sop, number: int) -> frozenset[int]:
    """The steps whose states are needed to end this step and to begin whatever may follow.

    A following step with a precondition may be passed over, so its own footprint belongs to it. The
    answer depends on the procedure alone and is kept with it.
    """
    cached = sop.footprints.get(number)
    if cached is None:
        cached = sop.footprints[number] = _footprint(sop, number)
    return cached


def _footprint(sop: Sop, number: int) -> frozenset[int]:
    found: set[int] = set()
    waiting = [number]
    expanded: set[int] = set()
    while waiting:
        at = waiting.pop()
        if at in expanded:
            continue
        expanded.add(at)
        step = sop.by_number[at]
        found.update({at}, step.reads, _condition_refs(sop, step), step.depends_on)
        for target in successors(sop, step):
            following = sop.by_number[target]
            found.update({target}, following.reads, _condition_refs(sop, following), following.depends_on)
            if following.precondition is not None or following.for_each is not None:
                waiting.append(target)
    return frozenset(n for n in found if n in sop.by_number)
