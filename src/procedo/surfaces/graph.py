"""The graph of a procedure: its outline, and that as Mermaid and as text, optionally with the state of a run.

Every picture of a procedure is made from this outline, and its edges follow the routing rules: a false `when` goes on
in line, then the ports of the switch, then `next`, then the line.
"""

from collections.abc import Iterator, Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from procedo.core.model import Kind, Mode, OnFailure, Sop, Step
from procedo.core.routing import gate_needed, in_line
from procedo.surfaces.text import line

__all__ = ["END", "MARKS", "Edge", "Node", "Outline", "StepMark", "edges", "graph_text", "mermaid", "outline"]

END: Final = 0
"""The target of an edge that ends its branch; no step has this number."""

StepMark: TypeAlias = Literal["done", "active", "waiting", "failed", "skipped", "cancelled"]
"""How a step stands in a run; a step without a mark was not reached."""

MARKS: Final[Mapping[StepMark, str]] = {
    "done": "done",
    "active": "under way",
    "waiting": "waits for a person",
    "failed": "failed",
    "skipped": "skipped",
    "cancelled": "cancelled",
}
"""Each mark in words."""


class Node(Struct, frozen=True):
    """A step as it is drawn. `gate`: somebody is asked before it; `of`: the procedure or capability that it calls."""

    number: int
    title: str
    kind: Kind
    gate: bool
    agent: str = ""
    of: str = ""
    for_each: str = ""


class Edge(Struct, frozen=True):
    """A way from one step to another (`END`: the branch ends), under `label` when it is not the plain one."""

    source: int
    target: int
    label: str = ""
    back: bool = False
    waits: bool = False


class Outline(Struct, frozen=True):
    """A procedure as it is drawn: its steps, and every way between them."""

    name: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


def outline(sop: Sop, mode: Mode) -> Outline:
    """The outline of a procedure. `mode` is the effective one, which decides on gates."""
    return Outline(sop.name, tuple(_node_of(sop, mode, step) for step in sop.steps), edges(sop))


def _node_of(sop: Sop, mode: Mode, step: Step) -> Node:
    return Node(
        step.number,
        step.title,
        step.kind,
        gate_needed(sop, mode, step),
        step.agent or sop.agent or "",
        step.sub_sop or step.capability or "",
        step.for_each or "",
    )


def edges(sop: Sop) -> tuple[Edge, ...]:
    """Every way through the procedure, in the order of its steps; dependencies come as edges that `wait`."""
    return tuple(edge for step in sop.steps for edge in _from(sop, step))


def _from(sop: Sop, step: Step) -> Iterator[Edge]:
    following = in_line(sop, step.number)
    line_end = END if step.terminal or following is None else following
    met = f"when {step.when.source}" if step.when is not None else ""
    if step.when is not None:
        yield _edge(step, line_end, f"when not {step.when.source}")
    if step.switch:
        for port in step.switch:
            guard = port.when.source if port.when is not None else "else"
            yield _edge(step, END if port.target is None else port.target, f"{port.name}: {guard}")
    elif step.next:
        fork = "fork" if len(step.next) > 1 else ""
        for target in step.next:
            yield _edge(step, target, met or fork)
    else:
        yield _edge(step, line_end, met)
    rule = step.on_failure
    if rule.kind is OnFailure.RETRY:
        yield Edge(step.number, step.number, f"on failure: {rule.retries} more", back=True)
    if rule.target is not None:
        yield _edge(step, rule.target, "on failure")
    if step.on_deny is not None:
        yield _edge(step, step.on_deny, "on deny")
    for number in step.depends_on:
        yield Edge(number, step.number, "needed by", waits=True)


def _edge(step: Step, target: int, label: str) -> Edge:
    return Edge(step.number, target, label, back=target != END and target <= step.number)


def mermaid(
    sop: Sop,
    mode: Mode,
    *,
    marks: Mapping[int, StepMark] | None = None,
    titles_only: bool = False,
) -> str:
    """A Mermaid flowchart. `mode` is the effective one, which decides on gates; `titles_only` keeps conditions back."""
    marks = marks or {}
    drawn = outline(sop, mode)
    lines = ["flowchart TD"]
    lines += [text for node in drawn.nodes for text in _node(node)]
    if any(edge.target == END for edge in drawn.edges):
        lines.append("  finish([end])")
    gated = frozenset(node.number for node in drawn.nodes if node.gate)
    lines += [_arrow(edge, titles_only=titles_only, gated=gated) for edge in drawn.edges]
    for mark, style in _STYLES.items():
        if chosen := [f"s{node.number}" for node in drawn.nodes if marks.get(node.number) == mark]:
            lines += [f"  classDef {mark} {style}", f"  class {','.join(chosen)} {mark}"]
    return "\n".join(lines)


_STYLES: Final[Mapping[StepMark, str]] = {
    "done": "fill:#d7f0dd,stroke:#2d7a46",
    "active": "fill:#fff1c9,stroke:#a87900,stroke-width:3px",
    "waiting": "fill:#ffe0cc,stroke:#b34700,stroke-width:3px",
    "failed": "fill:#f7d4d4,stroke:#a32020",
    "skipped": "fill:#eceff3,stroke:#6b7688,stroke-dasharray:4",
    "cancelled": "fill:#eceff3,stroke:#6b7688",
}
_SHAPES: Final[Mapping[Kind, tuple[str, str]]] = {
    Kind.EXECUTE: ("[", "]"),
    Kind.CHECKPOINT: ("{{", "}}"),
    Kind.CAPABILITY: ("[/", "/]"),
    Kind.SOP: ("[[", "]]"),
    Kind.WAIT: ("(", ")"),
}


def _node(node: Node) -> Iterator[str]:
    opening, closing = _SHAPES[node.kind]
    detail = f"<br/>{_quoted(node.of)}" if node.kind is Kind.SOP else ""
    detail += f"<br/>for each of {_quoted(node.for_each)}" if node.for_each else ""
    yield f'  s{node.number}{opening}"{node.number}. {_quoted(node.title)}{detail}"{closing}'
    if node.gate:
        yield f'  g{node.number}{{"approval"}} --> s{node.number}'


def _arrow(edge: Edge, *, titles_only: bool, gated: frozenset[int]) -> str:
    if edge.waits:
        return f"  s{edge.source} -.->|needed by| s{edge.target}"
    again = edge.source == edge.target and edge.label.startswith("on failure")
    target = (
        "finish"
        if edge.target == END
        else f"g{edge.target}"
        if edge.target in gated and not again
        else f"s{edge.target}"
    )
    label = "" if titles_only and not edge.label.startswith("on ") else _quoted(edge.label)
    return f'  s{edge.source} -->|"{label}"| {target}' if label else f"  s{edge.source} --> {target}"


def _quoted(text: str) -> str:
    """Text that cannot leave its Mermaid label: the characters that mean something there become entities."""
    for character, entity in (
        ("&", "&amp;"),
        ('"', "&quot;"),
        ("<", "&lt;"),
        (">", "&gt;"),
        ("|", "&#124;"),
        ("`", "&#96;"),
    ):
        text = text.replace(character, entity)
    return line(text, 120)


_SIGNS: Final[Mapping[StepMark, str]] = {
    "done": "x",
    "active": ">",
    "waiting": "?",
    "failed": "!",
    "skipped": "-",
    "cancelled": "~",
}


def graph_text(sop: Sop, mode: Mode, *, marks: Mapping[int, StepMark] | None = None) -> str:
    """The graph as lines for a terminal: each step, its gate, and where it leads. Steps of a run carry its marks."""
    lines = []
    drawn = outline(sop, mode)
    for node in drawn.nodes:
        ways = [edge for edge in drawn.edges if edge.source == node.number and not edge.waits]
        needed = [edge.source for edge in drawn.edges if edge.target == node.number and edge.waits]
        sign = "" if marks is None else f"[{_SIGNS[marks[node.number]] if node.number in marks else ' '}] "
        gate = "gate, then " if node.gate else ""
        what = f" = procedure {node.of}" if node.kind is Kind.SOP else ""
        many = f" for each of {node.for_each}" if node.for_each else ""
        kind = "" if node.kind is Kind.EXECUTE else f" ({node.kind})"
        needs = f" needs {', '.join(map(str, needed))}" if needed else ""
        lines.append(sign + line(f"{node.number}. {gate}{node.title}{kind}{what}{many}{needs}"))
        lines += [f"{' ' * len(sign)}   {_way(edge)}" for edge in ways]
    return "\n".join(lines)


def _way(edge: Edge) -> str:
    target = "end" if edge.target == END else str(edge.target)
    label = f"  [{line(edge.label)}]" if edge.label else ""
    return f"{'=> back to' if edge.back else '->'} {target}{label}"
