"""The MCP servers of an agent: the union of its bundles, excludes win; none means none. Listed once, at assembly."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from procedo.agents.connections import Links
from procedo.agents.parts import NO_SERVERS, McpScope, Origin, Pin, ServerBinding, Tool, Transport
from procedo.agents.refusal import Cause, Reason
from procedo.agents.toolset import ServerTool
from procedo.config import Settings
from procedo.config.agent_settings import AgentTable, ServerTable
from procedo.core.altered import altered

__all__ = ["Listing", "binding", "mcp_scope"]


class Listing(Struct, frozen=True):
    """What the servers in scope have. `absent` are those that could not be listed; True: it was required."""

    bindings: tuple[ServerBinding, ...]
    excluded: tuple[str, ...]
    listed: Mapping[str, tuple[ServerTool, ...]]
    absent: Mapping[str, bool]
    reasons: tuple[Reason, ...]

    def pinned(self, tools: Iterable[Tool]) -> McpScope:
        """The scope with the pins of the tools that are offered; a server that offers none is not connected."""
        pins: dict[str, list[Pin]] = {}
        for tool in tools:
            if tool.id.origin is Origin.MCP:
                pins.setdefault(tool.id.server, []).append(Pin(tool.id.name, tool.id.schema))
        bindings = tuple(
            altered(binding, pins=tuple(sorted(pins[binding.name], key=lambda pin: pin.name)))
            for binding in self.bindings
            if binding.name in pins
        )
        return McpScope(bindings, self.excluded) if bindings or self.excluded else NO_SERVERS


async def mcp_scope(settings: Settings, agent: AgentTable, links: Links) -> Listing:
    """Connect to the servers in scope and list their tools; the connections stay open in `links`."""
    known = settings.agents
    reasons = [
        Reason(Cause.MISSING_PROFILE, f"there is no bundle {name!r}")
        for name in agent.bundles
        if name not in known.bundles
    ]
    bundles = [known.bundles[name] for name in agent.bundles if name in known.bundles]
    excluded = sorted({name for bundle in bundles for name in bundle.exclude})
    wanted = sorted({name for bundle in bundles for name in bundle.servers} - set(excluded)) if known.mcp else []
    reasons += [
        Reason(Cause.UNREACHABLE_SERVER, f"there is no server {name!r}") for name in wanted if name not in known.servers
    ]
    bindings = tuple(binding(known.servers[name]) for name in wanted if name in known.servers)
    unreachable = await links.connect(bindings)
    listed = {
        name: tuple(ServerTool(tool.name, tool.description or "", tool.input_schema) for tool in link.listed.values())
        for name, link in links.open.items()
    }
    absent = {server.name: server.required for server in bindings if server.name not in listed}
    return Listing(bindings, tuple(excluded), listed, absent, (*reasons, *unreachable))


def binding(table: ServerTable) -> ServerBinding:
    """How a server of the configuration is reached; nothing is pinned yet."""
    return ServerBinding(
        name=table.name,
        transport=Transport(table.transport),
        command=table.command,
        args=table.args,
        env=table.env,
        url=table.url,
        headers=table.headers,
        required=table.required,
        connect_timeout_s=table.connect_timeout_s,
        tool_timeout_s=table.tool_timeout_s,
        pins=(),
    )
