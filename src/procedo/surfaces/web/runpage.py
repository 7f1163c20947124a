"""Everything that the page of one run shows."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from procedo.core.access import Role
from procedo.core.model import Json
from procedo.core.principal import PrincipalKind
from procedo.core.session import SessionRow
from procedo.core.state import Gate, Status
from procedo.ports import Record
from procedo.runs import History, Snapshot
from procedo.surfaces.drawing import drawing
from procedo.surfaces.gates import may_decide, what_is_asked
from procedo.surfaces.graph import outline
from procedo.surfaces.overview import step_marks, ways_taken
from procedo.surfaces.redaction import masked, masked_text
from procedo.surfaces.timeline import record_line
from procedo.surfaces.usage import usage_view
from procedo.surfaces.views import who_acts
from procedo.surfaces.web.gatepage import KINDS, gate_outcome
from procedo.surfaces.web.logins import Visitor
from procedo.surfaces.web.runcontrols import controls
from procedo.surfaces.web.runlist import entry, key_text
from procedo.surfaces.web.runsteps import preview, steps, usage
from procedo.surfaces.web.standing import standing, status_words
from procedo.surfaces.web.words import actor, shown, when

__all__ = ["reads_transcripts", "run_page", "run_version"]

_ACTORS: Final[Mapping[str, str]] = {
    "host": "The host's assistant acts next",
    "human": "A person has to act",
    "agent": "An agent is at work",
    "server": "The server is at work",
    "nobody": "Nobody has to act",
}
_PASSING: Final = frozenset(
    {
        "ArrivalReleased",
        "DispatchesReleased",
        "EffectStarted",
        "ExecutionExtended",
        "ExecutionResumed",
        "ItemOpened",
        "Routed",
        "StepVisited",
    }
)
"""What happens between the things that people ask about."""
_SHOWN_RECORDS: Final = 60


def reads_transcripts(visitor: Visitor) -> bool:
    """True for a person with the role operate."""
    return visitor.access.principal.kind is PrincipalKind.HUMAN and visitor.access.may(Role.OPERATE)


def run_version(snapshot: Snapshot) -> str:
    """Differs when the page of this run would say something else; `snapshot` with its sessions."""
    spent = [(row.run_id, row.execution_id, row.turns, row.calls, row.state) for row in snapshot.sessions]
    text = repr((_revisions(snapshot), spent))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _revisions(snapshot: Snapshot) -> list[Any]:
    return [snapshot.run.id, snapshot.run.revision, *map(_revisions, snapshot.children)]


def run_page(
    history: History, visitor: Visitor, now: datetime, *, current: str | None, whole_record: bool
) -> dict[str, Any]:
    """The values of the template `run.html`. `current` is the digest of the procedure as it is in the library now."""
    snapshot = history.snapshot
    run, sop = snapshot.run, snapshot.sop
    marks = step_marks(run, history.executions)
    picture = drawing(
        outline(sop, run.mode),
        marks,
        taken=ways_taken(history.executions),
        link=lambda number: f"#step-{number}" if number in marks else None,
        name="run",
    )
    records = tuple(_records(history, now, whole=whole_record))
    return {
        "visitor": visitor,
        "version": run_version(snapshot),
        "run": run,
        "key": None if run.key is None else key_text(run.key),
        "status": status_words(run.status),
        "sop": {"name": shown(sop.name), "version": shown(run.version), "digest": run.digest[:12]},
        "newer": current is not None and current != run.digest,
        "actor": "" if run.end is not None else _ACTORS[who_acts(snapshot)],
        "standing": [now for now in standing(snapshot) if now.gate not in {gate.id for gate in run.open_gates}],
        "started": when(run.started_at, now),
        "starter": actor(run.starter.key),
        "active": when(run.active_at, now),
        "ended": None if run.end is None else when(run.end.at, now),
        "controls": controls(history, visitor),
        "operates": visitor.access.may(Role.OPERATE),
        "picture": picture,
        "inputs": preview(masked(run.inputs)),
        "output": preview(masked(run.end.output)) if run.status is Status.COMPLETED and run.end is not None else None,
        "steps": steps(history, marks, now, transcripts=reads_transcripts(visitor), whole=whole_record),
        "open_gates": [_open_gate(snapshot, gate, now) for gate in run.open_gates],
        "gates": [_decision(gate, visitor, now) for gate in history.gates if not gate.open],
        "usage": usage(history.sessions),
        "total": _total(snapshot.sessions),
        "children": [entry(one, now) for one in history.children],
        "records": records[-_SHOWN_RECORDS:] if not whole_record else records,
        "earlier": 0 if whole_record else max(0, len(records) - _SHOWN_RECORDS),
        "whole_record": whole_record,
    }


def _gate(gate: Gate, now: datetime) -> dict[str, Any]:
    """What is told of a gate, open or decided."""
    return {
        "id": gate.id,
        "code": gate.code,
        "kind": KINDS[gate.kind],
        "step": gate.step,
        "asks": shown(what_is_asked(gate)),
        "votes": [(shown(str(vote.principal)), str(vote.verdict), when(vote.at, now)) for vote in gate.votes],
    }


def _open_gate(snapshot: Snapshot, gate: Gate, now: datetime) -> dict[str, Any]:
    return {
        **_gate(gate, now),
        "who": shown(may_decide(snapshot.policies.get(gate.id), gate)),
        "waiting": when(gate.waiting_since, now),
        "due": None if gate.due_at is None else when(gate.due_at, now),
    }


def _decision(gate: Gate, visitor: Visitor, now: datetime) -> dict[str, Any]:
    return {
        **_gate(gate, now),
        "outcome": gate_outcome(gate, visitor, now),
    }


def _total(sessions: Iterable[SessionRow]) -> Mapping[str, Any] | None:
    found = tuple(sessions)
    return {"unmeasured": 0, "unpriced": 0, **usage_view(found)} if found else None


# --- the record -----------------------------------------------------------------------------------


def _records(history: History, now: datetime, *, whole: bool) -> Iterator[dict[str, Any]]:
    codes = {gate.id: gate.code for gate in history.gates}
    titles = {str(step.number): shown(masked_text(step.title)) for step in history.snapshot.sop.steps}
    for record in history.records:
        if whole or record.kind not in _PASSING:
            yield {
                "when": when(record.at, now),
                "text": _said(record, codes),
                "who": actor(record.acting),
                "step": "" if record.execution_id is None else titles.get(record.execution_id.partition(".")[0], ""),
            }


def _said(record: Record, codes: Mapping[str, str]) -> str:
    data: Json = masked(record.data)
    if isinstance(data, dict) and isinstance(gate_id := data.get("gate_id"), str):
        data = {**data, "gate_id": codes.get(gate_id, gate_id)}
    text = shown(masked_text(record_line(record.kind, data)))
    # A procedure is named as it is written.
    return text if record.kind == "RunStarted" else text[:1].upper() + text[1:]
