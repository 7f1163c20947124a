"""The demonstration's model: a script that calls the real server through the SDK's client over stdio."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from msgspec import Struct

if TYPE_CHECKING:
    from mcp import Client

__all__ = ["Agent", "Answer", "connected"]

_CALL_LIMIT_S = 90.0


class Answer(Struct, frozen=True):
    """What a tool answered: the run view, the text, and whether it was a refusal."""

    view: Any
    text: str
    refused: bool

    def action(self, kind: str) -> Any:
        """The first action of that kind, or None."""
        actions = (self.view or {}).get("actions", [])
        return next((action for action in actions if action["action"] == kind), None)


class Agent(Struct, frozen=True):
    """A connection to a server process of its own."""

    client: "Client"
    pid: int

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Answer:
        """Call a tool."""
        async with asyncio.timeout(_CALL_LIMIT_S):
            result = await self.client.call_tool(tool, dict(arguments))
        text = "\n".join(part.text for part in result.content if part.type == "text")
        return Answer(result.structured_content, text, bool(result.is_error))

    async def tools(self) -> list[str]:
        """The names of the server's tools."""
        async with asyncio.timeout(_CALL_LIMIT_S):
            return [tool.name for tool in (await self.client.list_tools()).tools]

    async def silent(self) -> bool:
        """True when nobody answers at the other end any more."""
        from mcp import MCPError

        try:
            await self.call("sop_list", {})
        except MCPError:
            return True
        return False

    def kill(self) -> str:
        """End the server process without any warning; returns the name of what was sent."""
        hardest = getattr(signal, "SIGKILL", signal.SIGTERM)
        os.kill(self.pid, hardest)
        return signal.Signals(hardest).name


@asynccontextmanager
async def connected(workspace: Path, environ: Mapping[str, str], log: TextIO) -> AsyncIterator[Agent]:
    """Start `procedo serve` as a process of its own and speak MCP with it."""
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    pid_file = workspace / "server.pid"
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "procedo", "serve", "--workspace", str(workspace), "--pid-file", str(pid_file)],
        env=dict(environ),
        cwd=workspace,
    )
    async with Client(stdio_client(server, errlog=log)) as client:
        yield Agent(client, int(pid_file.read_text(encoding="ascii")))
