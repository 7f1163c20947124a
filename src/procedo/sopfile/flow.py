"""The ways through a procedure as a graph: what leads where, what always comes before what. Pure.

Every step is two nodes, begun and done: a step that failed, was denied or passed over leads on without
being done.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

from procedo.core.model import Sop, Step
from procedo.core.routing import in_line
from procedo.sopfile.graphs import Dominators, postorder

__all__ = ["END", "Flow"]

Node: TypeAlias = tuple[int, bool]
"""A step by its number, begun or (True) done."""

END: Final = 0
"""The target that means the end; step numbers begin at 1."""


def _choices(sop: Sop, step: Step) -> tuple[tuple[int, ...], ...]:
    """What may follow a step that succeeded: of the choices one is taken, and of that every step."""
    line = END if step.terminal else in_line(sop, step.number) or END
    choices: list[tuple[int, ...]]
    if step.switch:
        choices = [(port.target if port.target is not None else END,) for port in step.switch]
    else:
        choices = [step.next or (line,)]
    if step.when is not None:
        choices.append((line,))
    return tuple(dict.fromkeys(choices))


def _after_success(sop: Sop, step: Step) -> tuple[int, ...]:
    return tuple(dict.fromkeys(target for choice in _choices(sop, step) for target in choice))


def _after_failure(step: Step) -> tuple[int, ...]:
    return tuple(target for target in (step.on_failure.target, step.on_deny) if target is not None)


@dataclass(frozen=True)
class Flow:
    """The graph of one procedure."""

    sop: Sop

    @cached_property
    def onward(self) -> Mapping[int, tuple[int, ...]]:
        """Where each step leads when it succeeds; `END` among them where it may be the last."""
        return {step.number: _after_success(self.sop, step) for step in self.sop.steps}

    @cached_property
    def ways(self) -> Mapping[int, tuple[int, ...]]:
        """Where each step can lead at all, failures and denials included."""
        return {
            step.number: tuple(dict.fromkeys((*self.onward[step.number], *_after_failure(step))))
            for step in self.sop.steps
        }

    @cached_property
    def reached(self) -> frozenset[int]:
        """The steps that some way leads to."""
        return self.reachable(self.sop.steps[0].number)

    def reachable(self, start: int, without: frozenset[int] = frozenset()) -> frozenset[int]:
        """The steps that can be reached from one, itself included; `without` are never left."""
        seen: set[int] = set()
        waiting = [start]
        while waiting:
            number = waiting.pop()
            if number not in seen and number != END:
                seen.add(number)
                if number not in without:
                    waiting += self.ways[number]
        return frozenset(seen)

    @cached_property
    def _edges(self) -> dict[Node, list[Node]]:
        edges: dict[Node, list[Node]] = {}
        for step in self.sop.steps:
            begun, done = (step.number, False), (step.number, True)
            onward = [(target, False) for target in self.onward[step.number] if target != END]
            edges[done] = onward
            edges[begun] = [done, *((target, False) for target in _after_failure(step))]
            if step.precondition is not None:
                edges[begun] += onward
        return edges

    @cached_property
    def dominators(self) -> Dominators[Node]:
        """What always comes before what; nodes are (step, done)."""
        return Dominators(self._edges, (self.sop.steps[0].number, False))

    def always_before(self, earlier: int, later: int) -> bool:
        """True when `earlier` is completed on every way to `later`."""
        return self.dominators.dominates((earlier, True), (later, False))

    def parting(self, one: int, other: int) -> int:
        """The last step that every way to either of two reached steps leads through: where their ways part."""
        return self.dominators.parting((one, False), (other, False))[0]

    def passes_by(self, needed: int, waiting: int) -> bool:
        """True when some way leads to `waiting` while no branch beside it completes `needed`; both are reached.

        Of a switch one port is taken, of a fork every branch: where branches come together, each of them
        is on the way. Steps that depend on `needed` are told by themselves and end a way.
        """
        if self.always_before(needed, waiting):
            return False
        start = (self.parting(needed, waiting), False)
        choices = self._choices_until(start, needed, waiting)
        avoid, arrive = {(END, False), (waiting, False)}, {(waiting, False)}
        avoid.update(node for node, found in choices.items() if found is None)
        size = 0
        while size != len(avoid) + len(arrive):
            size = len(avoid) + len(arrive)
            for node, found in choices.items():
                for choice in found or ():
                    if avoid.issuperset(choice):
                        avoid.add(node)
                        arrive.update(() if arrive.isdisjoint(choice) else (node,))
        return start in arrive

    def _choices_until(self, start: Node, needed: int, waiting: int) -> dict[Node, tuple[tuple[Node, ...], ...] | None]:
        """The choices at each node that is reached before `needed` is done, last ones first; None: held up there."""
        found: dict[Node, tuple[tuple[Node, ...], ...] | None] = {}
        for node in postorder(self._edges, start, frozenset({(needed, True), (waiting, False)})):
            step = self.sop.by_number[node[0]]
            if node in ((needed, True), (waiting, False)):
                continue
            if not node[1] and needed in step.depends_on:
                found[node] = None
                continue
            onward = tuple(tuple((to, False) for to in choice) for choice in _choices(self.sop, step))
            if not node[1]:
                skipped = onward if step.precondition is not None else ()
                onward = (((step.number, True),), *(((to, False),) for to in _after_failure(step)), *skipped)
            found[node] = onward
        return found

    def only_behind(self, earlier: int, later: int) -> bool:
        """True when nothing leads to the completion of `later` but through `earlier`, or nothing at all does."""
        return later not in self.reached or self.dominators.dominates((earlier, False), (later, True))
