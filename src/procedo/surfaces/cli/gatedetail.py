"""One gate in full: what is asked, what has happened at it, and what changed since it was presented before."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from procedo.core.approval import answers
from procedo.core.state import Verdict
from procedo.surfaces.cli.output import ago, visible
from procedo.surfaces.cli.verbs.decision import presentation
from procedo.surfaces.cli.wording import decisions
from procedo.surfaces.presentations import previous
from procedo.surfaces.redaction import masked
from procedo.surfaces.timeline import record_line

if TYPE_CHECKING:
    from procedo.ports import OpenGate, Record
    from procedo.runs import History

__all__ = ["gate_detail", "gate_value"]

_SIGNS = {"added": "+", "removed": "-", "same": " ", "gap": "…"}


def _at_gate(found: "OpenGate", history: "History") -> Iterator["Record"]:
    """The records of what happened at a gate behind its opening."""
    for record in history.records:
        if isinstance(record.data, dict) and record.data.get("gate_id") == found.gate.id:
            yield record


def _changes(found: "OpenGate", history: "History") -> Iterator[str]:
    from procedo.surfaces.web.difference import difference

    before = previous(history, found.gate)
    if before is None:
        return
    lines = difference(masked(before), masked(found.gate.content))
    if lines:
        yield "  what changed since it was presented before:"
        yield from (f"  | {_SIGNS[line.kind]} {visible(line.text, lines=False)}" for line in lines)


def _next(found: "OpenGate", verdicts: Iterable[Verdict]) -> str:
    if found.gate.open:
        return f"  decide    {decisions(found.gate.code, [str(verdict) for verdict in verdicts])}"
    if found.gate.redrafting:
        return "  a new draft is being made; nothing can be decided until it is there"
    if found.gate.verdict is None:
        return f"  void: {visible(found.gate.withdrawn, lines=False)}"
    return f"  decided: {found.gate.verdict} by {found.gate.decided_by}"


def gate_detail(found: "OpenGate", history: "History", now: datetime) -> str:
    """The gate for a person."""
    lines = [presentation(found, history.snapshot, now), *_changes(found, history)]
    happened = [*_at_gate(found, history)]
    if happened:
        lines.append("  what has happened here:")
    for record in happened:
        told = visible(record_line(record.kind, masked(record.data)), lines=False)
        lines.append(f"  {ago(record.at, now).rjust(16)}  {told}")
    step = history.snapshot.sop.by_number[found.gate.step]
    verdicts = answers(found.gate, editable=step.edit is not None)
    return "\n".join([*lines, _next(found, verdicts)])


def gate_value(found: "OpenGate", history: "History") -> dict[str, Any]:
    """The gate for a program: as in the inbox, with what stood there before and what has happened."""
    from procedo.surfaces.overview import inbox_view

    (entry,) = inbox_view([(found, history.snapshot)])["gates"]
    records = [{"at": r.at.isoformat(), "kind": r.kind, "data": masked(r.data)} for r in _at_gate(found, history)]
    return {**entry, "previous": masked(previous(history, found.gate)), "history": records}
