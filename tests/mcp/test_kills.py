import sys
from pathlib import Path
from typing import Any

import pytest
from commands import Workspace
from mcp_host import only, workspace
from stdio_process import BOUND_S, HELLO, READY, answer, call, forked, say

from procedo.app import open_app
from procedo.core.state import Principal, PrincipalKind, Source, Verdict
from procedo.runs import Surface

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="a kill that cannot be caught is one of POSIX"),
]
IDA = Surface(Principal(Source.CLI, "ida", PrincipalKind.HUMAN), host=False)
TEN = {
    "SOP.toml": '[sop]\nname = "ten"\ndescription = "Ten steps and a gate"\nexecution_mode = "auto"\n',
    "SOP.md": "## Steps\n\n"
    + "".join(
        f"{n}. **Step {n}** — Do number {n}.\n" + ("   - requires_confirmation: true\n" if n == 6 else "")
        for n in range(1, 11)
    ),
}


def called_and_killed(folder: Path, tool: str, **arguments: Any) -> Any:
    """One call to a new server, which is killed as soon as it has answered."""
    with forked(folder) as process:
        say(process, HELLO, READY, call(2, tool, **arguments))
        result = answer(process, 2)
        process.kill()
        process.wait(BOUND_S)
    return result["structuredContent"]


@pytest.mark.requirement("C28")
async def test_ten_steps_and_a_gate_with_a_kill_after_every_call(tmp_path: Path) -> None:
    folder = workspace(tmp_path, {"ten": TEN})
    view = called_and_killed(folder, "sop_start", name="ten", inputs={"a": 1})
    run_id = view["run_id"]
    for number in range(1, 11):
        if number == 6:
            assert (view["status"], view["who_acts"]) == ("waiting_approval", "human")
            async with open_app(folder, worker=False) as app:
                await app.runs.decide(only(view)["gate_id"], Verdict.APPROVE, IDA)
        resumed = called_and_killed(folder, "sop_resume", run_id=run_id)
        if number == 3:
            looked = called_and_killed(folder, "sop_status", run_id=run_id)
            assert (looked["status"], looked["who_acts"]) == ("running", "host")
            assert only(looked) == only(resumed)
        assert only(resumed)["execution_id"] == f"{number}.1"
        assert only(resumed)["step"]["attempt"] == 1
        view = called_and_killed(
            folder, "sop_advance", run_id=run_id, execution_id=f"{number}.1", status="completed", output=number
        )
    assert (view["status"], view["output"]) == ("completed", 10)
    async with open_app(folder, worker=False) as app:
        history = await app.runs.history(run_id)
    assert [(e.id, e.phase) for e in history.executions] == [(f"{n}.1", "completed") for n in range(1, 11)]
    verified = Workspace(folder).fresh("audit", "verify")
    assert (verified.code, verified.err) == (0, "")
