"""What follows from each answer at a gate, in words, from the pinned procedure and the stored gate alone."""

from collections.abc import Mapping
from typing import Final

from procedo.core.model import Step
from procedo.core.state import Gate, GateKind, Verdict
from procedo.surfaces.text import line

__all__ = ["consequence"]

_APPROVED: Final[Mapping[GateKind, str]] = {
    GateKind.APPROVAL: "step {step} may begin",
    GateKind.CHECKPOINT: "the content below is released as it is, and the run goes on behind step {step}",
    GateKind.TOOL_CALL: "the call is made with the arguments below",
    GateKind.VERIFY: "the result counts as verified, and the run goes on",
    GateKind.TIMEOUT: "the execution gets its time once more",
}
_OTHERWISE: Final[Mapping[Verdict, str]] = {
    Verdict.REVISE: "nothing is released; a new draft is made with your comment as guidance, and you are asked again",
    Verdict.REPEAT: "the interrupted effect is carried out again, even if it has happened already",
    Verdict.SKIP: "step {step} counts as skipped, and the run goes on without its result",
    Verdict.FAIL: "the attempt counts as failed",
}


def consequence(gate: Gate, step: Step, verdict: Verdict) -> str:
    """What happens when this answer is given and its policy is content with it."""
    if verdict is Verdict.APPROVE:
        text = _APPROVED[gate.kind]
    elif verdict is Verdict.AMEND:
        field = f"with your value in its field {line(step.edit, 80)}" if step.edit else "with your value"
        call = gate.kind is GateKind.TOOL_CALL
        text = "the call is made with your arguments" if call else f"the content is released {field}"
    elif verdict is Verdict.DENY:
        text = _denied(gate, step)
    else:
        text = _OTHERWISE[verdict]
    return text.replace("{step}", str(step.number))


def _denied(gate: Gate, step: Step) -> str:
    if gate.kind is GateKind.TOOL_CALL:
        return "the call is not made, and the agent is told so"
    if gate.kind is GateKind.VERIFY:
        return "the result counts as not verified"
    if gate.kind is GateKind.TIMEOUT:
        return "the attempt counts as failed"
    target = step.on_deny if step.on_deny is not None else step.on_failure.target
    return "the run is cancelled" if target is None else f"the run goes on at step {target} instead"
