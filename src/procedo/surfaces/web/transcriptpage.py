"""A session's transcript for people: what was said, what was called, who allowed it, what it cost."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from procedo.core.session import CallRow, Outcome, Transcript
from procedo.surfaces.redaction import masked, masked_text
from procedo.surfaces.transcripts import call_text, session_facts, turn_text
from procedo.surfaces.web.words import When, actor, cut, shown, when, written

__all__ = ["Entry", "transcript_page"]

_LONGEST: Final = 8_000


class Entry(Struct, frozen=True):
    """One thing in a session. `kind` is said, told or called; `left_off` characters of its text are not shown.

    `amiss` when a call was refused, failed or broken off.
    """

    kind: str
    title: str
    facts: str
    text: str
    result: str
    left_off: int
    when: When
    amiss: bool = False


def transcript_page(transcript: Transcript, now: datetime) -> dict[str, Any]:
    """The values of the template `transcript.html`."""
    row = transcript.session
    return {
        "session": {
            "execution": row.execution_id,
            "facts": [shown(fact) for fact in session_facts(row, actor(row.root))],
            "reason": shown(masked_text(row.reason)),
        },
        "entries": list(_entries(transcript, now)),
    }


def _entries(transcript: Transcript, now: datetime) -> Iterator[Entry]:
    turns = {turn.turn: turn for turn in transcript.turns}
    for message in transcript.messages:
        data: Any = message.data
        at, first = when(message.at, now), message.seq == 1
        if message.kind == "request":
            if first and data.get("instructions"):
                yield _said("told", "Instructions of the agent", "", data["instructions"], at)
            for part in data.get("parts", ()):
                if part.get("part_kind") == "user-prompt":
                    yield _said("told", "The step" if first else "procedo", "", part.get("content"), at)
            continue
        number = (message.seq + 1) // 2
        facts = shown(turn_text(turns.get(number)))
        texts = [part["content"] for part in data.get("parts", ()) if part.get("part_kind") == "text"]
        yield _said("said", f"Turn {number}", facts, "\n".join(map(str, texts)), at)
        yield from (_call(call, when(call.at, now)) for call in transcript.calls if call.turn == number)


def _said(kind: str, title: str, facts: str, value: Any, at: When) -> Entry:
    text, left = cut(masked_text(written(value)), _LONGEST)
    return Entry(kind, title, facts, text, "", left, at)


def _call(call: CallRow, at: When) -> Entry:
    text, left = cut(written(masked(call.arguments)), _LONGEST)
    result, more = cut(masked_text(written(call.full or call.text)), _LONGEST)
    amiss = call.outcome not in (None, Outcome.SUCCESS)
    return Entry("called", f"Calls {shown(call.offered)}", call_text(call), text, result, left + more, at, amiss)
