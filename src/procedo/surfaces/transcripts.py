"""A session in words, for the terminal and the page alike: its head, its turns and its calls."""

from collections.abc import Mapping
from typing import Final

from procedo.core.session import CallRow, SessionRow, TurnRow
from procedo.surfaces.usage import spent, usage_view

__all__ = ["call_text", "session_facts", "turn_text"]

_ALLOWED: Final[Mapping[str, str]] = {
    "auto": "allowed in advance",
    "ask": "a person was asked",
    "deny": "not allowed",
}


def session_facts(row: SessionRow, root: str) -> list[str]:
    """Who is at work for whom, how it stands and what it took. `root`: who started the run, as the surface says it."""
    told = [f"agent {row.agent}", str(row.state), f"for {row.delegating}, started by {root}"]
    told += [f"{row.turns} turns, {row.calls} calls", *spent(usage_view([row]))]
    return [*told, "answers from a script, no model"] if row.scripted else told


def turn_text(turn: TurnRow | None) -> str:
    """Which model answered a turn, and what that took."""
    if turn is None or not turn.answered:
        return "no answer is kept"
    tokens = "tokens unknown" if turn.input_tokens is None else f"{turn.input_tokens:,} in, {turn.output_tokens:,} out"
    cost = "cost unknown" if turn.cost_usd is None else f"{turn.cost_usd} USD"
    return f"{turn.model or turn.model_asked}, {tokens}, {cost}"


def call_text(call: CallRow) -> str:
    """How a tool call ended or how far it is, and who allowed it."""
    facts = [str(call.state if call.outcome is None else call.outcome)]
    facts += [_ALLOWED[call.verdict]] if call.verdict in _ALLOWED else []
    facts += ["arguments changed by a person"] if call.amended else []
    facts += [f"{call.attempts} attempts"] if call.attempts > 1 else []
    return ", ".join(facts)
