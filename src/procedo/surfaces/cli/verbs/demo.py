"""Starts a real server in a temporary workspace, walks a shipped procedure through it, and shows what happens.

An agent tries to pass a gate and is refused, the server is killed in the middle and started again, a person decides
in a terminal, and the record is verified. No network and no model are needed. Exit code 0 means that everything
happened as it was said.
"""

import asyncio
import logging
import shutil
import tempfile
from argparse import ArgumentParser
from importlib.resources import files
from pathlib import Path
from typing import Any

from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.demo.stage import Stage
from procedo.surfaces.cli.demo.story import PROCEDURE, Story

EXAMPLES = ("procedo demo", "procedo demo --fast", "procedo demo --keep  # leave the workspace, to look around in it")
_PACE_S = 0.35


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument("--fast", action="store_true", help="without pauses (the default when nobody watches)")
    parser.add_argument("--keep", action="store_true", help="keep the temporary workspace")


def _furnish(workspace: Path) -> None:
    folder = workspace / "sops" / PROCEDURE
    folder.mkdir(parents=True)
    for name in ("SOP.toml", "SOP.md"):
        shipped = files("procedo.surfaces.cli.demo").joinpath("sops", PROCEDURE, name)
        (folder / name).write_text(shipped.read_text(encoding="utf-8"), encoding="utf-8")


def _environ(call: Call) -> dict[str, str]:
    return {name: value for name, value in call.environ.items() if not name.startswith("PROCEDO_")}


def _summary(call: Call, story: Story, workspace: Path) -> None:
    stage, out = story.stage, call.output
    if call.json:
        value: dict[str, Any] = {"ok": True, "run_id": story.run_id, "output": story.output}
        value |= {"shown": stage.shown, "skipped": stage.skipped}
        out.value(value | ({"workspace": str(workspace)} if call["keep"] else {}))
        return
    out.line()
    out.line(out.style("bold", "What was shown"))
    for text in stage.shown:
        out.line(f"   {out.style('green', 'yes')}      {text}")
    for text in stage.skipped:
        out.line(f"   {out.style('yellow', 'skipped')}  {text}")
    out.line()
    out.line(f"The workspace is kept: {workspace}" if call["keep"] else "The temporary workspace is gone.")
    out.line("Next: procedo new my-procedure, then point your MCP host at: procedo serve")


def run(call: Call) -> int:
    """Perform."""
    # The client's own complaints about a server that was killed on purpose are no news.
    logging.getLogger("mcp").addHandler(logging.NullHandler())
    workspace = Path(tempfile.mkdtemp(prefix="procedo-demo-")).resolve()
    pace = 0.0 if call["fast"] or not call.output.live else _PACE_S
    try:
        _furnish(workspace)
        with (workspace / "server.log").open("w", encoding="utf-8") as log:
            story = Story(Stage(call.output, pace), workspace, _environ(call), log)
            asyncio.run(story.perform())
        _summary(call, story, workspace)
    finally:
        if not call["keep"]:
            shutil.rmtree(workspace, ignore_errors=True)
    return 0
