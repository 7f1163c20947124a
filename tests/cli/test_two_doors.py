"""The command line and a server on one store: what happens at one door is seen at the other at once."""

import sys
from typing import Any

import pytest
from commands import Workspace

pytestmark = pytest.mark.anyio

STEPS = """\
1. **Prepare** — Prepare it.
2. **Act** — Act.
   - requires_confirmation: true
3. **Report** — Tell.
"""


@pytest.mark.requirement("C32", "C45")
async def test_the_server_and_the_command_line_see_the_same_run(workspace: Workspace) -> None:
    from mcp import Client, StdioServerParameters

    workspace.simple("two-doors", STEPS)
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "procedo", "serve"], env=workspace.environment(), cwd=workspace.root
    )

    async def call(client: Any, tool: str, **arguments: Any) -> Any:
        result = await client.call_tool(tool, arguments)
        assert not result.is_error, result.content
        return result.structured_content

    async with Client(server) as client:
        run_id = (await call(client, "sop_start", name="two-doors"))["run_id"]
        assert workspace.json("status", run_id)["actions"][0]["execution_id"] == "1.1"
        view = await call(client, "sop_advance", run_id=run_id, execution_id="1.1", status="completed", output="ready")
        code = view["actions"][0]["context"]["code"]
        (gate,) = workspace.json("inbox")["gates"]
        assert (gate["code"], gate["run_id"]) == (code, run_id)

        screen = workspace.person("approve", code)
        assert screen.code == 0, screen.text
        view = await call(client, "sop_resume", run_id=run_id)
        assert view["actions"][0]["execution_id"] == "2.1"
        assert workspace.json("status", run_id)["actions"][0]["execution_id"] == "2.1"

        await call(client, "sop_advance", run_id=run_id, execution_id="2.1", status="completed", output="acted")
        assert workspace.json("cancel", run_id, "--reason", "enough")["status"] == "cancelled"
        late = await client.call_tool(
            "sop_advance", {"run_id": run_id, "execution_id": "3.1", "status": "completed", "output": "late"}
        )
        assert late.is_error
        assert (await call(client, "sop_status", run_id=run_id))["status"] == "cancelled"
