"""The steps of a run as its page shows them: each attempt, what it gave, what it cost."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from procedo.core.model import Json
from procedo.core.session import SessionRow
from procedo.core.state import Execution, Performer
from procedo.runs import History
from procedo.surfaces.graph import MARKS, StepMark
from procedo.surfaces.redaction import masked, masked_text
from procedo.surfaces.usage import spent, usage_view
from procedo.surfaces.web.words import Block, When, blocks, cut, shown, when

__all__ = ["Attempt", "Preview", "preview", "steps", "usage"]

_LONGEST: Final = 3_000
_MOST_ATTEMPTS: Final = 10
"""How many attempts at one step are shown unless all are asked for; the latest ones."""
_PERFORMERS: Final[Mapping[Performer, str]] = {
    Performer.HOST: "the host's assistant",
    Performer.PROGRAM: "the calling program",
    Performer.SERVER: "the server",
    Performer.CHILD: "a sub-run",
    Performer.TIMER: "a timer",
}


class Preview(Struct, frozen=True):
    """A value as it stands in the page; `left_off` characters of it are not there."""

    blocks: tuple[Block, ...]
    left_off: int

    @property
    def characters(self) -> int:
        """How many are there."""
        return sum(len(block.text) for block in self.blocks)


def preview(value: Json) -> Preview:
    """The beginning of a value."""
    kept, room, left = [], _LONGEST, 0
    for block in blocks(value):
        text, off = cut(block.text, room)
        room, left = room - len(text), left + off
        if text or not block.text:
            kept.append(Block(block.name, text, block.code))
    return Preview(tuple(kept), left)


class Attempt(Struct, frozen=True):
    """One execution of a step."""

    id: str
    words: str
    look: str
    who: str
    opened: When
    closed: When | None
    took: str
    reason: str
    notes: tuple[str, ...]
    output: Preview | None
    spent: str
    transcript: bool


def steps(
    history: History, marks: Mapping[int, StepMark], now: datetime, *, transcripts: bool, whole: bool
) -> list[dict[str, Any]]:
    """Each step that was executed, in order of the procedure, with its latest attempts, or with all (`whole`)."""
    first = 0 if whole else -_MOST_ATTEMPTS
    sessions = {row.execution_id: row for row in history.sessions}
    by_step: dict[int, list[Execution]] = {}
    for execution in history.executions:
        by_step.setdefault(execution.step, []).append(execution)
    return [
        {
            "number": step.number,
            "title": shown(masked_text(step.title)),
            "mark": marks.get(step.number, "ahead"),
            "words": MARKS[marks[step.number]] if step.number in marks else "not reached",
            "attempts": [
                _attempt(execution, sessions.get(execution.id), now, transcripts=transcripts)
                for execution in by_step.get(step.number, [])[first:]
            ],
            "earlier": 0 if whole else max(0, len(by_step.get(step.number, [])) - _MOST_ATTEMPTS),
        }
        for step in history.snapshot.sop.steps
        if step.number in by_step or step.number in marks
    ]


def _attempt(execution: Execution, session: SessionRow | None, now: datetime, *, transcripts: bool) -> Attempt:
    closing = execution.closing
    item = execution.arrival.item
    which = f", item {item + 1}" if item is not None else ""
    again = f", attempt {execution.arrival.attempt}" if execution.arrival.attempt > 1 else ""
    performer = execution.performer
    return Attempt(
        id=execution.id,
        words=f"{execution.phase}{which}{again}",
        look=str(execution.phase),
        who=f"agent {shown(execution.agent)}" if performer is Performer.AGENT else _PERFORMERS[performer],
        opened=when(execution.opened_at, now),
        closed=None if closing is None else when(closing.at, now),
        took="" if closing is None else _took((closing.at - execution.opened_at).total_seconds()),
        reason="" if closing is None else shown(masked_text(closing.reason)),
        notes=() if closing is None else tuple(shown(masked_text(note)) for note in closing.notes),
        output=None if closing is None or closing.output is None else preview(masked(closing.output)),
        spent="" if session is None else "; ".join(spent(usage_view([session]))),
        transcript=transcripts and session is not None,
    )


def _took(seconds: float) -> str:
    if seconds < 0.05:
        return ""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    hours, rest = divmod(whole, 3600)
    return f"{hours} h {rest // 60} min" if hours else f"{rest // 60} min {rest % 60} s"


def usage(sessions: Iterable[SessionRow]) -> list[dict[str, Any]]:
    """What each step of this very run has used, for a table."""
    rows: dict[tuple[int, str], list[SessionRow]] = {}
    for row in sessions:
        rows.setdefault((int(row.execution_id.partition(".")[0]), row.agent), []).append(row)
    return [{"step": step, "name": shown(agent), **_sums(found)} for (step, agent), found in sorted(rows.items())]


def _sums(rows: list[SessionRow]) -> dict[str, Any]:
    view = usage_view(rows)
    (agent,) = view["agents"]
    scripted = agent.get("scripted", False)
    return {**view, "turns": agent["model_turns"], "calls": agent["tool_calls"], "scripted": scripted}
