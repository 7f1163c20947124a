from datetime import UTC, datetime
from typing import Any

import pytest

from procedo.core.altered import altered
from procedo.core.session import CallRow, CallState, Outcome, SessionRow, SessionState, TurnRow
from procedo.surfaces.transcripts import call_text, session_facts, turn_text

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
CALL = CallRow(1, 0, "c1", "built_in:file_read", "file_read", "s", {"path": "a.txt"}, "d", NOW)
TURN = TurnRow(1, "d", "asked", NOW, answered=True, input_tokens=12_345, output_tokens=6, cost_usd="0.25")
HEAD = SessionRow(
    "run-1", "1.1", "reviewer", "host", "agent:host:x", 1, "local", 1, NOW, NOW, SessionState.COMPLETED,
    turns=2, calls=3, input_tokens=12_345, output_tokens=67, cost_usd="0.25",
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, "waiting"),
        ({"state": CallState.STARTED, "verdict": "auto", "attempts": 1}, "started, allowed in advance"),
        ({"outcome": Outcome.SUCCESS, "verdict": "ask"}, "success, a person was asked"),
        ({"outcome": Outcome.DENIED, "verdict": "deny"}, "denied, not allowed"),
        (
            {"outcome": Outcome.INTERRUPTED, "verdict": "ask", "amended": True, "attempts": 2},
            "interrupted, a person was asked, arguments changed by a person, 2 attempts",
        ),
    ],
)
def test_a_call_tells_how_it_ended_and_who_allowed_it(changes: dict[str, Any], told: str) -> None:
    assert call_text(altered(CALL, **changes)) == told


@pytest.mark.parametrize(
    ("turn", "told"),
    [
        (None, "no answer is kept"),
        (altered(TURN, answered=False), "no answer is kept"),
        (TURN, "asked, 12,345 in, 6 out, 0.25 USD"),
        (altered(TURN, model="another", cost_usd=None), "another, 12,345 in, 6 out, cost unknown"),
        (altered(TURN, input_tokens=None, output_tokens=None), "asked, tokens unknown, 0.25 USD"),
    ],
)
def test_a_turn_tells_its_model_and_what_it_took(turn: TurnRow | None, told: str) -> None:
    assert turn_text(turn) == told


def test_a_session_tells_for_whom_it_works_and_what_nobody_counted() -> None:
    known = [
        "agent reviewer", "completed", "for host, started by ida", "2 turns, 3 calls",
        "12,345 tokens in, 67 out, 0.25 USD",
    ]  # fmt: skip
    assert session_facts(HEAD, "ida") == known
    assert session_facts(altered(HEAD, unmeasured=1, unpriced=2, scripted=True), "ida") == [
        *known,
        "1 requests of unknown size",
        "2 of unknown cost",
        "answers from a script, no model",
    ]
