"""What a notice says: as data for programs, and as text for people. No secrets; foreign text cleaned and bounded."""

from datetime import datetime
from typing import Final

from msgspec import Struct

from procedo.core.approval import Policy, answers, may_decide
from procedo.core.display import capped, line, stamp
from procedo.core.model import Json, Sop
from procedo.core.notice import Occasion
from procedo.core.state import Gate, Run
from procedo.credential_shapes import masked, masked_text
from procedo.ports import Notice

__all__ = ["Place", "notice"]

_LONGEST_QUESTION: Final = 1_000
_LONGEST_CONTENT: Final = 4_000
_TITLES: Final = {
    Occasion.OPENED: "a decision is needed",
    Occasion.PRESENTED: "a decision is needed again",
    Occasion.REMINDED: "still nobody has decided",
    Occasion.ESCALATED: "nobody decided in time",
    Occasion.RESOLVED: "nothing is left to decide",
}


class Place(Struct, frozen=True):
    """Where the reader of a notice can decide: a command for a terminal of theirs, and the inbox page if served."""

    command: str
    link: str | None = None


def notice(
    identifier: str,
    route: str,
    occasion: Occasion,
    at: datetime,
    *,
    sop: Sop,
    run: Run,
    gate: Gate,
    policy: Policy | None,
    place: Place,
    content: bool,
) -> Notice:
    """The notice of one moment of a gate. `content` says whether what is being decided on is told."""
    step = sop.by_number[gate.step]
    question = line(masked_text(gate.prompt), _LONGEST_QUESTION)
    data: dict[str, Json] = {
        "id": identifier,
        "event": occasion.value,
        "at": stamp(at),
        "run": {"id": run.id, "sop": run.sop, "version": run.version, "started_by": str(run.starter)},
        "step": {"number": step.number, "title": line(step.title)},
        "gate": {
            "id": gate.id,
            "code": gate.code,
            "kind": gate.kind.value,
            "revision": gate.revision,
            "since": stamp(gate.waiting_since),
        },
        "asks": question,
    }
    if gate.due_at is not None:
        data["gate"]["due_at"] = stamp(gate.due_at)
    if gate.live:
        data["may_decide"] = may_decide(policy, gate)
        data["answers"] = [verdict.value for verdict in answers(gate, editable=step.edit is not None)]
        data["decide"] = {"command": place.command, **({} if place.link is None else {"link": place.link})}
    else:
        data["outcome"] = _outcome(gate)
    if content and gate.live and gate.content is not None:
        data["content"] = capped(masked(gate.content), _LONGEST_CONTENT)
    title = f"{run.sop}: {_TITLES[occasion]}"
    data["text"] = _text(title, data)
    return Notice(identifier, route, at, title, data["text"], data)


def _outcome(gate: Gate) -> dict[str, Json]:
    if gate.verdict is None:
        return {"withdrawn": line(masked_text(gate.withdrawn))}
    outcome: dict[str, Json] = {"verdict": gate.verdict.value, "by": str(gate.decided_by)}
    if gate.expired:
        outcome["expired"] = True
    if gate.glass_broken:
        outcome["break_glass"] = True
    if gate.comment:
        outcome["comment"] = line(masked_text(gate.comment), _LONGEST_QUESTION)
    return outcome


def _text(title: str, data: dict[str, Json]) -> str:
    gate, step = data["gate"], data["step"]
    lines = [title, data["asks"]]
    lines.append(f'Step {step["number"]} "{step["title"]}", gate {gate["code"]}, run {data["run"]["id"]}.')
    if "outcome" in data:
        lines.append(_ended(data["outcome"]))
        return "\n".join(lines)
    lines.append(f"May decide: {data['may_decide']}.")
    if "due_at" in gate:
        lines.append(f"Deadline: {gate['due_at']}.")
    if "content" in data:
        lines.append(f"About: {line(str(data['content']), _LONGEST_QUESTION)}")
    where = f"in a terminal of yours: {data['decide']['command']}"
    link = data["decide"].get("link")
    lines.append(f"Decide at {link} or {where}" if link else f"Decide {where}")
    return "\n".join(lines)


def _ended(outcome: dict[str, Json]) -> str:
    if "withdrawn" in outcome:
        return f"The question is void: {outcome['withdrawn']}."
    glass = " by breaking the glass" if outcome.get("break_glass") else ""
    how = "expired without an answer" if outcome.get("expired") else f"{outcome['verdict']} by {outcome['by']}{glass}"
    return f"Answered: {how}" + (f" ({outcome['comment']})." if outcome.get("comment") else ".")
