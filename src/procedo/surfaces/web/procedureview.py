"""What the page of a procedure shows: its steps, who works and who decides, or its problems in their source lines."""

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup
from msgspec import Struct

from procedo.config.settings import Settings
from procedo.core.approval import Policy, deciders
from procedo.core.model import Admission, Json, Kind, Mode, OnFailure, OnTimeout, Sop, Step
from procedo.core.routing import gate_needed, resolved_agent
from procedo.duration import in_words
from procedo.sopfile.library import Entry
from procedo.sopfile.problems import Problem
from procedo.surfaces.drawing import drawing
from procedo.surfaces.graph import END, edges, outline
from procedo.surfaces.web.words import shown, written

__all__ = ["ProblemView", "SourceLine", "problem_views", "procedure_view", "tags_of"]

_AROUND: Final = 2
"""Lines shown before and after the one that a problem points at."""
_LONGEST: Final = 300
_ADMISSION: Final[Mapping[Admission, str]] = {
    Admission.PARALLEL: "a start is put off while none is free",
    Admission.HOLD: "a start is put off while a run is live",
    Admission.COALESCE: "a start while a run is live counts as part of that run",
    Admission.DROP: "a start is refused while none is free",
}


class SourceLine(Struct, frozen=True):
    """A line of a definition; `meant` is the one that the problem points at."""

    number: int
    text: str
    meant: bool


class ProblemView(Struct, frozen=True):
    """A problem as it is told, with the lines around it."""

    place: str
    severity: str
    code: str
    message: str
    hint: str
    lines: tuple[SourceLine, ...]


def problem_views(entry: Entry, root: Path) -> tuple[ProblemView, ...]:
    """The problems of a procedure, errors first; places are told from the folder of the procedures."""
    order = ("error", "warning", "note")
    found = sorted(entry.problems, key=lambda problem: order.index(problem.severity))
    return tuple(
        ProblemView(
            shown(_within(one.file, root) + (f":{one.line}" if one.line else "")),
            one.severity,
            one.code,
            shown(one.message),
            shown(one.hint),
            tuple(_lines(entry, one)),
        )
        for one in found
    )


def _within(file: str, root: Path) -> str:
    return Path(file).relative_to(root).as_posix() if Path(file).is_relative_to(root) else file


def _lines(entry: Entry, problem: Problem) -> Iterator[SourceLine]:
    name = max((name for name in entry.files if problem.file.endswith(name)), key=len, default=None)
    if name is None or problem.line < 1:
        return
    lines = entry.files[name].splitlines()
    first = max(1, problem.line - _AROUND)
    for number in range(first, min(len(lines), problem.line + _AROUND) + 1):
        yield SourceLine(number, shown(lines[number - 1][:_LONGEST]), number == problem.line)


def procedure_view(sop: Sop, settings: Settings, names: Collection[str]) -> dict[str, Any]:
    """A procedure in full. `names` are those in the catalogue, to which sub-procedures lead."""
    mode = sop.mode or settings.default_mode
    steps = [_step(sop, step, mode, settings, names) for step in sop.steps]
    used = {view["gate"]["policy"]: view["gate"] for view in steps if view["gate"]}
    return {
        "description": shown(sop.description),
        "version": shown(sop.version),
        "digest": sop.digest,
        "mode": str(mode).replace("_", " "),
        "priority": str(sop.priority),
        "agents": sorted({resolved_agent(sop, step, settings.host_agent) for step in sop.steps}),
        "host": settings.host_agent,
        "steps": steps,
        "policies": [used[name] for name in sorted(used)],
        "inputs": _inputs(sop),
        "schema": "" if sop.inputs is None else written(sop.inputs.schema.source),
        "limits": tuple(_limits(sop, settings)),
        "extensions": [(shown(name), written(value)) for name, value in sop.extensions.items() if name != "x-tags"],
        "tags": tags_of(sop),
        "triggers": [f"{t.type}: {'served' if t.served else 'declared, not served'}" for t in sop.triggers],
        "drawing": Markup(drawing(outline(sop, mode), link=lambda number: f"#step-{number}")),  # noqa: S704  # it escapes
    }


def tags_of(sop: Sop) -> list[str]:
    """The tags of a procedure, which are an extension of its header: `x-tags`."""
    tags = sop.extensions.get("x-tags", ())
    return [shown(str(tag)) for tag in ([tags] if isinstance(tags, str) else tags if isinstance(tags, list) else ())]


def _inputs(sop: Sop) -> list[dict[str, Any]]:
    """The declared inputs, one by one."""
    source: Json = sop.inputs.schema.source if sop.inputs is not None else {}
    properties = source.get("properties") if isinstance(source, dict) else None
    if not isinstance(properties, dict):
        return []
    found = []
    for name, schema in properties.items():
        inner = schema if isinstance(schema, dict) else {}
        kinds = inner.get("type", "")
        found.append(
            {
                "name": shown(name),
                "required": name in source.get("required", ()),
                "type": shown(" or ".join(map(str, kinds)) if isinstance(kinds, list) else str(kinds)),
                "description": shown(str(inner.get("description", ""))),
                "default": shown(json.dumps(inner["default"], ensure_ascii=False)) if "default" in inner else "",
                "options": [shown(json.dumps(item, ensure_ascii=False)) for item in inner.get("enum", ())],
            }
        )
    return found


def _limits(sop: Sop, settings: Settings) -> Iterator[str]:
    most = min(sop.max_concurrent, settings.limits.total)
    yield f"at most {most} run{'s' if most > 1 else ''} at work at once; {_ADMISSION[sop.admission]}"
    if sop.key is not None:
        yield f"one live run for each value of {shown(sop.key.source)}"
    if sop.max_per_window:
        yield f"at most {sop.max_per_window} starts in {in_words(sop.window_s)}"
    if sop.cooldown_s:
        yield f"{in_words(sop.cooldown_s)} after a completed run before the next one"
    if sop.max_pending_approvals:
        yield f"no start while {sop.max_pending_approvals} runs wait for decisions"


def _step(sop: Sop, step: Step, mode: Mode, settings: Settings, names: Collection[str]) -> dict[str, Any]:
    ways = [edge for edge in edges(sop) if edge.source == step.number and not edge.waits]
    return {
        "number": step.number,
        "id": shown(step.id or ""),
        "title": shown(step.title),
        "kind": str(step.kind),
        "agent": _worker(sop, step, settings),
        "body": shown(step.body).strip(),
        "gate": _gate(sop, step, mode, settings),
        "sub": step.sub_sop if step.sub_sop in names else "",
        "facts": tuple(_facts(step)),
        "ways": [{"target": edge.target if edge.target != END else None, "label": shown(edge.label)} for edge in ways],
        "output": "" if step.output_schema is None else written(step.output_schema.source),
        "arguments": written(step.arguments) if step.has_arguments else "",
    }


def _worker(sop: Sop, step: Step, settings: Settings) -> str:
    """Who does a step, in words; empty where nobody does anything."""
    match step.kind:
        case Kind.CAPABILITY:
            return f"the server, with {shown(step.capability or '')}"
        case Kind.WAIT | Kind.CHECKPOINT:
            return ""
        case Kind.SOP:
            return f"the procedure {shown(step.sub_sop or '')}"
        case _:
            return resolved_agent(sop, step, settings.host_agent)


def _gate(sop: Sop, step: Step, mode: Mode, settings: Settings) -> dict[str, Any] | None:
    """The gate of a step: where it stands, and who may decide there."""
    if not step.is_gate and not gate_needed(sop, mode, step):
        return None
    name = step.policy or settings.default_policy.name
    policy = settings.policies.get(name) if step.policy else settings.default_policy
    return {
        "policy": shown(name),
        "where": "a checkpoint" if step.is_gate else "before the step",
        "who": "nobody: this policy is missing from the configuration" if policy is None else shown(deciders(policy)),
        "prompt": shown(step.gate_prompt or ""),
        "limit": _time(policy),
        "auto": policy is not None and policy.auto_approve and bool(step.policy),
    }


def _time(policy: Policy | None) -> str:
    if policy is None or not policy.timeout_s:
        return ""
    return f"answer due within {in_words(policy.timeout_s)}"


def _facts(step: Step) -> Iterator[str]:
    """What else holds for a step, in words."""
    if step.depends_on:
        yield f"waits for {', '.join(f'step {number}' for number in step.depends_on)}"
    if step.precondition is not None:
        yield f"only if {shown(step.precondition.source)}"
    if step.for_each:
        yield f"once for each of {shown(step.for_each)}, {step.max_parallel} at a time"
    if step.wait_s is not None:
        yield f"waits {in_words(step.wait_s)}"
    if step.wait_until:
        yield f"waits until {shown(step.wait_until)}"
    yield from _troubles(step)
    if step.verify is not None:
        yield "its result is verified"
    if step.edit:
        yield f"{shown(step.edit)} may be amended"
    if step.tools:
        yield f"tools: {shown(', '.join(step.tools))}"


def _troubles(step: Step) -> Iterator[str]:
    """What follows when a step fails or takes too long."""
    if step.timeout_s is not None:
        after = {OnTimeout.FAIL: "it fails", OnTimeout.RETRY: "it is tried again", OnTimeout.GATE: "a person decides"}
        yield f"after {in_words(step.timeout_s)} {after[step.on_timeout]}"
    if step.on_failure.kind is OnFailure.RETRY:
        more = "once more" if step.on_failure.retries == 1 else f"up to {step.on_failure.retries} more times"
        yield f"when it fails, tried {more}"
