"""What the agents of a run have used: tokens and cost, by agent and in all. What is not known is told as such."""

from collections.abc import Iterable, Sequence
from decimal import Decimal

from procedo.core.session import SessionRow
from procedo.surfaces.shapes import AgentUsage, UsageView

__all__ = ["spent", "usage_text", "usage_view"]


def usage_view(sessions: Sequence[SessionRow], run_id: str = "") -> UsageView:
    """The sums over sessions. With the run that they are told of, also how many runs below it have a part in them."""
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
    if run_id and (below := {row.run_id for row in sessions} - {run_id}):
        view["sub_runs"] = len(below)
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
    """One line for each agent, one for all of them when there are several, and whether sub-runs are in that."""
    lines = [_line(f"Agent {one['agent']}", one) for one in view["agents"]]
    lines += [_line("All agents", view)] if len(lines) > 1 else []
    return [*lines, f"That is with sub-runs ({view['sub_runs']})."] if "sub_runs" in view else lines


def _line(name: str, view: AgentUsage | UsageView) -> str:
    script = " (answers from a script, no model)" if view.get("scripted") else ""
    return f"{name} used {', and '.join(spent(view))}{script}."


def spent(view: AgentUsage | UsageView) -> list[str]:
    """The tokens and the cost that are known, and how many requests are not counted in them."""
    told = [f"{view['input_tokens']:,} tokens in, {view['output_tokens']:,} out, {view['cost_usd']} USD"]
    told += [f"{view['unmeasured']} requests of unknown size"] if "unmeasured" in view else []
    told += [f"{view['unpriced']} of unknown cost"] if "unpriced" in view else []
    return told
