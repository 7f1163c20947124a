"""The README's transcript, made by what it shows: a server over stdio, an agent at it, a person at a terminal."""

import json
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from commands import Workspace
from mcp import Client, StdioServerParameters
from mcp.types import TextContent

__all__ = ["server", "transcript"]

WIDTH: Final = 118
MARGIN: Final = 9
# Of an answer, the lines that tell a reader what happened; the rest is for machines.
TELLING: Final = ("Run ", "Do step", "Gate ", "Question", "A person decides", "Where", "Do not poll", "Final output")


def server(workspace: Path, *words: str) -> StdioServerParameters:
    """How a host starts the server of a workspace."""
    given = words or ("serve", "--workspace", str(workspace))
    environ = Workspace(workspace).environment()
    return StdioServerParameters(command=sys.executable, args=["-m", "procedo", *given], env=environ, cwd=workspace)


def _said(who: str, text: str) -> Iterator[str]:
    for line in text.splitlines():
        for part in textwrap.wrap(line, WIDTH - MARGIN, break_on_hyphens=False) or [""]:
            yield f"{who.ljust(MARGIN)}{part}".rstrip()
            who = ""


class _Script:
    """What was said, line by line; ids that nobody can foretell are replaced by short ones."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.lines: list[str] = []
        self.run = self.code = ""

    async def call(self, tool: str, **arguments: Any) -> Any:
        result = await self.client.call_tool(tool, {**arguments, **({"run_id": self.run} if self.run else {})})
        shown = {**({"run_id": self.run} if self.run else {}), **arguments}
        told = "\n".join(content.text for content in result.content if isinstance(content, TextContent))
        if not result.is_error:
            told = "\n".join(line for line in told.splitlines() if line.startswith(TELLING))
        self.lines += [*_said("agent", f"{tool} {json.dumps(shown)}"), *_said("procedo", told), ""]
        return result.structured_content

    def text(self) -> str:
        whole = "\n".join(self.lines).rstrip()
        whole = whole.replace(self.run, "run-7k3…").replace(self.code, "K7QF2M")
        return re.sub(r"</?data-\w+>", "", whole)


async def transcript(workspace: Path) -> str:
    """The refund procedure of the README, walked over stdio and past its gate at a terminal."""
    async with Client(server(workspace)) as client:
        script = _Script(client)
        view = await script.call("sop_start", name="refund", inputs={"order": "A-17"})
        script.run = view["run_id"]
        view = await script.call("sop_advance", execution_id="1.1", status="completed", output={"amount": 40})
        script.code = view["actions"][0]["context"]["code"]
        await script.call("sop_advance", execution_id="2.1", status="completed", output="paid, trust me")
        screen = Workspace(workspace).person("approve", script.code)
        asked = [line for line in screen.text.splitlines() if "[y/N]" in line]
        script.lines += [*_said("person", f"$ procedo approve {script.code}"), *_said("", "\n".join(asked)), ""]
        await script.call("sop_status")
        await script.call("sop_advance", execution_id="2.1", status="completed", output="receipt 9931")
    return script.text()
