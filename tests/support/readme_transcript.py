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
# What of an answer is shown: the parts that tell a reader what happened.
TELLING: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"^(Nothing was decided: .*)",
        r"^Run .*?: (\w+\. [\w ]+);.*",
        r"^(Do step [^(]*\(execution [0-9.]+).*",
        r"^(Question: .*)",
        r"^(Where: .*)",
        r"^(Final output: .*)",
    )
)


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


def _telling(answer: str) -> str:
    found = (pattern.match(line) for line in answer.splitlines() for pattern in TELLING)
    parts = [f"{match[1]})" if match[1].startswith("Do step") else match[1] for match in found if match]
    # Where nothing was decided, the question is the same as before.
    return "\n".join([part for part in parts if part.startswith("Nothing")] or parts)


class _Script:
    """What was said, line by line; ids that nobody can foretell are left out or replaced."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.lines: list[str] = []
        self.replaced: dict[str, str] = {}

    async def call(self, tool: str, **arguments: Any) -> Any:
        result = await self.client.call_tool(tool, arguments)
        told = "\n".join(content.text for content in result.content if isinstance(content, TextContent))
        shown = ", ".join(f"{name}={json.dumps(value)}" for name, value in arguments.items() if name != "run_id")
        self.lines += _said("agent", f"{tool}({shown})")
        self.lines += [*_said("procedo", told if result.is_error else _telling(told))]
        return result.structured_content

    def text(self) -> str:
        whole = "\n".join(self.lines)
        for secret, shown in self.replaced.items():
            whole = whole.replace(secret, shown)
        return re.sub(r"</?data-\w+>", "", whole)


async def transcript(workspace: Path) -> str:
    """The refund procedure of the README, walked over stdio and past its gate at a terminal."""
    async with Client(server(workspace)) as client:
        script = _Script(client)
        view = await script.call("sop_start", name="refund", inputs={"order": "A-17"})
        run = {"run_id": view["run_id"]}
        view = await script.call("sop_advance", **run, execution_id="1.1", status="completed", output={"amount": 40})
        code = view["actions"][0]["context"]["code"]
        script.replaced = {code: "K7QF2M", view["run_id"]: "run-7k3"}
        await script.call("sop_advance", **run, execution_id="2.1", status="completed", output="paid, trust me")
        await script.call("sop_approve", gate_id=code, decision="approve")
        screen = Workspace(workspace).person("approve", code)
        assert screen.code == 0, screen.text
        script.lines += _said("person", f"$ procedo approve {code}")
        script.lines += _said("", "\n".join(line for line in screen.text.splitlines() if "[y/N]" in line))
        await script.call("sop_resume", **run)
        await script.call("sop_advance", **run, execution_id="2.1", status="completed", output="receipt 9931")
    return script.text()
