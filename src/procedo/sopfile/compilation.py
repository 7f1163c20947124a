"""Compiles a whole definition: what was read becomes a `Sop`, and everything wrong is told with its line."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Final

from procedo.core import bindings
from procedo.core.conditions import ConditionError
from procedo.core.model import Admission, Expression, Inputs, Json, Mode, Priority, Reveal, Sop, Step, Trigger
from procedo.sopfile.cel import compile_expression
from procedo.sopfile.problems import Findings
from procedo.sopfile.resolution import Place, Resolver
from procedo.sopfile.schemas import compile_inputs
from procedo.sopfile.source import SopSource, StepSource
from procedo.sopfile.stepform import compile_step
from procedo.sopfile.valueforms import ID

__all__ = ["compile_source", "digest_of", "is_plain_name"]

_PATH: Final = re.compile(r"(?:\$\.)?inputs((?:\.[A-Za-z_][A-Za-z0-9_]*)+)")
_SERVED: Final = frozenset({"manual"})
LONGEST_NAME: Final = 100


def digest_of(files: Mapping[str, str]) -> str:
    """The hash that pins a definition: SHA-256 over names and texts, in the order of the names."""
    text = json.dumps(sorted(files.items()), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def is_plain_name(name: str) -> bool:
    """True for a name that is one plain component of a path."""
    forbidden = any(letter in '/\\:*?"<>|' or ord(letter) < 32 or ord(letter) == 127 for letter in name)
    tidy = name == name.strip() and not name.startswith(".") and not name.endswith(".")
    return bool(name) and not forbidden and tidy and len(name) <= LONGEST_NAME


def compile_source(source: SopSource, digest: str, name_hint: str, findings: Findings) -> Sop:
    """The procedure. Where something is wrong it is told, and the result is only good for further checks."""
    name = source.text("name").strip()
    if "name" in source.header and not is_plain_name(source.text("name")):
        hint = "one plain name without slashes, at most 100 characters"
        message = f"{source.text('name')!r} cannot be the name of a procedure"
        findings.add("bad-name", source.file, source.header["name"].line, message, hint)
    steps = _steps(source, findings)
    return Sop(
        name=name or name_hint,
        description=source.text("description").strip(),
        steps=steps,
        digest=digest,
        version=source.text("version") or "0.1.0",
        priority=Priority(source.text("priority") or Priority.NORMAL),
        mode=_mode(source, findings),
        agent=source.text("agent") or None,
        cooldown_s=float(_number(source, "cooldown_secs", 0)),
        max_concurrent=_max_concurrent(source, findings),
        admission=Admission(source.text("admission_policy") or Admission.PARALLEL),
        max_pending_approvals=_number(source, "max_pending_approvals", 0),
        inputs=_inputs(source, findings),
        key=_key(source, findings),
        **_window(source, findings),
        reveal=Reveal(source.text("reveal") or Reveal.ALL),
        triggers=_triggers(source, findings),
        positions=_positions(source, frozenset(step.number for step in steps), findings),
        extensions={**source.extensions, **source.sop_extensions},
    )


# --- header --------------------------------------------------------------------------------------


def _number(source: SopSource, name: str, default: int) -> int:
    mark = source.header.get(name)
    return default if mark is None else int(mark.value)


def _mode(source: SopSource, findings: Findings) -> Mode | None:
    mark = source.header.get("execution_mode")
    forced = source.header.get("deterministic")
    if forced is not None and forced.value is True:
        if mark is not None and mark.value != Mode.DETERMINISTIC:
            hint = "deterministic = true is the same as execution_mode = 'deterministic'"
            findings.add("field-conflict", source.file, mark.line, "execution_mode contradicts deterministic", hint)
        return Mode.DETERMINISTIC
    return None if mark is None else Mode(mark.value)


def _max_concurrent(source: SopSource, findings: Findings) -> int:
    count = _number(source, "max_concurrent", 1)
    if count == 0:
        line = source.header["max_concurrent"].line
        findings.add("admits-none", source.file, line, "max_concurrent = 0 lets no run start", "1 or more")
    return count


def _inputs(source: SopSource, findings: Findings) -> Inputs | None:
    mark = source.inputs
    return None if mark is None else compile_inputs(mark.value, source.file, mark.line, findings)


def _window(source: SopSource, findings: Findings) -> dict[str, Json]:
    count, length = source.header.get("max_per_window"), source.header.get("window")
    if (count is None) != (length is None):
        given, missing = ("max_per_window", "window") if length is None else ("window", "max_per_window")
        message = f"{given!r} means nothing without {missing!r}"
        findings.add(
            "missing-key", source.file, source.header[given].line, message, 'max_per_window = 5, window = "1h"'
        )
    if count is None or length is None:
        return {}
    return {"max_per_window": count.value, "window_s": length.value}


def _key(source: SopSource, findings: Findings) -> Expression | None:
    mark = source.header.get("key")
    if mark is None:
        return None
    text = mark.value.strip()
    try:
        if "{{" in text:
            return _key_template(text)
        return _key_path(text) or compile_expression(text)
    except ConditionError as error:
        message = f"key: {error.message}, at character {error.position + 1} of {text!r}"
        findings.add("bad-condition", source.file, mark.line, message, "an expression over the inputs: inputs.order")
    except bindings.BindingError as error:
        findings.add("bad-binding", source.file, mark.line, f"key: {error.message}")
    return None


def _key_template(text: str) -> Expression:
    for reference in bindings.references(text):
        if reference.root != "inputs":
            raise bindings.BindingError(f"{{{{{reference.name}}}}}: a key reads the inputs alone", reference.position)
    return Expression(text, lambda scope: bindings.resolve(text, scope))


def _key_path(text: str) -> Expression | None:
    """A plain path needs no evaluator."""
    found = _PATH.fullmatch(text)
    return None if found is None else Expression(text, _key_template(f"{{{{inputs{found.group(1)}}}}}").value)


def _triggers(source: SopSource, findings: Findings) -> tuple[Trigger, ...]:
    resolver = Resolver(frozenset(), {}, findings)
    found: list[Trigger] = []
    for trigger in source.triggers:
        settings = dict(trigger.settings)
        text = settings.pop("condition", None)
        place = Place(source.file, trigger.line, "condition")
        condition = resolver.payload_condition(text, place) if text is not None else None
        found.append(Trigger(trigger.type, settings, condition, trigger.type in _SERVED))
        if trigger.type not in _SERVED:
            message = f"{trigger.type} trigger: declared, not served: start by hand"
            findings.add("trigger-not-served", source.file, trigger.line, message)
    return tuple(found)


def _positions(source: SopSource, numbers: frozenset[int], findings: Findings) -> Mapping[int, tuple[float, float]]:
    found = {step.number: step.fields["pos"].value for step in source.steps if "pos" in step.fields}
    for number, place in source.positions.items():
        if number not in numbers:
            line = source.position_lines.get(number, 1)
            message = f"the position has no effect: there is no step {number}"
            findings.add("no-effect", source.file, line, message, "remove it, or correct its step")
        found[number] = place
    return found


# --- steps ---------------------------------------------------------------------------------------


def _steps(source: SopSource, findings: Findings) -> tuple[Step, ...]:
    if not source.steps and "no-steps" not in findings:
        hint = "write `## Steps` with `1. **Title**` in SOP.md, or [[steps]] in SOP.toml"
        findings.add("no-steps", source.file, 1, "the procedure has no steps", hint)
    unique: dict[int, StepSource] = {}
    for step in source.steps:
        if (first := unique.setdefault(step.number, step)) is not step:
            message = f"step {step.number} is there already, on line {first.line}"
            findings.add("duplicate-number", step.file, step.line, message, "give each step its own number")
    resolver = Resolver(frozenset(unique), _ids(unique.values(), findings), findings)
    return tuple(compile_step(step, resolver) for step in unique.values())


def _ids(steps: Iterable[StepSource], findings: Findings) -> dict[str, str]:
    ids: dict[str, str] = {}
    for step in steps:
        mark = step.fields.get("id")
        if mark is None:
            continue
        if not ID.fullmatch(mark.value):
            hint = "begin with a letter; letters, digits, - and _"
            findings.add("bad-value", step.file, mark.line, f"id: {mark.value!r} is no usable id", hint)
        elif mark.value in ids:
            message = f"id {mark.value!r} belongs to step {ids[mark.value]} already"
            findings.add("duplicate-id", step.file, mark.line, message, "give each step its own id")
        else:
            ids[mark.value] = str(step.number)
    return ids
