"""Procedures as they are listed and described.

A description respects the procedure's `reveal`: `titles` keeps bodies and conditions back, `current` keeps the
steps back altogether. Whoever operates the workspace passes `reveal=Reveal.ALL` and sees everything.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from procedo.config.settings import Settings
from procedo.core.model import Json, Mode, Reveal, Sop, Step
from procedo.core.routing import gate_needed, resolved_agent
from procedo.errors import InvalidSop
from procedo.sopfile.library import Entry
from procedo.surfaces.graph import END, edges, mermaid
from procedo.surfaces.shapes import CatalogueEntry, CatalogueView, DescribeView, StepLine

__all__ = ["catalogue_view", "describe_view"]

_HOW_TO_ADD: Final = (
    "No procedure yet. Each one is a folder in there with a SOP.toml and a SOP.md; `procedo new` writes one."
)


def catalogue_view(folder: Path, entries: Iterable[Entry], settings: Settings, *, priority: str = "") -> CatalogueView:
    """Every procedure with its problems, by name; with a priority only those that have it."""
    known = tuple(entries)
    chosen = [e for e in known if not priority or (e.sop is not None and e.sop.priority == priority)]
    view: CatalogueView = {"folder": str(folder), "sops": [_entry(entry, settings) for entry in chosen]}
    if not known:
        view["note"] = _HOW_TO_ADD
    elif not chosen:
        view["note"] = f"None of the {len(known)} procedures has priority {priority}."
    return view


def _entry(entry: Entry, settings: Settings) -> CatalogueEntry:
    view: CatalogueEntry = {"name": entry.name, "startable": entry.sop is not None}
    sop = entry.sop
    if sop is not None:
        view["description"] = sop.description
        view["version"] = sop.version
        view["priority"] = sop.priority
        view["mode"] = sop.mode or settings.default_mode
        view["steps"] = len(sop.steps)
        if inputs := _input_names(sop):
            view["inputs"] = inputs
    if entry.problems:
        view["problems"] = _told(entry, sop.reveal if sop is not None else Reveal.ALL)
    return view


def _told(entry: Entry, shown: Reveal) -> list[str]:
    """The problems; where a procedure keeps its content back, only their places and kinds, since words quote it."""
    if shown is Reveal.ALL:
        return [str(problem) for problem in entry.problems]
    return [f"{problem.file}:{problem.line}: {problem.severity}[{problem.code}]" for problem in entry.problems]


def _properties(sop: Sop) -> dict[str, Json]:
    source = sop.inputs.schema.source if sop.inputs is not None else None
    return dict(source.get("properties", {})) if isinstance(source, dict) else {}


def _required(sop: Sop) -> list[str]:
    source = sop.inputs.schema.source if sop.inputs is not None else None
    return list(source.get("required", [])) if isinstance(source, dict) else []


def _input_names(sop: Sop) -> list[str]:
    required = _required(sop)
    return [name if name in required else f"{name}?" for name in _properties(sop)]


def describe_view(entry: Entry, settings: Settings, *, reveal: Reveal | None = None) -> DescribeView:
    """One procedure in full, as far as it is revealed. Raises `InvalidSop` when it does not load."""
    sop = entry.sop
    if sop is None:
        problems = _told(entry, Reveal.ALL)
        raise InvalidSop("invalid_sop", f"{entry.name!r} cannot be used.", "Correct its files first.", problems)
    shown = sop.reveal if reveal is None else reveal
    mode = sop.mode or settings.default_mode
    hidden = shown is Reveal.CURRENT
    agents = {resolved_agent(sop, step, settings.host_agent) for step in sop.steps}
    view: DescribeView = {
        "name": sop.name,
        "description": sop.description,
        "version": sop.version,
        "digest": sop.digest[:12],
        "priority": sop.priority,
        "mode": mode,
        "agent": sop.agent or settings.host_agent,
        "inputs": sop.inputs.schema.source if sop.inputs is not None else {},
        "step_count": len(sop.steps),
        "agents": [] if hidden else sorted(agents),
        "max_concurrent": {
            "configured": sop.max_concurrent,
            "effective": min(sop.max_concurrent, settings.limits.total),
        },
        "admission": sop.admission,
        "call": {"tool": "sop_start", "arguments": {"name": sop.name, "inputs": _example(sop)}},
    }
    if hidden:
        view["note"] = "This procedure shows each step when its turn comes, and not before."
    else:
        titles = shown is Reveal.TITLES
        view["steps"] = [_title(step) if titles else _line(sop, step, mode, settings) for step in sop.steps]
        view["graph"] = mermaid(sop, mode, titles_only=titles)
    if sop.triggers:
        view["triggers"] = [
            f"{t.type}: {'served' if t.served else 'declared, not served: start by hand'}" for t in sop.triggers
        ]
    if entry.problems:
        view["problems"] = _told(entry, shown)
    return view


def _example(sop: Sop) -> Json:
    """The inputs as an example: defaults where there are any, else what the schema says about the value."""
    defaults = sop.inputs.defaults if sop.inputs is not None else {}
    required = _required(sop)
    names = [name for name in _properties(sop) if name in required or name in defaults]
    return {name: defaults.get(name, f"<{name}>") for name in names}


def _title(step: Step) -> StepLine:
    return {"number": step.number, "title": step.title}


def _line(sop: Sop, step: Step, mode: Mode, settings: Settings) -> StepLine:
    view = _title(step)
    view["kind"] = step.kind
    view["agent"] = resolved_agent(sop, step, settings.host_agent)
    if step.id:
        view["id"] = step.id
    if step.is_gate or gate_needed(sop, mode, step):
        what = "checkpoint" if step.is_gate else "before the step"
        view["gate"] = f"{what}, policy {step.policy or settings.default_policy.name}"
    if step.body:
        view["body"] = step.body
    if step.tools:
        view["tools"] = list(step.tools)
    if step.capability:
        view["capability"] = step.capability
    if step.sub_sop:
        view["sop"] = step.sub_sop
    ways = [edge for edge in edges(sop) if edge.source == step.number and not edge.waits]
    view["leads_to"] = [
        ("end" if edge.target == END else str(edge.target)) + (f" ({edge.label})" if edge.label else "")
        for edge in ways
    ]
    return view
