"""The answers that one visitor can give at one gate: as buttons with their consequence, and as a form is read."""

import json
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from procedo.core.access import Role
from procedo.core.approval import answers, objection
from procedo.core.model import Json, Step
from procedo.core.state import Gate, GateKind, Verdict
from procedo.errors import BadArgument
from procedo.runs import Snapshot
from procedo.surfaces.redaction import masked
from procedo.surfaces.web.formvalues import parsed
from procedo.surfaces.web.logins import Visitor

__all__ = ["Amendable", "Choice", "amendable", "barred", "choices", "given_value", "given_verdict"]

_LABELS: Final[Mapping[Verdict, str]] = {
    Verdict.APPROVE: "Approve",
    Verdict.AMEND: "Approve with my change",
    Verdict.REVISE: "Ask for another draft",
    Verdict.DENY: "Deny",
    Verdict.REPEAT: "Let it happen again",
    Verdict.SKIP: "Skip the step",
    Verdict.FAIL: "Let the step fail",
    Verdict.RETRACT: "Take my answer back",
}
_FOLLOWS: Final[Mapping[Verdict, str]] = {
    Verdict.AMEND: "It goes on with your text in {field}. The record keeps the original.",
    Verdict.REVISE: "The draft is made again, with your comment as guidance.",
    Verdict.REPEAT: "{what} is done once more. If it did happen, it happens twice.",
    Verdict.SKIP: "{what} counts as skipped, without a result.",
    Verdict.FAIL: "{what} counts as failed.",
    Verdict.RETRACT: "Your answer no longer counts. The gate stays open.",
}
_DANGER: Final = frozenset({Verdict.DENY, Verdict.FAIL})
_MAIN: Final = frozenset({Verdict.APPROVE, Verdict.AMEND})


class Choice(Struct, frozen=True):
    """One button: what is sent, what stands on it, what follows, and how it looks (main, danger, plain)."""

    verdict: str
    label: str
    follows: str
    look: str


class Amendable(Struct, frozen=True):
    """The one field that may be changed. `text` fills the form; it is empty for what is not shown in full."""

    field: str
    text: str
    is_text: bool
    hidden: bool


def barred(snapshot: Snapshot, gate: Gate, visitor: Visitor) -> str | None:
    """Why this visitor gives no answer here, or None."""
    if not visitor.access.may(Role.APPROVE):
        return "this login has not the role approve"
    policy = snapshot.policies.get(gate.id)
    if policy is None:
        return f"policy {gate.policy!r} is missing from the configuration"
    return objection(policy, visitor.access.principal, snapshot.run)


def amendable(snapshot: Snapshot, gate: Gate) -> Amendable | None:
    """The field that may be amended at this gate, when there is one."""
    step = snapshot.sop.by_number[gate.step]
    content = gate.content
    if Verdict.AMEND not in answers(gate, editable=step.edit is not None):
        return None
    if step.edit is None or not isinstance(content, dict) or step.edit not in content:
        return None
    value = content[step.edit]
    hidden = masked(content)[step.edit] != value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    return Amendable(step.edit, "" if hidden else text, isinstance(value, str), hidden)


def choices(snapshot: Snapshot, gate: Gate, visitor: Visitor) -> tuple[Choice, ...]:
    """The buttons for an open gate, in the order in which they stand."""
    step = snapshot.sop.by_number[gate.step]
    verdicts = [v for v in answers(gate, editable=step.edit is not None) if v in _LABELS]
    if amendable(snapshot, gate) is None and Verdict.AMEND in verdicts:
        verdicts.remove(Verdict.AMEND)
    if any(vote.identity == visitor.access.principal.identity for vote in gate.votes):
        verdicts.append(Verdict.RETRACT)
    order = list(_LABELS)
    return tuple(
        Choice(str(v), _LABELS[v], _follows(v, gate, step), _look(v)) for v in sorted(verdicts, key=order.index)
    )


def _look(verdict: Verdict) -> str:
    return "main" if verdict in _MAIN else "danger" if verdict in _DANGER else "plain"


def _follows(verdict: Verdict, gate: Gate, step: Step) -> str:
    match verdict:
        case Verdict.APPROVE:
            return _approved(gate, step)
        case Verdict.DENY:
            return _denied(gate, step)
        case _:
            what = "The call" if gate.call else f"Step {step.number}"
            return _FOLLOWS[verdict].format(what=what, field=step.edit)


def _approved(gate: Gate, step: Step) -> str:
    match gate.kind:
        case GateKind.APPROVAL:
            return f"Step {step.number} begins."
        case GateKind.CHECKPOINT:
            return "It goes on as it stands above."
        case GateKind.TOOL_CALL:
            return "The call is made."
        case GateKind.VERIFY:
            return "The result is accepted."
        case _:
            return f"Step {step.number} goes on."


def _denied(gate: Gate, step: Step) -> str:
    if gate.kind is GateKind.TOOL_CALL:
        return "The call is not made, and the agent is told why."
    if gate.execution is not None:
        return f"This attempt at step {step.number} fails, with your comment as the reason."
    target = step.on_deny if step.on_deny is not None else step.on_failure.target
    return "The run is cancelled." if target is None else f"The run goes on at step {target}."


def given_verdict(word: str) -> Verdict:
    """The verdict that a button sent. Raises `BadArgument`."""
    try:
        return Verdict(word)
    except ValueError as error:
        raise BadArgument("wrong_verdict", f"{word[:40]!r} is no answer.", "Use one of the buttons.") from error


def given_value(snapshot: Snapshot, gate: Gate, text: str) -> Json:
    """The amended value of a form: text where text stands now, JSON otherwise. Raises `BadArgument`."""
    field = amendable(snapshot, gate)
    if field is None:
        raise BadArgument("not_editable", "Nothing may be amended at this gate.", "Approve or deny it as it is.")
    text = text.replace("\r\n", "\n")
    if field.is_text:
        return text
    try:
        return parsed(text)
    except ValueError as error:
        message = f"The new value of {field.field} is no JSON ({error})."
        raise BadArgument(
            "bad_value", message, "Text stands in double quotes, lists in [ ], objects in { }."
        ) from error
