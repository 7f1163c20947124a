"""Opening gates: what is asked, of whom, until when. Answers are in `decisions`."""

import hashlib
from datetime import timedelta
from typing import Final

from procedo.core import messages as m
from procedo.core.bindings import MissingValue, resolve
from procedo.core.draft import Draft, scope_of
from procedo.core.model import Json, Step
from procedo.core.outputs import digest
from procedo.core.state import Arrival, Gate, GateKind

__all__ = ["open_gate", "short_code"]

_ALPHABET: Final = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
_CODE_LENGTH: Final = 6


def short_code(gate_id: str) -> str:
    """Six characters by which a person names a gate; without letters and digits that are easily mistaken."""
    number = int.from_bytes(hashlib.sha256(gate_id.encode()).digest()[:8])
    code = ""
    for _ in range(_CODE_LENGTH):
        number, place = divmod(number, len(_ALPHABET))
        code += _ALPHABET[place]
    return code


def _question(draft: Draft, step: Step, kind: GateKind, arrival: Arrival, why: str) -> str:
    named = f'step {step.number} "{step.title}" of {draft.run.sop}'
    if kind is GateKind.TOOL_CALL:
        return why
    if kind is GateKind.INTERRUPTED:
        return f"The effect of {named} may or may not have happened: {why}. Repeat it, skip it, or fail the step?"
    if kind is GateKind.VERIFY:
        return f"The result of {named} could not be verified: {why}. Accept the result?"
    if kind is GateKind.TIMEOUT:
        return f"{named[:1].upper()}{named[1:]} {why}. Give it the same time again?"
    if step.gate_prompt:
        return str(resolve(step.gate_prompt, scope_of(draft.run, arrival)))
    return f"Release {named}?" if kind is GateKind.CHECKPOINT else f"May {named} begin?"


def open_gate(
    draft: Draft,
    kind: GateKind,
    arrival: Arrival,
    value: Json,
    *,
    execution: str | None = None,
    why: str = "",
    call: str = "",
    policy: str | None = None,
) -> None:
    """Ask for a decision.

    `value` is what is being approved; `why` explains gates about an execution; `call` names a tool call in
    its session.

    A prompt whose binding has no value fails the run, since nobody could judge the question.
    """
    run, now, step = draft.run, draft.moment.now, draft.step(arrival.step)
    try:
        prompt = _question(draft, step, kind, arrival, why)
    except MissingValue as error:
        draft.emit(m.RunFailed(f"the prompt of step {step.number}: {error}"))
        return
    policy = policy or step.policy
    rule = draft.moment.policy(policy)
    limit = rule.timeout_s if rule is not None else 0.0
    gate_id = f"{run.id}.g{run.gate_count + 1}"
    gate = Gate(
        id=gate_id,
        code=short_code(gate_id),
        kind=kind,
        arrival=arrival,
        prompt=prompt,
        content=value,
        digest=digest([kind.value, step.number, prompt, value]),
        opened_at=now,
        waiting_since=now,
        policy=policy,
        execution=execution,
        call=call,
        due_at=now + timedelta(seconds=limit) if limit else None,
    )
    draft.emit(m.GateOpened(gate))
