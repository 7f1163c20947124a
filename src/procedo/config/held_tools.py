"""Which tools an agent can have by its tables, before any server is asked what it has."""

from collections.abc import Iterable

from procedo.config.agent_settings import AgentSettings
from procedo.config.tool_names import BUILT_IN, EVERYTHING

__all__ = ["can_hold"]


def can_hold(known: AgentSettings, alias: str, tool: str) -> bool:
    """True when the agent's tables grant this tool, or some tool of `server__*`; no agent of that name has any."""
    agent = known.agents.get(alias)
    risk = known.risks.get(agent.risk) if agent is not None else None
    if agent is None or risk is None:
        return False
    server = tool.partition("__")[0] if "__" in tool else ""
    if server and server not in _servers(known, agent.bundles):
        return False
    if not server and tool not in BUILT_IN:
        return tool in EVERYTHING and bool(risk.allowed_tools)
    return _named(tool, risk.allowed_tools) and not _named(tool, risk.excluded_tools, whole=True)


def _servers(known: AgentSettings, bundles: Iterable[str]) -> set[str]:
    found = [known.bundles[name] for name in bundles if name in known.bundles]
    listed = {name for bundle in found for name in bundle.servers if name in known.servers}
    return listed - {name for bundle in found for name in bundle.exclude} if known.mcp else set()


def _named(tool: str, entries: Iterable[str], *, whole: bool = False) -> bool:
    """True when an entry means the tool. `server__*` is meant by one of its tools, or with `whole` by all of them."""
    server, cut, name = tool.partition("__")
    for entry in entries:
        if entry in EVERYTHING or entry == tool or (cut and entry == f"{server}__*"):
            return True
        if cut and name == "*" and not whole and entry.startswith(f"{server}__"):
            return True
    return False
