"""The open tools of one contract: one path for built-in tools and those of servers.

The frozen set is checked here again, whatever a caller has checked, and a tool of a server is called only
while it is what was pinned.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from procedo.agents.contract import Contract
from procedo.agents.parts import Origin, ServerBinding, Tool, ToolId
from procedo.agents.ports import ToolDenied, ToolFailed
from procedo.agents.refusal import Cause, Reason
from procedo.agents.servers.link import Link, Unreachable, schema_of
from procedo.agents.tools.catalogue import perform
from procedo.core.model import Json

__all__ = ["Links", "OpenTools", "links"]


class Links:
    """The connections of one activation: opened while its agent is assembled, and used by its session; see `links`."""

    def __init__(self, environ: Mapping[str, str], root: Path, group: "anyio.abc.TaskGroup") -> None:
        self._environ = environ
        self._root = root
        self._group = group
        self.open: dict[str, Link] = {}

    async def connect(self, servers: Sequence[ServerBinding]) -> list[Reason]:
        """Connect side by side; a reason for each required server that does not answer."""
        failed: dict[str, str] = {}

        async def opened(server: ServerBinding) -> None:
            link = Link(server, self._environ, self._root)
            try:
                await link.open(self._group)
            except Unreachable as error:
                failed[server.name] = str(error)
            else:
                self.open[server.name] = link

        async with anyio.create_task_group() as opening:
            for server in servers:
                opening.start_soon(opened, server)
        return [
            Reason(Cause.UNREACHABLE_SERVER, f"the MCP server {server.name!r} cannot be reached: {failed[server.name]}")
            for server in servers
            if server.name in failed and server.required
        ]

    def keep(self, names: Collection[str]) -> None:
        """Let every connection end but these."""
        for name in [name for name in self.open if name not in names]:
            self.open.pop(name).close()


@asynccontextmanager
async def links(environ: Mapping[str, str], root: Path) -> AsyncIterator[Links]:
    """A place for connections; none outlives it."""
    try:
        async with anyio.create_task_group() as group:
            opened = Links(environ, root, group)
            try:
                yield opened
            finally:
                opened.keep(())
    except BaseExceptionGroup as errors:
        # What the session raised reaches it as it was; the group of tasks is nobody's business but ours.
        if len(errors.exceptions) == 1:
            raise errors.exceptions[0] from None
        raise


class OpenTools:
    """Implements `ports.Connections`."""

    def __init__(self, contract: Contract, opened: Links, environ: Mapping[str, str]) -> None:
        self._contract = contract
        self._links = opened
        self._environ = environ
        self._pins = {server.name: server.pins for server in contract.mcp.servers}
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
        link = self._links.open.get(tool.id.server)
        if link is None:
            raise ToolFailed(f"the server {tool.id.server!r} is not connected")
        self._compare(tool.id.server, await self._listed(link))
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

    def _compare(self, server: str, present: Mapping[str, str]) -> None:
        """Note every tool of a server whose pin is not what the server lists now."""
        for pin in self._pins.get(server, ()):
            if present.get(pin.name) != pin.digest:
                self._changed.add(ToolId(Origin.MCP, server, pin.name, pin.digest).key)
