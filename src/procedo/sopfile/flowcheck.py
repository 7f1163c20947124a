"""Checks the ways through a procedure: what is never reached, never ends, waits for ever or never comes together."""

from collections.abc import Iterable
from itertools import pairwise

from procedo.core.model import Step
from procedo.sopfile.checked import Checked
from procedo.sopfile.flow import Flow
from procedo.sopfile.graphs import circles

__all__ = ["check_flow"]


def check_flow(one: Checked, flow: Flow) -> None:
    """Tell what is wrong with the order of the steps."""
    _unreachable(one, flow)
    _loops(one, flow)
    waiting = _dependency_circles(one)
    for step in one.sop.steps:
        _beside_switch(one, step)
        if step.number in flow.reached:
            _dependencies(one, flow, step, waiting)
    _forks(one, flow)
    _independent(one, waiting)


def _named(numbers: Iterable[int]) -> str:
    return ", ".join(str(number) for number in sorted(numbers))


def _unreachable(one: Checked, flow: Flow) -> None:
    for step in one.sop.steps:
        if step.number not in flow.reached:
            hint = "lead to it by `next`, a port, or on_failure; or remove it"
            one.tell("unreachable-step", f"nothing leads to step {step.number} ({step.title})", hint, step)


def _loops(one: Checked, flow: Flow) -> None:
    for circle in circles(flow.ways):
        leaves = any(target not in circle for number in circle for target in flow.ways[number])
        if leaves or not circle <= flow.reached:
            continue
        step = one.sop.by_number[max(circle)]
        how = f"steps {_named(circle)} lead to each other" if len(circle) > 1 else f"step {step.number} leads to itself"
        field = "routing.switch" if step.switch else "routing.next"
        one.tell(
            "endless-loop", f"{how} and to no end", "add a way out: a port to another step or to `end`", step, field
        )


def _dependency_circles(one: Checked) -> dict[int, frozenset[int]]:
    found: dict[int, frozenset[int]] = {}
    for circle in circles({step.number: step.depends_on for step in one.sop.steps}):
        found.update(dict.fromkeys(circle, circle))
        for number in sorted(circle):
            step = one.sop.by_number[number]
            how = (
                f"steps {_named(circle)} depend on each other"
                if len(circle) > 1
                else f"step {number} depends on itself"
            )
            one.tell("dependency-cycle", how, "remove one of the dependencies", step, "routing.depends_on")
    return found


def _dependencies(one: Checked, flow: Flow, step: Step, waiting: dict[int, frozenset[int]]) -> None:
    uncertain: list[int] = []
    for number in step.depends_on:
        if number in waiting.get(step.number, ()):
            continue
        if flow.only_behind(step.number, number):
            why = "is never reached" if number not in flow.reached else f"can only run after step {step.number}"
            message = f"step {step.number} waits for step {number}, which {why}"
            one.tell(
                "unsatisfiable-dependency", message, "change the order, or the dependency", step, "routing.depends_on"
            )
        elif flow.passes_by(number, step.number) if one.sop.forking else not flow.always_before(number, step.number):
            uncertain.append(number)
    if uncertain:
        which = f"step{'s' if len(uncertain) > 1 else ''} {_named(uncertain)}"
        message = f"step {step.number} waits for {which}, which some ways to it never complete"
        hint = "on those ways the run would wait; lead them elsewhere, or drop the dependency"
        one.tell("dependency-uncertain", message, hint, step, "routing.depends_on")


def _beside_switch(one: Checked, step: Step) -> None:
    if step.switch and step.when is not None:
        hint = "put the condition into the ports to have one rule"
        message = f"step {step.number}: where `when` is false the switch is passed over"
        one.tell("when-beside-switch", message, hint, step, "routing.when")
    if step.switch and step.next:
        hint = "name it as the catch-all port: other>>" + str(step.next[0])
        message = f"step {step.number}: `next` beside `switch` is never followed"
        one.tell("next-beside-switch", message, hint, step, "routing.next")
    if step.terminal and step.when is None and (step.switch or step.next):
        other = "switch" if step.switch else "next"
        message = f"step {step.number}: `terminal` has no effect beside `{other}`"
        one.tell("no-effect", message, "remove one of them", step, "routing.terminal")


# --- forks ---------------------------------------------------------------------------------------


def _forks(one: Checked, flow: Flow) -> None:
    forks = [step for step in one.sop.steps if len(step.next) > 1 and not step.switch and step.number in flow.reached]
    if not forks:
        return
    joins = [step for step in one.sop.steps if len(step.depends_on) > 1 and step.number in flow.reached]
    parted = _partings(flow, joins)
    for step in forks:
        if step.number not in parted and not _meets(flow, step, joins):
            branches = " and ".join(str(target) for target in step.next)
            message = f"the branches {branches} of step {step.number} never come together"
            hint = "let a later step depend on the last step of each branch"
            one.tell("fork-without-join", message, hint, step, "routing.next")


def _partings(flow: Flow, joins: Iterable[Step]) -> set[int]:
    """The steps at which the ways to the dependencies of some join part."""
    found: set[int] = set()
    for join in joins:
        needed = [number for number in join.depends_on if number in flow.reached]
        found.update(flow.parting(one, other) for one, other in pairwise(needed))
    return found


def _meets(flow: Flow, fork: Step, joins: Iterable[Step]) -> bool:
    """Whether some join waits for steps of at least two branches of this fork."""
    branches = [flow.reachable(target, frozenset(join.number for join in joins)) for target in fork.next]
    return any(sum(not branch.isdisjoint(join.depends_on) for branch in branches) > 1 for join in joins)


def _independent(one: Checked, waiting: dict[int, frozenset[int]]) -> None:
    """Where dependencies are used: say in which order neighbours run that do not depend on each other."""
    joined: dict[int, set[int]] = {}
    for step in one.sop.steps:
        if len(step.depends_on) > 1:
            for number in step.depends_on:
                joined.setdefault(number, set()).update(step.depends_on)
    for step in one.sop.steps:
        after = one.sop.after(step.number)
        if after is None or after in waiting or step.next or step.switch or step.terminal or step.when is not None:
            continue
        following = one.sop.by_number[after]
        together = after in joined.get(step.number, ())
        if (following.depends_on or together) and not _depends(one, following, step.number):
            message = f"steps {step.number} and {after} do not depend on each other; they run in this order, one by one"
            hint = f"to run them side by side fork to both: next: {step.number}, {after}"
            one.tell("independent-steps", message, hint, following, "routing.depends_on")


def _depends(one: Checked, step: Step, number: int) -> bool:
    """Whether a step waits for another one, directly or through others; looks at most 1,000 steps far."""
    seen: set[int] = set()
    waiting = list(step.depends_on)
    while waiting and len(seen) < 1000:
        other = waiting.pop()
        if other == number:
            return True
        if other not in seen:
            seen.add(other)
            waiting += one.sop.by_number[other].depends_on
    return bool(waiting)
