"""A procedure as SVG, optionally with how a run stands: for pages, for files, for people who listen to it.

No script and no style in attributes, so that it stands in a page with a strict policy; `STYLE` belongs to it. All text
of the procedure is escaped. Every step is an image of its own with a name, and the ways between them are told in words.
"""

import math
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from html import escape
from importlib.resources import files
from typing import Final

from msgspec import Struct

from procedo.core.model import Kind
from procedo.surfaces.graph import END, MARKS, Edge, Node, Outline, StepMark
from procedo.surfaces.layout import Box, Layout, Line, Point, layered
from procedo.surfaces.redaction import masked_text
from procedo.surfaces.text import line

__all__ = ["STYLE", "drawing"]

STYLE: Final = files("procedo.surfaces").joinpath("drawing.css").read_text(encoding="utf-8")
"""The style sheet of drawings, in light and dark."""

_WIDTH: Final = 236.0
_HEIGHT: Final = 54.0
_END: Final = (46.0, 24.0)
_MARGIN: Final = 22.0
_LETTER: Final = 7.0
_SMALL_LETTER: Final = 6.1
_TITLE_LETTERS: Final = 28
_BROAD: Final = frozenset("mwMW%@—")
_THIN: Final = frozenset("ijlI.,:;!|'")
_NOTE_LETTERS: Final = 33
_LABEL_LETTERS: Final = 30
_FAR: Final = 40
"""Steps that lie further apart than this are joined by two signs and no line."""
_SIGNS: Final[Mapping[StepMark, str]] = {
    "done": "✓",
    "active": "●",
    "waiting": "?",
    "failed": "✕",
    "skipped": "↷",
    "cancelled": "■",
}


class _Way(Struct, frozen=True):
    """Every edge between the same two places as one line."""

    source: int
    target: int
    label: str
    waits: bool

    @property
    def apart(self) -> tuple[str, int]:
        """What stands at its end when that is no step: the end, or the sign of a step far away."""
        return f"from {self.source}", self.target


def drawing(
    outline: Outline,
    marks: Mapping[int, StepMark] | None = None,
    *,
    taken: Collection[tuple[int, int]] = (),
    link: Callable[[int], str | None] | None = None,
    name: str = "graph",
    standalone: bool = False,
) -> str:
    """The SVG of a procedure.

    `marks` says how each step stands in a run, `taken` which ways it went. `link` gives the address behind a step.
    `name` begins the ids inside, so that several drawings can stand in a page; `standalone` is for a file of its own.
    """
    ways, far, layout = _laid_out(outline)
    body = [
        *_lines([way for way in ways if way.source != way.target], layout, taken, name),
        *_ends(far, layout),
        *(part for node in outline.nodes for part in _step(node, layout.boxes[node.number], marks, link)),
        *(part for way in ways if way.source == way.target for part in _again(way, layout.boxes[way.source], name)),
    ]
    return "\n".join([*_head(outline, marks, layout, name, standalone=standalone), *body, "</g>", "</svg>"])


@lru_cache(maxsize=128)
def _laid_out(outline: Outline) -> tuple[tuple[_Way, ...], frozenset[_Way], Layout]:
    """The ways, those of them that lead far or to the end, and where everything stands: the same for every run."""
    ways = _ways(outline)
    known = {node.number: position for position, node in enumerate(outline.nodes)}
    far = frozenset(way for way in ways if way.target not in known or abs(known[way.source] - known[way.target]) > _FAR)
    boxes: list[Box] = []
    for node in outline.nodes:
        boxes.append(Box(node.number, _WIDTH, _HEIGHT))
        boxes += [Box(way.apart, *_END) for way in ways if way in far and way.source == node.number]
    lines = [
        Line(way.source, way.apart if way in far else way.target, _label_width(way.label))
        for way in ways
        if way.source != way.target
    ]
    return ways, far, layered(boxes, lines)


def _ways(outline: Outline) -> tuple[_Way, ...]:
    """One way for each two steps; a dependency is a way of its own only where no other one leads along it."""
    between: dict[tuple[int, int], list[Edge]] = {}
    for edge in outline.edges:
        between.setdefault((edge.source, edge.target), []).append(edge)
    ways = []
    for (source, target), found in between.items():
        leading = [edge for edge in found if not edge.waits]
        labels = dict.fromkeys(line(masked_text(edge.label)) for edge in leading or found)
        ways.append(_Way(source, target, " · ".join(filter(None, labels)), waits=not leading))
    return tuple(ways)


def _label_width(text: str) -> float:
    return _letters(_cut(text, _LABEL_LETTERS)) * _SMALL_LETTER + 8 if text else 0.0


def _letters(text: str) -> int:
    """How many usual letters wide a text is: those of some scripts are as wide as two."""
    return math.ceil(sum(map(_letter, text)))


def _letter(letter: str) -> float:
    if unicodedata.east_asian_width(letter) in "WF":
        return 2.0
    if letter in _BROAD:
        return 1.9
    if letter in _THIN:
        return 0.7
    return 1.5 if letter.isupper() else 1.0


def _cut(text: str, most: int) -> str:
    if _letters(text) <= most:
        return text
    kept = text
    while _letters(kept) >= most:
        kept = kept[:-1]
    return f"{kept.rstrip()}…"


def _said(text: str) -> str:
    """Text as it may stand in markup, in one line."""
    return escape(line(masked_text(text)))


def _at(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


# --- the whole ------------------------------------------------------------------------------------


def _head(
    outline: Outline, marks: Mapping[int, StepMark] | None, layout: Layout, name: str, *, standalone: bool
) -> Iterator[str]:
    wide, high = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
    space = ' xmlns="http://www.w3.org/2000/svg"' if standalone else ""
    size = f'viewBox="0 0 {_at(wide)} {_at(high)}" width="{_at(wide)}" height="{_at(high)}"'
    named = f'aria-labelledby="{name}-title" aria-describedby="{name}-desc"'
    kind = "run" if marks is not None else "plain"
    yield f'<svg{space} class="drawing {kind}" {size} role="group" {named}>'
    yield f'<title id="{name}-title">Procedure {_said(outline.name)}, drawn</title>'
    yield f'<desc id="{name}-desc">{_in_words(outline)}</desc>'
    if standalone:
        yield f"<style>{STYLE}</style>"
        yield f'<rect class="ground" width="{_at(wide)}" height="{_at(high)}"/>'
    for tip in ("tip", "tip-taken"):
        yield (
            f'<defs><marker id="{name}-{tip}" class="{tip}" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="9" '
            'markerHeight="9" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 .5 8 4 0 7.5z"/></marker></defs>'
        )
    yield f'<g transform="translate({_at(_MARGIN)} {_at(_MARGIN)})">'


def _in_words(outline: Outline) -> str:
    """Every way, for those who do not see the lines."""
    told = []
    for edge in outline.edges:
        target = "to the end" if edge.target == END else f"to step {edge.target}"
        how = f", {_said(edge.label)}" if edge.label and not edge.waits else ""
        verb = "is needed by" if edge.waits else "leads back" if edge.back else "leads"
        target = f"step {edge.target}" if edge.waits else target
        told.append(f"Step {edge.source} {verb} {target}{how}.")
    return " ".join(told)


# --- ways -----------------------------------------------------------------------------------------


def _lines(ways: list[_Way], layout: Layout, taken: Collection[tuple[int, int]], name: str) -> Iterator[str]:
    drawn = sorted(
        zip(ways, layout.lines, layout.labels, strict=True), key=lambda one: (one[0].source, one[0].target) in taken
    )
    for way, points, _ in drawn:
        went = (way.source, way.target) in taken
        kind = "way taken" if went else "way waits" if way.waits else "way"
        tip = f"{name}-tip-taken" if went else f"{name}-tip"
        title = f"<title>{_said(way.label)}</title>" if way.label else ""
        yield f'<path class="{kind}" aria-hidden="true" d="{_curve(points)}" marker-end="url(#{tip})">{title}</path>'
    for way, _, spot in drawn:
        if spot is not None:
            text = escape(_cut(way.label, _LABEL_LETTERS))
            title = f"<title>{_said(way.label)}</title>"
            yield (
                f'<text class="label" aria-hidden="true" x="{_at(spot[0])}" y="{_at(spot[1] + 4)}">{text}{title}</text>'
            )


def _curve(points: tuple[Point, ...]) -> str:
    """From row to row in a bend that begins and ends upright; straight through the place of the line in a row."""
    (x, y), *rest = points
    parts = [f"M{_at(x)} {_at(y)}"]
    for number, (a, b) in enumerate(rest):
        if number % 2:
            parts.append(f"L{_at(a)} {_at(b)}")
        else:
            half = (y + b) / 2
            parts.append(f"C{_at(x)} {_at(half)} {_at(a)} {_at(half)} {_at(a)} {_at(b)}")
        x, y = a, b
    return "".join(parts)


def _ends(far: Collection[_Way], layout: Layout) -> Iterator[str]:
    for way in sorted(far, key=lambda way: way.apart):
        x, y = layout.boxes[way.apart]
        wide, high = _END
        arrow = "↑" if way.target < way.source else "↓"
        text = "end" if way.target == END else f"{arrow} {way.target}"
        yield f'<g class="end" aria-hidden="true"><rect x="{_at(x - wide / 2)}" y="{_at(y - high / 2)}" '
        yield f'width="{_at(wide)}" height="{_at(high)}" rx="12"/><text x="{_at(x)}" y="{_at(y + 4)}">{text}</text></g>'


def _again(way: _Way, place: Point, name: str) -> Iterator[str]:
    """The loop of a step that is tried again."""
    x, y = place[0] + _WIDTH / 2, place[1]
    path = f"M{_at(x)} {_at(y - 9)}c20 -8 20 26 1 18"
    yield f'<path class="way" aria-hidden="true" d="{path}" marker-end="url(#{name}-tip)">'
    yield f"<title>{_said(way.label)}</title></path>"


# --- steps ----------------------------------------------------------------------------------------


def _step(
    node: Node, place: Point, marks: Mapping[int, StepMark] | None, link: Callable[[int], str | None] | None
) -> Iterator[str]:
    mark = None if marks is None else marks.get(node.number)
    state = "" if marks is None else f": {MARKS[mark] if mark is not None else 'not reached'}"
    gate = ", asks a person before it begins" if node.gate else ""
    title = f"Step {node.number}, {node.title}, {_note(node)}{gate}{state}"
    address = link(node.number) if link is not None else None
    x, y = place[0] - _WIDTH / 2, place[1] - _HEIGHT / 2
    if address is not None:
        yield f'<a href="{escape(address)}" aria-label="{_said(title)}">'
    yield f'<g class="step {mark or "ahead"} {node.kind}" role="img" aria-label="{_said(title)}">'
    yield f"<title>{_said(title)}</title>"
    yield from _frame(node, x, y)
    name = _named(node, _TITLE_LETTERS - (0 if mark is None else 3))
    yield f'<text class="name" x="{_at(x + 14)}" y="{_at(y + 22)}">{name}</text>'
    note = escape(_cut(line(_note(node)), _NOTE_LETTERS))
    yield f'<text class="note" x="{_at(x + 14)}" y="{_at(y + 40)}">{note}</text>'
    if mark is not None:
        yield f'<text class="sign" x="{_at(x + _WIDTH - 16)}" y="{_at(y + 23)}">{_SIGNS[mark]}</text>'
    yield "</g>"
    if address is not None:
        yield "</a>"


def _named(node: Node, most: int) -> str:
    return escape(_cut(f"{node.number}. {line(masked_text(node.title))}", most))


def _frame(node: Node, x: float, y: float) -> Iterator[str]:
    """The shape of a step: cards behind it for items, a second edge for a procedure, a diamond for a gate."""
    radius = {Kind.CHECKPOINT: 14, Kind.WAIT: 27}.get(node.kind, 8)
    size = f'width="{_at(_WIDTH)}" height="{_at(_HEIGHT)}" rx="{radius}"'
    if node.for_each:
        yield f'<rect class="behind" x="{_at(x + 6)}" y="{_at(y - 6)}" {size}/>'
        yield f'<rect class="behind" x="{_at(x + 3)}" y="{_at(y - 3)}" {size}/>'
    yield f'<rect class="box" x="{_at(x)}" y="{_at(y)}" {size}/>'
    if node.kind is Kind.SOP:
        sides = (x + 6, x + _WIDTH - 6)
        yield f'<path class="edge" d="{"".join(f"M{_at(side)} {_at(y)}v{_at(_HEIGHT)}" for side in sides)}"/>'
    if node.gate or node.kind is Kind.CHECKPOINT:
        yield f'<path class="gate" d="M{_at(x)} {_at(y + _HEIGHT / 2 - 9)}l9 9 -9 9 -9 -9z"/>'


def _note(node: Node) -> str:
    """What a step is, in a few words."""
    of = f" {masked_text(node.of)}" if node.of else ""
    what = {
        Kind.EXECUTE: f"agent {node.agent}" if node.agent else "host",
        Kind.CHECKPOINT: "checkpoint",
        Kind.CAPABILITY: f"capability{of}",
        Kind.SOP: f"procedure{of}",
        Kind.WAIT: "wait",
    }[node.kind]
    return f"{what}, for each of {masked_text(node.for_each)}" if node.for_each else what
