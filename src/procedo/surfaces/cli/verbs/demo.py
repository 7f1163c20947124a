"""Starts a real server in a temporary workspace, walks a shipped procedure through it, and shows what happens.

Another agent's step runs in the server, which is killed in the middle of it; that agent asks a person before it acts.
The agent at the host tries to pass a gate and is refused, the server is killed once more, a person decides in a
terminal, and the record is verified. No network and no model are needed. Exit code 0 means that everything
happened as it was said.
"""

import asyncio
import json
import logging
import os
import shutil
import sys
import tempfile
from argparse import ArgumentParser
from importlib.resources import files
from pathlib import Path
from typing import Any

from procedo.causes import causes
from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.demo import archive, typist
from procedo.surfaces.cli.demo.stage import DemoFailed, Stage
from procedo.surfaces.cli.demo.story import PROCEDURE, Story

EXAMPLES = ("procedo demo", "procedo demo --fast", "procedo demo --keep  # leave the workspace, to look around in it")
_PACE_S = 0.28
_LOG = "server.log"
_LONGEST_LOG = 600


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument("--fast", action="store_true", help="without pauses (the default when nobody watches)")
    parser.add_argument("--keep", action="store_true", help="keep the temporary workspace")


def _furnish(workspace: Path) -> None:
    shipped = files("procedo.surfaces.cli.demo")
    folder = workspace / "sops" / PROCEDURE
    folder.mkdir(parents=True)
    for name in ("SOP.toml", "SOP.md"):
        text = shipped.joinpath("sops", PROCEDURE, name).read_text(encoding="utf-8")
        (folder / name).write_text(text, encoding="utf-8")
    text = shipped.joinpath("reviewer.toml").read_text(encoding="utf-8")
    (workspace / "reviewer.toml").write_text(text, encoding="utf-8")
    text = shipped.joinpath("procedo.toml").read_text(encoding="utf-8")
    for mark, path in (("@PYTHON@", sys.executable), ("@ARCHIVE@", archive.__file__)):
        text = text.replace(f'"{mark}"', json.dumps(path))
    if not typist.available():
        # Nobody can be shown answering, so nobody is asked.
        text = text.replace("always_ask = ", "# always_ask = ").replace(
            '["archive__look_up"]', '["archive__look_up", "archive__file_review"]'
        )
    (workspace / "procedo.toml").write_text(text, encoding="utf-8")


def _environ(call: Call) -> dict[str, str]:
    environ = {name: value for name, value in call.environ.items() if not name.startswith("PROCEDO_")}
    if path := environ.get("PYTHONPATH"):
        # The processes of the demonstration run elsewhere, and are to import what this one does.
        environ["PYTHONPATH"] = os.pathsep.join(str(call.cwd / entry) for entry in path.split(os.pathsep))
    return environ


def _perform(story: Story, log: Path) -> None:
    from mcp import MCPError

    try:
        asyncio.run(story.perform())
    except (ExceptionGroup, MCPError, TimeoutError, OSError) as error:
        happened = [*causes(error)]
        for one in happened:
            if isinstance(one, DemoFailed):
                raise one from error
        cause = happened[0]
        if not isinstance(cause, MCPError | TimeoutError | OSError):
            raise
        said = log.read_text(encoding="utf-8", errors="replace").strip()[-_LONGEST_LOG:]
        raise DemoFailed("the server answers", f"{type(cause).__name__}: {cause}. {said}".strip()) from error


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
        with (workspace / _LOG).open("w", encoding="utf-8") as log:
            story = Story(Stage(call.output, pace), workspace, _environ(call), log)
            _perform(story, workspace / _LOG)
        _summary(call, story, workspace)
    finally:
        if not call["keep"]:
            shutil.rmtree(workspace, ignore_errors=True)
    return 0
