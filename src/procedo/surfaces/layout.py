"""Places boxes in rows and leads lines between them: a small layered layout, deterministic and without a network.

Boxes stand in even rows, each below everything that leads to it; the rows between hold the labels of lines. A line that
passes a row takes a place of its own there, so no line crosses a box and no two labels meet. Lines that lead back are
laid like the others and drawn the other way round. Lengths are pixels.
"""

from bisect import bisect_right, insort
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, TypeAlias

from msgspec import Struct, field

__all__ = ["Box", "Layout", "Line", "Point", "layered"]

Point: TypeAlias = tuple[float, float]

_ENOUGH: Final = 3
"""After that many sweeps without fewer crossings none is expected."""
_GAP_X: Final = 26.0
_GAP_Y: Final = 19.0
_LINE_WIDTH: Final = 12.0
_LABEL_HEIGHT: Final = 18.0
_SWEEPS: Final = 16
_STRAIGHT: Final = (1.0, 2.0, 8.0)
"""How much a line wants to be straight between two boxes, between a box and a row that it passes, between two rows."""
_PORT: Final = 18.0
"""How far apart lines leave the same box."""


class Box(Struct, frozen=True):
    """Something to place. `key` names it in lines."""

    key: Hashable
    width: float
    height: float


class Line(Struct, frozen=True):
    """A line from one box to another one; `label_width` is 0 when it has no label."""

    source: Hashable
    target: Hashable
    label_width: float = 0.0


class Layout(Struct, frozen=True):
    """Where everything is: middles of boxes and labels, and the points of each line in the order of its direction.

    `labels` has None for a line without one. Points come in pairs: between the two of a pair the line is straight.
    """

    width: float
    height: float
    boxes: Mapping[Hashable, Point]
    lines: tuple[tuple[Point, ...], ...]
    labels: tuple[Point | None, ...]


class _Place(Struct, eq=False):
    """A box, or the place of a line in a row."""

    row: int
    width: float
    height: float
    passing: bool = False
    above: list["_Place"] = field(default_factory=list)
    below: list["_Place"] = field(default_factory=list)
    order: float = 0.0
    x: float = 0.0
    y: float = 0.0


def layered(boxes: Sequence[Box], lines: Sequence[Line]) -> Layout:
    """Lay out. Of a line between two boxes, the one that comes first in `boxes` stands above; none may meet itself."""
    index = {box.key: number for number, box in enumerate(boxes)}
    ends = [sorted((line.source, line.target), key=index.__getitem__) for line in lines]
    rows_of = _rows([box.key for box in boxes], ends)
    places = {box.key: _Place(rows_of[box.key], box.width, box.height) for box in boxes}
    chains = [
        _chain(places[upper], places[lower], line, upper) for (upper, lower), line in zip(ends, lines, strict=True)
    ]
    rows = _ordered(places.values(), chains)
    _place_across(rows)
    height = _place_down(rows)
    width = _shifted(rows)
    return Layout(
        width,
        height,
        {key: (place.x, place.y) for key, place in places.items()},
        tuple(_points(chain, line, upper) for chain, line, (upper, _) in zip(chains, lines, ends, strict=True)),
        tuple(_label_at(chain, line, upper) for chain, line, (upper, _) in zip(chains, lines, ends, strict=True)),
    )


def _rows(keys: Sequence[Hashable], ends: Iterable[Sequence[Hashable]]) -> dict[Hashable, int]:
    """The row of each box: two below the lowest one that leads to it; without any, that of the box before it."""
    above: dict[Hashable, list[Hashable]] = {key: [] for key in keys}
    for upper, lower in ends:
        above[lower].append(upper)
    rows: dict[Hashable, int] = {}
    previous = 0
    for key in keys:
        rows[key] = max((rows[upper] + 2 for upper in above[key]), default=previous)
        previous = rows[key]
    return rows


def _chain(upper: _Place, lower: _Place, line: Line, first: Hashable) -> list[_Place]:
    """The places of a line from above to below; its label is in the row next to its source."""
    chain = [upper]
    labelled = upper.row + 1 if line.source == first else lower.row - 1
    for row in range(upper.row + 1, lower.row):
        label = row == labelled and line.label_width > 0
        width, height = (line.label_width, _LABEL_HEIGHT) if label else (_LINE_WIDTH, 0.0)
        chain.append(_Place(row, width, height, passing=True))
    chain.append(lower)
    for one, other in pairwise(chain):
        one.below.append(other)
        other.above.append(one)
    return chain


def _ordered(boxes: Iterable[_Place], chains: Iterable[Sequence[_Place]]) -> list[list[_Place]]:
    """The places of each row from left to right, with few crossings: the best of some sweeps by barycentre."""
    rows: dict[int, list[_Place]] = {}
    for place in (*boxes, *(place for chain in chains for place in chain[1:-1])):
        rows.setdefault(place.row, []).append(place)
    found = [rows[number] for number in sorted(rows)]
    _count_off(found)
    best, fewest, idle = [list(row) for row in found], _crossings(found), 0
    for sweep in range(_SWEEPS):
        if not fewest or idle > _ENOUGH:
            break
        down = sweep % 2 == 0
        for row in found if down else reversed(found):
            row.sort(key=lambda place: _middle(place, place.above if down else place.below))
            _count_off([row])
        crossings = _crossings(found)
        idle += 1
        if crossings < fewest:
            best, fewest, idle = [list(row) for row in found], crossings, 0
    _count_off(best)
    return best


def _count_off(rows: Iterable[Sequence[_Place]]) -> None:
    for row in rows:
        for number, place in enumerate(row):
            place.order = float(number)


def _middle(place: _Place, others: Sequence[_Place]) -> float:
    return sum(other.order for other in others) / len(others) if others else place.order


def _crossings(rows: Iterable[Sequence[_Place]]) -> int:
    """How many lines cross between neighbouring rows: pairs of which one begins further left and ends further right."""
    count = 0
    for row in rows:
        ended: list[float] = []
        for place in row:
            ends = sorted(other.order for other in place.below)
            count += sum(len(ended) - bisect_right(ended, end) for end in ends)
            for end in ends:
                insort(ended, end)
    return count


def _place_across(rows: Sequence[Sequence[_Place]]) -> None:
    """Each place as near as can be below and above its neighbours, in the order of its row."""
    for row in rows:
        _spread(row, [(0.0, 1.0)] * len(row))
    for sweep in range(_SWEEPS + 1):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            _spread(row, [_wanted(place, sweep) for place in row])


def _wanted(place: _Place, sweep: int) -> tuple[float, float]:
    """Where a place would stand best for its neighbours, and how much that weighs."""
    if sweep == _SWEEPS:
        neighbours = [*place.above, *place.below]
    else:
        neighbours = (place.above or place.below) if sweep % 2 == 0 else (place.below or place.above)
    weights = [_STRAIGHT[place.passing + other.passing] for other in neighbours]
    if not weights:
        return place.x, 1.0
    return sum(other.x * weight for other, weight in zip(neighbours, weights, strict=True)) / sum(weights), sum(weights)


def _spread(row: Sequence[_Place], wanted: Sequence[tuple[float, float]]) -> None:
    """Nearest to what is wanted (least squares) without overlap: groups that touch move as one."""
    offsets = [0.0]
    for left, right in pairwise(row):
        offsets.append(offsets[-1] + (left.width + right.width) / 2 + _GAP_X)
    groups: list[tuple[float, float, int]] = []
    for (want, weight), offset in zip(wanted, offsets, strict=True):
        groups.append((want - offset, weight, 1))
        while len(groups) > 1 and groups[-2][0] > groups[-1][0]:
            (right_at, more, members), (left_at, some, others) = groups.pop(), groups.pop()
            both = (left_at * some + right_at * more) / (some + more)
            groups.append((both, some + more, members + others))
    bases = [base for base, _, count in groups for _ in range(count)]
    for place, base, offset in zip(row, bases, offsets, strict=True):
        place.x = base + offset


def _place_down(rows: Sequence[Sequence[_Place]]) -> float:
    top = 0.0
    for number, row in enumerate(rows):
        height = max(place.height for place in row)
        for place in row:
            place.y = top + height / 2
            place.height = place.height or height
        top += height + (_GAP_Y if number < len(rows) - 1 else 0)
    return top


def _shifted(rows: Sequence[Sequence[_Place]]) -> float:
    """Move everything so that it begins at 0; returns the width."""
    every = [place for row in rows for place in row]
    left = min(place.x - place.width / 2 for place in every)
    for place in every:
        place.x -= left
    return max(place.x + place.width / 2 for place in every)


def _points(chain: Sequence[_Place], line: Line, first: Hashable) -> tuple[Point, ...]:
    start, end = chain[0], chain[-1]
    points: list[Point] = [(_port(start, start.below, chain[1]), start.y + start.height / 2)]
    for place in chain[1:-1]:
        points += [(place.x, place.y - place.height / 2), (place.x, place.y + place.height / 2)]
    points.append((_port(end, end.above, chain[-2]), end.y - end.height / 2))
    return tuple(points) if line.source == first else tuple(reversed(points))


def _port(box: _Place, neighbours: Sequence[_Place], one: _Place) -> float:
    """Where on the edge of a box its line to one of its neighbours begins."""
    across = sorted(neighbours, key=lambda place: place.x)
    apart = min(_PORT, box.width * 0.8 / len(across))
    return box.x + (across.index(one) - (len(across) - 1) / 2) * apart


def _label_at(chain: Sequence[_Place], line: Line, first: Hashable) -> Point | None:
    if not line.label_width:
        return None
    place = chain[1] if line.source == first else chain[-2]
    return place.x, place.y
