"""What holds of a graph, whatever its nodes stand for: what dominates what, what goes round in a circle. Near linear.

A node dominates another when every way from the start to the other leads through it.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Generic, TypeVar

__all__ = ["Dominators", "circles", "postorder"]

N = TypeVar("N", bound=Hashable)


class Dominators(Generic[N]):
    """The dominator tree of a graph, by the iterative algorithm of Cooper, Harvey and Kennedy."""

    def __init__(self, edges: Mapping[N, Sequence[N]], start: N) -> None:
        order = postorder(edges, start)
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

    def dominates(self, above: N, below: N) -> bool:
        """True when every way to `below` leads through `above`; False for nodes that no way leads to."""
        if above not in self._index or below not in self._index:
            return False
        first, second = self._index[above], self._index[below]
        return self._entered[first] <= self._entered[second] and self._left[second] <= self._left[first]

    def parting(self, one: N, other: N) -> N:
        """The last node that every way to either of two reached nodes leads through: where their ways part."""
        first, second = self._index[one], self._index[other]
        while first != second:
            if self._depth[first] < self._depth[second]:
                first, second = second, first
            first = self._above[first]
        return self._nodes[first]

    @cached_property
    def _nodes(self) -> list[N]:
        return list(self._index)


def postorder(
    edges: Mapping[N, Sequence[N]],
    start: N,
    without: frozenset[N] = frozenset(),
) -> list[N]:
    """The nodes that a start leads to, what a node leads to before itself; `without` are never left."""
    order: list[N] = []
    seen = {start}
    waiting: list[tuple[N, Iterator[N]]] = [(start, iter(edges[start]))]
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


def circles(edges: Mapping[N, Iterable[N]]) -> list[frozenset[N]]:
    """Sets of nodes that all lead to each other; a single node only when it leads to itself (Tarjan's algorithm)."""
    walk = _Tarjan(edges)
    for node in edges:
        walk.visit(node)
    return walk.found


class _Tarjan(Generic[N]):
    """One walk over a graph, without recursion."""

    def __init__(self, edges: Mapping[N, Iterable[N]]) -> None:
        self.edges = edges
        self.number: dict[N, int] = {}
        self.low: dict[N, int] = {}
        self.stack: list[N] = []
        self.on_stack: set[N] = set()
        self.found: list[frozenset[N]] = []

    def visit(self, start: N) -> None:
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

    def _enter(self, node: N) -> Iterator[N]:
        self.number[node] = self.low[node] = len(self.number)
        self.stack.append(node)
        self.on_stack.add(node)
        return iter([target for target in self.edges[node] if target in self.edges])

    def _leave(self, node: N) -> None:
        if self.low[node] != self.number[node]:
            return
        circle: set[N] = set()
        while node not in circle:
            other = self.stack.pop()
            self.on_stack.discard(other)
            circle.add(other)
        if len(circle) > 1 or node in self.edges[node]:
            self.found.append(frozenset(circle))
