"""The graph of a procedure as Mermaid and as text, optionally with the state of a run.

Both are drawn from the same edges, and the edges follow the routing rules: a false `when` goes on in line, then the
ports of the switch, then `next`, then the line.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from procedo.core.model import Kind, Mode, OnFailure, Sop, Step
from procedo.core.routing import gate_needed, in_line
from procedo.surfaces.text import line

__all__ = ["END", "Edge", "StepMark", "edges", "graph_text", "mermaid"]

END: Final = 0
"""The target of an edge that ends its branch; no step has this number."""

StepMark: TypeAlias = Literal["done", "active", "waiting", "failed"]
"""How a step stands in a run; a step without a mark was not reached."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A way from one step to another (`END`: the branch ends), under `label` when it is not the plain one."""

    source: int
    target: int
    label: str = ""
    back: bool = False
    waits: bool = False


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
    lines = ["flowchart TD"]
    lines += [text for step in sop.steps for text in _node(sop, mode, step)]
    ways = edges(sop)
    if any(edge.target == END for edge in ways):
        lines.append("  finish([end])")
    lines += [_arrow(edge, titles_only=titles_only, gated=_gated(sop, mode)) for edge in ways]
    for mark, style in _STYLES.items():
        if chosen := [f"s{number}" for number in sop.by_number if marks.get(number) == mark]:
            lines += [f"  classDef {mark} {style}", f"  class {','.join(chosen)} {mark}"]
    return "\n".join(lines)


_STYLES: Final[Mapping[StepMark, str]] = {
    "done": "fill:#d7f0dd,stroke:#2d7a46",
    "active": "fill:#fff1c9,stroke:#a87900,stroke-width:3px",
    "waiting": "fill:#ffe0cc,stroke:#b34700,stroke-width:3px",
    "failed": "fill:#f7d4d4,stroke:#a32020",
}
_SHAPES: Final[Mapping[Kind, tuple[str, str]]] = {
    Kind.EXECUTE: ("[", "]"),
    Kind.CHECKPOINT: ("{{", "}}"),
    Kind.CAPABILITY: ("[/", "/]"),
    Kind.SOP: ("[[", "]]"),
    Kind.WAIT: ("(", ")"),
}


def _gated(sop: Sop, mode: Mode) -> frozenset[int]:
    return frozenset(step.number for step in sop.steps if gate_needed(sop, mode, step))


def _node(sop: Sop, mode: Mode, step: Step) -> Iterator[str]:
    opening, closing = _SHAPES[step.kind]
    detail = f"<br/>{_quoted(step.sub_sop)}" if step.sub_sop else ""
    detail += f"<br/>for each of {_quoted(step.for_each)}" if step.for_each else ""
    yield f'  s{step.number}{opening}"{step.number}. {_quoted(step.title)}{detail}"{closing}'
    if gate_needed(sop, mode, step):
        yield f'  g{step.number}{{"approval"}} --> s{step.number}'


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


_SIGNS: Final[Mapping[StepMark, str]] = {"done": "x", "active": ">", "waiting": "?", "failed": "!"}


def graph_text(sop: Sop, mode: Mode, *, marks: Mapping[int, StepMark] | None = None) -> str:
    """The graph as lines for a terminal: each step, its gate, and where it leads. Steps of a run carry its marks."""
    lines = []
    for step in sop.steps:
        sign = "" if marks is None else f"[{_SIGNS[marks[step.number]] if step.number in marks else ' '}] "
        gate = "gate, then " if gate_needed(sop, mode, step) else ""
        what = f" = procedure {step.sub_sop}" if step.sub_sop else ""
        many = f" for each of {step.for_each}" if step.for_each else ""
        kind = "" if step.kind is Kind.EXECUTE else f" ({step.kind})"
        needs = f" needs {', '.join(map(str, step.depends_on))}" if step.depends_on else ""
        lines.append(sign + line(f"{step.number}. {gate}{step.title}{kind}{what}{many}{needs}"))
        lines += [f"{' ' * len(sign)}   {_way(edge)}" for edge in _from(sop, step) if not edge.waits]
    return "\n".join(lines)


def _way(edge: Edge) -> str:
    target = "end" if edge.target == END else str(edge.target)
    label = f"  [{line(edge.label)}]" if edge.label else ""
    return f"{'=> back to' if edge.back else '->'} {target}{label}"
