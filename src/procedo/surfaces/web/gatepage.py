"""Everything that the page of one gate shows."""

import hashlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from procedo.core.state import Gate, GateKind, Verdict
from procedo.ports import OpenGate
from procedo.runs import History, Snapshot
from procedo.surfaces.gates import gate_view, may_decide, what_is_asked
from procedo.surfaces.presentations import previous
from procedo.surfaces.redaction import masked, masked_text
from procedo.surfaces.web.answers import amendable, barred, choices
from procedo.surfaces.web.difference import Line, difference
from procedo.surfaces.web.logins import Visitor
from procedo.surfaces.web.standing import standing, status_words
from procedo.surfaces.web.words import When, actor, blocks, shown, when, written

__all__ = ["KINDS", "gate_outcome", "gate_page", "gate_version", "previous"]

_WHOLE: Final = 1_000_000_000
_LONGEST_RESULT: Final = 4_000
_DECIDED, _ENDED, _BEGUN = range(3)
"""What happens at the same moment follows in this order; what is still open comes last."""
KINDS: Final[Mapping[str, str]] = {
    "approval": "approval before a step",
    "checkpoint": "checkpoint",
    "tool_call": "approval of a tool call",
    "interrupted": "interrupted effect",
    "verify": "unverified result",
    "timeout": "step out of time",
}


class Happening(Struct, frozen=True):
    """One line of a run's history."""

    when: When
    title: str
    detail: str = ""
    result: str = ""


def gate_version(gate: Gate) -> str:
    """Differs when the page of this gate would say something else."""
    votes = [(vote.identity, vote.verdict, vote.digest) for vote in gate.votes]
    state = (gate.revision, gate.digest, votes, gate.verdict, gate.withdrawn, gate.reminders, gate.redrafting)
    return hashlib.sha256(repr(state).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def gate_page(found: OpenGate, history: History, visitor: Visitor, now: datetime) -> dict[str, Any]:
    """The values of the template `gate.html`."""
    gate, snapshot = found.gate, history.snapshot
    run, policy = snapshot.run, snapshot.policies.get(gate.id)
    step = snapshot.sop.by_number[gate.step]
    view = gate_view(gate, snapshot.sop, run, policy, _WHOLE, snapshot.tellings)
    before = previous(history, gate)
    reason = barred(snapshot, gate, visitor) if gate.open else None
    return {
        "visitor": visitor,
        "version": gate_version(gate),
        "watches": gate.id,
        "gate": gate,
        "kind": KINDS[gate.kind],
        "asks": shown(what_is_asked(gate)),
        "blocks": blocks(masked(gate.content)),
        "difference": () if before is None else difference(masked(before), masked(gate.content)),
        "changes": _changes(gate, step.edit),
        "run": run,
        "status": status_words(run.status),
        "sop": {"name": snapshot.sop.name, "version": shown(run.version)},
        "step": {"number": step.number, "title": shown(step.title), "body": shown(masked_text(step.body)).strip()},
        "who": shown(may_decide(policy, gate)),
        "votes": view.get("votes", []),
        "untold": [shown(text) for text in view.get("notices_failed", [])],
        "voters": [(shown(str(vote.principal)), str(vote.verdict), when(vote.at, now)) for vote in gate.votes],
        "started": when(run.started_at, now),
        "starter": shown(str(run.starter)),
        "waiting": when(gate.waiting_since, now),
        "due": None if gate.due_at is None else when(gate.due_at, now),
        "barred": reason,
        "choices": choices(snapshot, gate, visitor) if gate.open and reason is None else (),
        "may_last": gate.kind is GateKind.TOOL_CALL,
        "amends": amendable(snapshot, gate) if gate.open and reason is None else None,
        "outcome": gate_outcome(gate, visitor, now),
        "standing": standing(snapshot),
        "happenings": tuple(_happenings(history, snapshot, now)),
        "inputs": blocks(masked(run.inputs)),
    }


def _changes(gate: Gate, field: str | None) -> tuple[Line, ...]:
    """What the person who approved with a change has changed."""
    if gate.verdict is not Verdict.AMEND or field is None or not isinstance(gate.content, dict):
        return ()
    return difference(masked(gate.content), masked({**gate.content, field: gate.value}))


def gate_outcome(gate: Gate, visitor: Visitor, now: datetime) -> dict[str, Any] | None:
    """How a gate ended, or None while it is open."""
    if gate.open:
        return None
    if gate.redrafting:
        text = "A new draft is being made. It will be put to a person here, and nothing is decided until then."
        return {"word": "back at its author", "text": text, "when": None}
    if gate.withdrawn:
        return {
            "word": "void",
            "text": f"Nothing is left to decide: {shown(masked_text(gate.withdrawn))}.",
            "when": None,
        }
    by = gate.decided_by
    moment = None if gate.decided_at is None else when(gate.decided_at, now)
    if gate.expired:
        return {"word": "expired", "text": "Nobody answered in time.", "when": moment}
    mine = by is not None and by.identity == visitor.access.principal.identity
    who = "you" if mine else shown(str(by))
    comment = f" “{shown(masked_text(gate.comment))}”" if gate.comment else ""
    how = ", alone, by breaking the glass" if gate.glass_broken else ""
    word = _PAST[gate.verdict] if gate.verdict else ""
    return {"word": word, "text": f"Decided by {who}{how}.{comment}", "when": moment}


def _decider(gate: Gate) -> str:
    return "nobody" if gate.decided_by is None else actor(gate.decided_by.key)


_PAST: Final[Mapping[Verdict, str]] = {
    Verdict.APPROVE: "approved",
    Verdict.DENY: "denied",
    Verdict.AMEND: "approved with a change",
    Verdict.REVISE: "sent back for another draft",
    Verdict.REPEAT: "to be repeated",
    Verdict.SKIP: "skipped",
    Verdict.FAIL: "failed",
    Verdict.RETRACT: "taken back",
}


def _happenings(history: History, snapshot: Snapshot, now: datetime) -> Iterator[Happening]:
    """What happened so far, the latest last."""
    lines: list[tuple[datetime, int, Happening]] = []
    for execution in history.executions:
        title = f"Step {execution.step}, {shown(snapshot.sop.by_number[execution.step].title)}"
        closing = execution.closing
        if closing is None:
            begun = Happening(when(execution.opened_at, now), f"{title}: {execution.phase}")
            lines.append((execution.opened_at, _BEGUN, begun))
            continue
        result = "" if closing.output is None else written(masked(closing.output))[:_LONGEST_RESULT]
        detail = shown(masked_text(closing.reason)) or f"by {actor(closing.by)}"
        lines.append(
            (closing.at, _ENDED, Happening(when(closing.at, now), f"{title}: {execution.phase}", detail, result))
        )
    for gate in history.gates:
        if gate.decided_at is not None and gate.verdict is not None:
            comment = f": {shown(masked_text(gate.comment))}" if gate.comment else ""
            word = "expired" if gate.expired else _PAST[gate.verdict]
            who = Happening(when(gate.decided_at, now), f"Gate {gate.code}: {word}", f"by {_decider(gate)}{comment}")
            lines.append((gate.decided_at, _DECIDED, who))
    lines.sort(key=lambda line: (line[1] == _BEGUN, *line[:2]))
    return (happening for _, _, happening in lines)
