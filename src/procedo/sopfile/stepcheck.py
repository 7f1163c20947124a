"""Checks fields of a step that must agree with each other."""

from procedo.core.model import Step
from procedo.sopfile.checked import Checked

__all__ = ["check_steps"]


def check_steps(one: Checked) -> None:
    """Tell what contradicts within a step."""
    for step in one.sop.steps:
        _edit(one, step)
        _suggested(one, step)


def _edit(one: Checked, step: Step) -> None:
    """`edit` names a field of an object; where a schema tells what the checkpoint gets, the field must be in it."""
    if step.edit is None or step.input_schema is None or not isinstance(step.input_schema.source, dict):
        return
    source = step.input_schema.source
    if source.get("type", "object") != "object":
        message = f"step {step.number} lets {step.edit!r} be amended, and its input is {source['type']}, no object"
        one.tell("edit-without-object", message, "let the input be an object with that field", step, "edit")
    elif "properties" in source and step.edit not in source["properties"]:
        known = ", ".join(source["properties"])
        message = f"step {step.number} lets {step.edit!r} be amended, which its input does not have"
        one.tell("edit-without-object", message, f"it has {known}", step, "edit")


def _suggested(one: Checked, step: Step) -> None:
    for name in step.tools:
        if name in step.scope.deny:
            one.tell(
                "no-effect", f"tool {name!r} is suggested and denied", "remove one of them", step, "suggested_tools"
            )
        elif step.scope.allow is not None and name not in step.scope.allow:
            hint = "add it to allow-tools, or remove it"
            one.tell("no-effect", f"tool {name!r} is suggested and not allowed", hint, step, "suggested_tools")
