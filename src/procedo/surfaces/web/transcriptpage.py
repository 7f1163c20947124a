"""A session's transcript for people: what was said, what was called, who allowed it, what it cost."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from procedo.core.session import CallRow, Outcome, Transcript
from procedo.surfaces.redaction import masked, masked_text
from procedo.surfaces.usage import turn_text
from procedo.surfaces.web.words import When, actor, cut, shown, when, written

__all__ = ["Entry", "transcript_page"]

_LONGEST: Final = 8_000
_VERDICTS: Final = {"auto": "allowed by itself", "ask": "a person was asked", "deny": "not allowed"}


@dataclass(frozen=True, slots=True)
class Entry:
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
            "agent": shown(row.agent),
            "state": str(row.state),
            "reason": shown(masked_text(row.reason)),
            "delegating": shown(row.delegating),
            "root": actor(row.root),
            "turns": row.turns,
            "calls": row.calls,
            "input_tokens": row.input_tokens,
            "output_tokens": row.output_tokens,
            "cost_usd": row.cost_usd,
            "unmeasured": row.unmeasured,
            "unpriced": row.unpriced,
            "scripted": row.scripted,
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
    facts = [call.outcome.value if call.outcome is not None else call.state.value]
    facts += [_VERDICTS[call.verdict]] if call.verdict in _VERDICTS else []
    facts += ["arguments changed by a person"] if call.amended else []
    facts += [f"{call.attempts} attempts"] if call.attempts > 1 else []
    text, left = cut(written(masked(call.arguments)), _LONGEST)
    result, more = cut(masked_text(written(call.full or call.text)), _LONGEST)
    amiss = call.outcome not in (None, Outcome.SUCCESS)
    return Entry("called", f"Calls {shown(call.offered)}", ", ".join(facts), text, result, left + more, at, amiss)
