"""The open tools of one contract: one path for built-in tools and those of servers.

The frozen set is checked here again, whatever a caller has checked, and a tool of a server is called only
while it is what was pinned.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from procedo.agents.contract import Contract
from procedo.agents.parts import Origin, ServerBinding, Tool, ToolId
from procedo.agents.ports import ToolDenied, ToolFailed
from procedo.agents.refusal import Cause, NotAssembled, Reason
from procedo.agents.servers.link import Link, Unreachable, schema_of
from procedo.agents.tools.catalogue import perform
from procedo.core.model import Json

__all__ = ["OpenTools", "connected", "open_tools"]


class OpenTools:
    """Implements `ports.Connections`."""

    def __init__(
        self,
        contract: Contract,
        links: Mapping[str, Link],
        environ: Mapping[str, str],
    ) -> None:
        self._contract = contract
        self._links = links
        self._environ = environ
        self._changed: set[str] = set()

    @property
    def changed(self) -> tuple[str, ...]:
        """Tools whose pin no longer fits."""
        return tuple(sorted(self._changed))

    async def call(self, identity: ToolId, arguments: Json, effect_id: str) -> str:
        """Run one tool; see `ports.Connections.call`."""
        tool = self._contract.identified(identity)
        if tool is None:
            raise ToolDenied(f"the tool {identity.key} is not in this contract")
        if not isinstance(arguments, dict):
            raise ToolFailed("the arguments have to be an object")
        if identity.origin is Origin.MCP:
            return await self._of_server(tool, arguments, effect_id)
        return await perform(identity.name, self._contract.security, self._environ, arguments, effect_id)

    async def _of_server(self, tool: Tool, arguments: Json, effect_id: str) -> str:
        link = self._links.get(tool.id.server)
        if link is None:
            raise ToolFailed(f"the server {tool.id.server!r} is not connected")
        self.compare(link, (await self._listed(link)))
        if tool.id.key in self._changed:
            raise ToolFailed(
                f"{tool.offered} is no longer what it was when this agent was assembled, so it is not used"
            )
        return await link.call(tool.id.name, arguments, effect_id)

    @staticmethod
    async def _listed(link: Link) -> Mapping[str, str]:
        try:
            listed = await link.fresh()
        except Unreachable as error:
            raise ToolFailed(f"the server {link.server.name!r} changed its list and cannot be used: {error}") from error
        return {name: schema_of(tool) for name, tool in listed.items()}

    def compare(self, link: Link, present: Mapping[str, str]) -> None:
        """Note every tool of a server whose pin is not what the server lists now."""
        for pin in link.server.pins:
            if present.get(pin.name) != pin.digest:
                self._changed.add(ToolId(Origin.MCP, link.server.name, pin.name, pin.digest).key)


@asynccontextmanager
async def open_tools(contract: Contract, environ: Mapping[str, str], root: Path) -> AsyncIterator[OpenTools]:
    """Connect the servers of a contract and compare their pins. Raises `NotAssembled` when a required one is gone."""
    try:
        async with anyio.create_task_group() as group:
            links, reasons = await connected(contract.mcp.servers, environ, root, group)
            tools = OpenTools(contract, links, environ)
            for link in links.values():
                tools.compare(link, {name: schema_of(tool) for name, tool in link.listed.items()})
            try:
                if not reasons:
                    yield tools
            finally:
                for link in links.values():
                    link.close()
    except BaseExceptionGroup as errors:
        # What the session raised reaches it as it was; the group of tasks is nobody's business but ours.
        if len(errors.exceptions) == 1:
            raise errors.exceptions[0] from None
        raise
    if reasons:
        raise NotAssembled(contract.actor.acting, reasons)


async def connected(
    servers: tuple[ServerBinding, ...], environ: Mapping[str, str], root: Path, group: "anyio.abc.TaskGroup"
) -> tuple[dict[str, Link], list[Reason]]:
    """Connect side by side; those that answered, and a reason for each required one that did not."""
    links = {server.name: Link(server, environ, root) for server in servers}
    failed: dict[str, str] = {}

    async def opened(name: str) -> None:
        try:
            await links[name].open(group)
        except Unreachable as error:
            failed[name] = str(error)

    async with anyio.create_task_group() as opening:
        for name in links:
            opening.start_soon(opened, name)
    reasons = [
        Reason(Cause.UNREACHABLE_SERVER, f"the MCP server {server.name!r} cannot be reached: {failed[server.name]}")
        for server in servers
        if server.name in failed and server.required
    ]
    return {name: link for name, link in links.items() if name not in failed}, reasons
