"""Clients that others made walk a procedure through its gate."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import Workspace
from mcp_host import workspace
from node_tools import node, packages

pytestmark = pytest.mark.requirement("real-clients")
DRIVER = Path(__file__).parent / "drive.mjs"
SERVER = (sys.executable, "-m", "procedo", "serve")
BOUND_S = 300


def at(folder: Path) -> Workspace:
    return Workspace(workspace(folder))


def printed(command: list[str], place: Workspace) -> Any:
    """What a program printed as JSON when it went well."""
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=BOUND_S,
        cwd=place.root,
        env=place.environment(),
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(("era", "version"), [("legacy", "2025-11-25"), ("modern", "2026-07-28")])
def test_the_typescript_client_walks_a_procedure_and_asks_its_user(tmp_path: Path, era: str, version: str) -> None:
    folder = packages("@modelcontextprotocol/client")
    place = at(tmp_path)
    met = printed([node(), str(DRIVER), str(folder), era, *SERVER], place)
    (question,) = met.pop("asked")
    assert 'May step 1 "Load kiln" of kiln-firing begin?' in question
    assert met == {
        "version": version,
        "tools": 8,
        "started": "waiting_approval",
        "passed": "1.1",
        "ended": "completed",
        "output": {"done": True},
        "prompts": ["kiln-firing", "letter", "plain"],
    }


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_walks_a_procedure_while_a_person_decides_at_a_terminal(tmp_path: Path, era: str) -> None:
    script = packages("@modelcontextprotocol/inspector") / "node_modules/.bin/mcp-inspector"
    place = at(tmp_path)

    def inspector(method: str, *more: str) -> Any:
        options = ["--protocol-era", era, "--method", method, *more, "--format", "json"]
        return printed([node(), str(script.resolve()), "--cli", *SERVER, *options], place)["result"]

    def call(tool: str, **arguments: str) -> Any:
        # Values are JSON to the inspector: bare, the id of an execution would be a number.
        given = [word for key, value in arguments.items() for word in ("--tool-arg", f"{key}={json.dumps(value)}")]
        return inspector("tools/call", "--tool-name", tool, *given)["structuredContent"]

    started = call("sop_start", name="kiln-firing")
    (gate,) = started["actions"]
    run_id = started["run_id"]
    asked = call("sop_approve", gate_id=gate["gate_id"], decision="approve")
    assert (asked["status"], asked["who_acts"]) == ("waiting_approval", "human")

    screen = place.person("approve", gate["context"]["code"])
    assert screen.code == 0, screen.text
    assert call("sop_resume", run_id=run_id)["actions"][0]["execution_id"] == "1.1"
    for execution in ("1.1", "2.1"):
        view = call("sop_advance", run_id=run_id, execution_id=execution, status="completed", output="done")
    assert view["status"] == "completed"
    (_, as_json) = inspector("resources/read", "--uri", f"sop://runs/{run_id}")["contents"]
    assert json.loads(as_json["text"])["output"] == "done"
    (message,) = inspector("prompts/get", "--prompt-name", "kiln-firing", "--prompt-args", "inputs=hello")["messages"]
    assert "Heat to 980" in message["content"]["text"]
