"""Checks whether free text from outside can reach an outward action without a person in between."""

from collections.abc import Iterator, Mapping

from procedo.core.model import Json, Kind, Sop, Step
from procedo.core.routing import gate_needed
from procedo.sopfile.checked import Checked
from procedo.sopfile.flow import Flow
from procedo.sopfile.reads import bindings_of
from procedo.sopfile.surroundings import Surroundings

__all__ = ["check_risk"]


def check_risk(one: Checked, flow: Flow, around: Surroundings) -> None:
    """Tell every outward action that free text reaches on a way without a gate.

    Outward are capability calls that may not be repeated freely, and planned tool calls. Free text is an
    input that its schema does not narrow (by type, enum, const or pattern), and what such a call outside
    answered. A gate at the step itself or before it on every way counts.
    """
    mode = one.sop.mode or around.default_mode
    gated = frozenset(step.number for step in one.sop.steps if step.is_gate or gate_needed(one.sop, mode, step))
    open_to = flow.reachable(one.sop.steps[0].number, gated) - gated
    for step in one.sop.steps:
        if step.number in open_to and _acts(step, around):
            for field, shown in _free_text(one.sop, step, around):
                message = f"step {step.number} acts outside, and {shown} reaches it without a gate"
                hint = "add requires_confirmation or a checkpoint before it, or narrow the input (enum, pattern)"
                one.tell("ungated-effect", message, hint, step, field)
                break


def _acts(step: Step, around: Surroundings) -> bool:
    if step.kind is Kind.CAPABILITY and around.capabilities is not None and step.capability is not None:
        found = around.capabilities.get(step.capability)
        return found is not None and not found.repeatable(step.arguments)
    return bool(step.calls)


def _answers_from_outside(step: Step, around: Surroundings) -> bool:
    if step.kind is not Kind.CAPABILITY or around.capabilities is None or step.capability is None:
        return False
    found = around.capabilities.get(step.capability)
    return found is not None and not found.pure


def _free_text(sop: Sop, step: Step, around: Surroundings) -> Iterator[tuple[str, str]]:
    if not step.has_arguments and not step.calls and step is sop.steps[0]:
        yield "capability", "the run's input"
    for field, _value, reference in bindings_of(step):
        if field not in ("with", "calls"):
            continue
        shown = f"{{{{{reference.name}}}}}"
        if reference.root == "inputs" and not _narrowed(sop, reference.path):
            yield field, shown
        elif reference.step is not None and reference.step.isdigit():
            other = sop.by_number.get(int(reference.step))
            if other is not None and _answers_from_outside(other, around):
                yield field, shown


def _narrowed(sop: Sop, path: tuple[str, ...]) -> bool:
    schema: Json = sop.inputs.schema.source if sop.inputs is not None else None
    for name in path:
        properties = schema.get("properties", {}) if isinstance(schema, Mapping) else {}
        schema = properties.get(name)
    if not path or not isinstance(schema, Mapping):
        return False
    return schema.get("type") in ("integer", "number", "boolean", "null") or bool(
        {"enum", "const", "pattern"} & schema.keys()
    )
