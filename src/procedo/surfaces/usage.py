"""What the agents of a run have used: tokens and cost, by agent and in all. What is not known is told as such."""

from collections.abc import Iterable, Sequence
from decimal import Decimal

from procedo.core.session import SessionRow, TurnRow
from procedo.surfaces.shapes import AgentUsage, UsageView

__all__ = ["turn_text", "usage_text", "usage_view"]


def usage_view(sessions: Sequence[SessionRow]) -> UsageView:
    """The sums over sessions of one run and of what it started."""
    names = sorted({row.agent for row in sessions})
    total = _sums("", sessions)
    view: UsageView = {
        "input_tokens": total["input_tokens"],
        "output_tokens": total["output_tokens"],
        "cost_usd": total["cost_usd"],
        "agents": [_sums(name, [row for row in sessions if row.agent == name]) for name in names],
    }
    if "unmeasured" in total:
        view["unmeasured"] = total["unmeasured"]
    if "unpriced" in total:
        view["unpriced"] = total["unpriced"]
    return view


def _sums(agent: str, rows: Iterable[SessionRow]) -> AgentUsage:
    found = list(rows)
    view: AgentUsage = {
        "agent": agent,
        "sessions": len(found),
        "model_turns": sum(row.turns for row in found),
        "tool_calls": sum(row.calls for row in found),
        "input_tokens": sum(row.input_tokens for row in found),
        "output_tokens": sum(row.output_tokens for row in found),
        "cost_usd": format(sum((Decimal(row.cost_usd) for row in found), Decimal(0)), "f"),
    }
    if unmeasured := sum(row.unmeasured for row in found):
        view["unmeasured"] = unmeasured
    if unpriced := sum(row.unpriced for row in found):
        view["unpriced"] = unpriced
    if found and all(row.scripted for row in found):
        view["scripted"] = True
    return view


def usage_text(view: UsageView) -> list[str]:
    """One line for each agent, and one for all of them when there are several."""
    lines = [_line(f"Agent {one['agent']}", one) for one in view["agents"]]
    return [*lines, _line("All agents", view)] if len(lines) > 1 else lines


def _line(name: str, view: AgentUsage | UsageView) -> str:
    told = f"{view['input_tokens']} tokens in, {view['output_tokens']} out, {view['cost_usd']} USD"
    unknown = [f"{view['unmeasured']} requests of unknown size"] if "unmeasured" in view else []
    unknown += [f"{view['unpriced']} of unknown cost"] if "unpriced" in view else []
    script = " (answers from a script, no model)" if view.get("scripted") else ""
    return f"{name} used {told}{''.join(f', and {text}' for text in unknown)}{script}."


def turn_text(turn: TurnRow | None) -> str:
    """Which model answered a turn, and what that took."""
    if turn is None or not turn.answered:
        return "no answer is kept"
    tokens = "tokens unknown" if turn.input_tokens is None else f"{turn.input_tokens} in, {turn.output_tokens} out"
    cost = "cost unknown" if turn.cost_usd is None else f"{turn.cost_usd} USD"
    return f"{turn.model or turn.model_asked}, {tokens}, {cost}"
