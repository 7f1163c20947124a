"""Checks steps of other agents against what those agents can have in this workspace."""

from procedo.core.model import Kind, Step
from procedo.core.routing import resolved_agent
from procedo.sopfile.checked import Checked
from procedo.sopfile.surroundings import Surroundings

__all__ = ["check_agents"]


def check_agents(one: Checked, around: Surroundings) -> None:
    """Tell steps for agents that are disabled, and tools that a step names and its agent does not have.

    The tools of the calling host are its own affair: nothing here knows them.
    """
    for step in one.sop.steps:
        agent = resolved_agent(one.sop, step, around.host_agent)
        if step.kind is not Kind.EXECUTE or agent == around.host_agent or agent not in around.agents:
            continue
        if agent in around.disabled:
            message = f"step {step.number} is for agent {agent!r}, which is disabled"
            one.tell("disabled-agent", message, "write enabled = true at the agent", step, "agent")
        if around.holds is not None:
            _tools(one, around, step, agent)


def _tools(one: Checked, around: Surroundings, step: Step, agent: str) -> None:
    holds = around.holds
    if holds is None:
        return
    allowed = step.scope.allow or () if "scope.allow" in one.written(step).fields else ()
    called = tuple(call["tool"] for call in step.calls if isinstance(call, dict))
    for field, names in (("suggested_tools", step.tools), ("scope.allow", allowed), ("calls", called)):
        for name in names:
            if holds(agent, name):
                continue
            others = sorted(other for other in around.agents if holds(other, name))
            message = f"agent {agent!r} has no tool {name!r}"
            if others:
                one.tell("tool-not-held", message, f"it is held by {', '.join(others)}", step, field)
            else:
                hint = "no agent has it: grant it in a risk profile, or leave it out"
                one.tell("unknown-tool", message, hint, step, field)
