"""Every place where a step reads the output of another one: bindings, conditions, context; with field and line."""

from collections.abc import Iterator

from msgspec import Struct

from procedo.core.bindings import BindingError, Reference, references
from procedo.core.model import Condition, Json, Step
from procedo.sopfile.checked import Checked

__all__ = ["Read", "bindings_of", "reads_of"]


class Read(Struct, frozen=True):
    """A step reads another one. `before`: when it begins, else when it ends. `must`: without the output it fails."""

    step: int
    field: str
    line: int
    shown: str
    before: bool = True
    must: bool = True


def bindings_of(step: Step) -> Iterator[tuple[str, Json, Reference]]:
    """Every binding of a step, with its field and the value that it stands in."""
    arguments = step.verify.arguments if step.verify is not None else None
    for field, value in (
        ("body", step.body),
        ("with", step.arguments),
        ("calls", list(step.calls)),
        ("gate_prompt", step.gate_prompt),
        ("for_each", step.for_each),
        ("wait", step.wait_until),
        ("verify", arguments),
    ):
        try:
            for reference in references(value):
                yield field, value, reference
        except BindingError:
            continue  # told when it was compiled


def reads_of(one: Checked, step: Step) -> Iterator[Read]:
    """Every read of a step."""
    written = one.written(step)
    for field, value, reference in bindings_of(step):
        if reference.step is not None and reference.step.isdigit():
            line = written.line_of(field)
            if field == "body":
                index = value.count("\n", 0, reference.position)
                line = written.body_lines[index] if index < len(written.body_lines) else line
            yield Read(int(reference.step), field, line, f"{{{{{reference.name}}}}}", before=field != "verify")
    for number in step.sees:
        yield Read(number, "context", written.line_of("context"), f"context {number}", must=False)
    for name, condition in _conditions(step):
        for number in sorted(condition.refs or ()):
            line = written.line_of(name)
            yield Read(number, name, line, f"the condition {condition.source!r}", before=name == "if", must=False)


def _conditions(step: Step) -> Iterator[tuple[str, Condition]]:
    if step.precondition is not None:
        yield "if", step.precondition
    if step.when is not None:
        yield "routing.when", step.when
    for port in step.switch:
        if port.when is not None:
            yield "routing.switch", port.when
    if step.verify is not None and step.verify.condition is not None:
        yield "verify", step.verify.condition
