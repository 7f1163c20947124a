"""The ways through a procedure as a graph: what leads where, what always comes before what. Pure and near linear.

Every step is two nodes, begun and done: a step that failed, was denied or passed over leads on without
being done. A node dominates another when every way from the start to the other leads through it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from procedo.core.model import Sop, Step
from procedo.core.routing import in_line

__all__ = ["END", "Dominators", "Flow", "circles"]

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
    def _edges(self) -> dict[tuple[int, bool], list[tuple[int, bool]]]:
        edges: dict[tuple[int, bool], list[tuple[int, bool]]] = {}
        for step in self.sop.steps:
            begun, done = (step.number, False), (step.number, True)
            onward = [(target, False) for target in self.onward[step.number] if target != END]
            edges[done] = onward
            edges[begun] = [done, *((target, False) for target in _after_failure(step))]
            if step.precondition is not None:
                edges[begun] += onward
        return edges

    @cached_property
    def dominators(self) -> "Dominators":
        """What always comes before what; nodes are (step, done)."""
        return Dominators(self._edges, (self.sop.steps[0].number, False))

    def always_before(self, earlier: int, later: int) -> bool:
        """True when `earlier` is completed on every way to `later`."""
        return self.dominators.dominates((earlier, True), (later, False))

    def passes_by(self, needed: int, waiting: int) -> bool:
        """True when some way leads to `waiting` while no branch beside it completes `needed`; both are reached.

        Of a switch one port is taken, of a fork every branch: where branches come together, each of them
        is on the way. Steps that depend on `needed` are told by themselves and end a way.
        """
        if self.always_before(needed, waiting):
            return False
        start = (self.dominators.parting(needed, waiting), False)
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

    def _choices_until(
        self, start: tuple[int, bool], needed: int, waiting: int
    ) -> dict[tuple[int, bool], tuple[tuple[tuple[int, bool], ...], ...] | None]:
        """The choices at each node that is reached before `needed` is done, last ones first; None: held up there."""
        found: dict[tuple[int, bool], tuple[tuple[tuple[int, bool], ...], ...] | None] = {}
        for node in _postorder(self._edges, start, frozenset({(needed, True), (waiting, False)})):
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


class Dominators:
    """The dominator tree of a graph, by the iterative algorithm of Cooper, Harvey and Kennedy."""

    def __init__(self, edges: Mapping[tuple[int, bool], Sequence[tuple[int, bool]]], start: tuple[int, bool]) -> None:
        order = _postorder(edges, start)
        self._index = {node: index for index, node in enumerate(order)}
        before: list[list[int]] = [[] for _ in order]
        for node in order:
            for target in edges[node]:
                before[self._index[target]].append(self._index[node])
        self._above = _immediate(before, len(order) - 1)
        self._entered, self._left, self._depth = self._intervals()

    def _intervals(self) -> tuple[list[int], list[int], list[int]]:
        """When a walk over the tree enters and leaves each node, and how deep each is."""
        root = len(self._above) - 1
        below: list[list[int]] = [[] for _ in self._above]
        for node, above in enumerate(self._above):
            if node != root:
                below[above].append(node)
        entered, left, depth = ([0] * len(below) for _ in range(3))
        clock = 0
        waiting = [(root, False)]
        while waiting:
            node, done = waiting.pop()
            clock += 1
            if done:
                left[node] = clock
                continue
            entered[node] = clock
            waiting.append((node, True))
            for child in below[node]:
                depth[child] = depth[node] + 1
                waiting.append((child, False))
        return entered, left, depth

    def dominates(self, above: tuple[int, bool], below: tuple[int, bool]) -> bool:
        """True when every way to `below` leads through `above`; False for nodes that no way leads to."""
        if above not in self._index or below not in self._index:
            return False
        first, second = self._index[above], self._index[below]
        return self._entered[first] <= self._entered[second] and self._left[second] <= self._left[first]

    def parting(self, one: int, other: int) -> int:
        """The last step that every way to either of two reached steps leads through: where their ways part."""
        first, second = self._index[(one, False)], self._index[(other, False)]
        while first != second:
            if self._depth[first] < self._depth[second]:
                first, second = second, first
            first = self._above[first]
        return self._nodes[first][0]

    @cached_property
    def _nodes(self) -> list[tuple[int, bool]]:
        return list(self._index)


def _postorder(
    edges: Mapping[tuple[int, bool], Sequence[tuple[int, bool]]],
    start: tuple[int, bool],
    without: frozenset[tuple[int, bool]] = frozenset(),
) -> list[tuple[int, bool]]:
    """The nodes that a start leads to, what a node leads to before itself; `without` are never left."""
    order: list[tuple[int, bool]] = []
    seen = {start}
    waiting: list[tuple[tuple[int, bool], Iterator[tuple[int, bool]]]] = [(start, iter(edges[start]))]
    while waiting:
        node, targets = waiting[-1]
        following = next((target for target in targets if target not in seen), None)
        if following is None:
            order.append(node)
            waiting.pop()
        else:
            seen.add(following)
            waiting.append((following, iter([] if following in without else edges[following])))
    return order


def _immediate(before: Sequence[Sequence[int]], root: int) -> list[int]:
    """The immediate dominator of each node, by its number in post-order."""
    above = [-1] * len(before)
    above[root] = root
    changed = True
    while changed:
        changed = False
        for node in range(root - 1, -1, -1):
            known = [other for other in before[node] if above[other] >= 0]
            meeting = known[0]
            for other in known[1:]:
                meeting = _meet(above, meeting, other)
            if above[node] != meeting:
                above[node] = meeting
                changed = True
    return above


def _meet(above: Sequence[int], one: int, other: int) -> int:
    while one != other:
        while one < other:
            one = above[one]
        while other < one:
            other = above[other]
    return one


def circles(edges: Mapping[int, Iterable[int]]) -> list[frozenset[int]]:
    """Sets of nodes that all lead to each other; a single node only when it leads to itself (Tarjan's algorithm)."""
    walk = _Tarjan(edges)
    for node in edges:
        walk.visit(node)
    return walk.found


class _Tarjan:
    """One walk over a graph, without recursion."""

    def __init__(self, edges: Mapping[int, Iterable[int]]) -> None:
        self.edges = edges
        self.number: dict[int, int] = {}
        self.low: dict[int, int] = {}
        self.stack: list[int] = []
        self.on_stack: set[int] = set()
        self.found: list[frozenset[int]] = []

    def visit(self, start: int) -> None:
        if start in self.number:
            return
        waiting = [(start, self._enter(start))]
        while waiting:
            node, targets = waiting[-1]
            for target in targets:
                if target not in self.number:
                    waiting.append((target, self._enter(target)))
                    break
                if target in self.on_stack:
                    self.low[node] = min(self.low[node], self.number[target])
            else:
                waiting.pop()
                if waiting:
                    above = waiting[-1][0]
                    self.low[above] = min(self.low[above], self.low[node])
                self._leave(node)

    def _enter(self, node: int) -> Iterator[int]:
        self.number[node] = self.low[node] = len(self.number)
        self.stack.append(node)
        self.on_stack.add(node)
        return iter([target for target in self.edges[node] if target in self.edges])

    def _leave(self, node: int) -> None:
        if self.low[node] != self.number[node]:
            return
        circle: set[int] = set()
        while node not in circle:
            other = self.stack.pop()
            self.on_stack.discard(other)
            circle.add(other)
        if len(circle) > 1 or node in self.edges[node]:
            self.found.append(frozenset(circle))
