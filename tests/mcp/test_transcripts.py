"""Stories of whole runs, told once in a file, and the same in memory and over a real pipe, in both revisions.

In `transcripts/*.txt` a line that begins with `>` is a call, `?` is what the person at the host will answer,
`!` is a decision of a person elsewhere (another process on the same store); everything else is what was answered.
`PROCEDO_WRITE_TRANSCRIPTS=1` writes the answers anew; the difference is to be reviewed.
"""

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp.types import ElicitResult, Implementation
from mcp_host import ERAS, CountedIds, FixedClock, Host, User, connected, says, text_of, workspace

from procedo.app import open_app
from procedo.core.state import Principal, PrincipalKind, Source, Verdict
from procedo.runs import Surface
from procedo.surfaces.mcp.server import build_server

pytestmark = pytest.mark.anyio
FOLDER = Path(__file__).parent / "transcripts"
SERVER = Path(__file__).parents[1] / "support" / "stdio_server.py"
STORIES = sorted(file.stem for file in FOLDER.glob("*.txt"))
IDA = Surface(Principal(Source.CLI, "ida", PrincipalKind.HUMAN), host=False)


@asynccontextmanager
async def in_memory(folder: Path, era: str, user: User | None) -> AsyncIterator[Host]:
    async with (
        open_app(folder, clock=FixedClock(), ids=CountedIds(), worker=False) as app,
        connected(build_server(app), era, user) as host,
    ):
        yield host


@asynccontextmanager
async def over_a_pipe(folder: Path, era: str, user: User | None) -> AsyncIterator[Host]:
    path = os.pathsep.join(entry for entry in sys.path if entry)
    process = StdioServerParameters(
        command=sys.executable, args=[str(SERVER), str(folder), "foretold"], env={"PYTHONPATH": path}
    )
    info = Implementation(name="desk", version="1")
    async with Client(process, mode=era, client_info=info, elicitation_callback=user) as client:
        yield Host(client)


async def decided_elsewhere(folder: Path, line: str) -> str:
    code, verdict, comment = line.split(" ", 2)
    async with open_app(folder, clock=FixedClock(), worker=False) as app:
        await app.runs.decide(code, Verdict(verdict), IDA, comment=comment)
    return ""


async def told(script: list[str], folder: Path, host: Host, user: User) -> str:
    lines = []
    for line in script:
        lines.append(line)
        mark, words = line[0], line[2:]
        if mark == ">":
            tool, _, arguments = words.partition(" ")
            result = await host.result(tool, **json.loads(arguments or "{}"))
            error = "ERROR " if result.is_error else ""
            lines.append(error + text_of(result).replace(str(folder), "WORKSPACE"))
        elif mark == "?":
            decision, _, comment = words.partition(" ")
            closed = decision in ("decline", "cancel")
            user.answers.append(ElicitResult(action=decision) if closed else says(decision, comment))  # type: ignore[arg-type]  # a word of the script
        else:
            await decided_elsewhere(folder, words)
        lines.append("")
    asked = [f"ASKED {question.message}\n" for question in user.asked]
    return "\n".join([*lines, *asked])


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("way", [in_memory, over_a_pipe], ids=["memory", "stdio"])
@pytest.mark.parametrize("story", STORIES)
async def test_a_story_reads_the_same_on_every_way(tmp_path: Path, story: str, way: partial[object], era: str) -> None:
    file = FOLDER / f"{story}.txt"
    recorded = file.read_text(encoding="utf-8")
    script = [line for line in recorded.split("\n") if line[:2] in ("> ", "? ", "! ")]
    folder, user = workspace(tmp_path), User()
    can_ask = any(line.startswith("? ") for line in script)
    async with way(folder, era, user if can_ask else None) as host:  # type: ignore[attr-defined]  # both ways open a host
        text = await told(script, folder, host, user)
    if os.environ.get("PROCEDO_WRITE_TRANSCRIPTS"):
        file.write_text(text, encoding="utf-8")
        recorded = text
    assert text == recorded


def test_there_are_stories_with_and_without_a_form() -> None:
    texts = [(FOLDER / f"{story}.txt").read_text(encoding="utf-8") for story in STORIES]
    assert {"\n? " in text for text in texts} == {True, False}
