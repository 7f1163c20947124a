"""Opening gates: what is asked, of whom, until when. Answers are in `decisions`."""

import hashlib
from datetime import datetime, timedelta
from typing import Final

from procedo.core import messages as m
from procedo.core.altered import altered
from procedo.core.bindings import MissingValue, resolve
from procedo.core.draft import Draft, scope_of
from procedo.core.model import Json, Step
from procedo.core.outputs import digest
from procedo.core.state import Arrival, Gate, GateKind, Performer

__all__ = ["deadline", "open_gate", "present_draft", "short_code"]

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


def deadline(draft: Draft, policy: str | None) -> datetime | None:
    """Until when a gate under that policy is to be answered."""
    rule = draft.moment.policy(policy)
    limit = rule.timeout_s if rule is not None else 0.0
    return draft.moment.now + timedelta(seconds=limit) if limit else None


def _draft_of(draft: Draft, kind: GateKind, arrival: Arrival) -> str:
    """The execution that can be asked for another draft: a model made the content, and it alone."""
    if kind is not GateKind.CHECKPOINT or len(arrival.sources) != 1:
        return ""
    made = draft.run.executions.get(arrival.sources[0])
    by_model = made is not None and made.performer in (Performer.HOST, Performer.AGENT)
    return arrival.sources[0] if by_model else ""


def present_draft(draft: Draft, gate: Gate, execution_id: str, content: Json) -> None:
    """Put a new draft to the gate as its next revision."""
    step = draft.step(gate.step)
    arrival = altered(gate.arrival, sources=(execution_id,))
    try:
        prompt = _question(draft, step, gate.kind, arrival, "")
    except MissingValue as error:
        draft.emit(
            m.RevisionFailed(gate.id, f"the prompt of step {step.number}: {error}", deadline(draft, gate.policy))
        )
        return
    identity = digest([gate.kind.value, step.number, prompt, content])
    due_at = deadline(draft, gate.policy)
    draft.emit(m.GatePresented(gate.id, arrival, execution_id, prompt, content, identity, due_at))


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
    limit_s: float = 0.0,
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
    # The name of the default policy is kept: making another one the default opens no gate that is waiting.
    policy = policy or step.policy or draft.moment.default_policy.name
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
        draft=_draft_of(draft, kind, arrival),
        due_at=now + timedelta(seconds=limit_s) if limit_s else deadline(draft, policy),
        own_limit=bool(limit_s),
    )
    draft.emit(m.GateOpened(gate))
