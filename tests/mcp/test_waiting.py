from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp_host import ERAS, desk, only, text_of

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("era", ERAS)]
BOUND_S = 240


def sop(steps: str) -> dict[str, str]:
    header = '[sop]\nname = "line"\ndescription = "A line of work"\nexecution_mode = "auto"\n'
    return {"SOP.toml": header, "SOP.md": f"## Steps\n\n{steps}"}


CHAIN = sop(
    "".join(f"{n}. **Turn {n}** — Turn.\n   - kind: capability\n   - capability: noop\n" for n in range(1, 6))
    + "6. **Pack** — Pack it.\n"
)
LONG = sop('1. **Rest** — Wait.\n   - kind: capability\n   - capability: wait\n   - with: {"seconds": 3600}\n')


@pytest.mark.requirement("C29")
async def test_a_start_waits_for_what_the_server_does_and_hands_out_the_next_step(tmp_path: Path, era: str) -> None:
    async with desk(tmp_path, era, sops={"line": CHAIN}) as at, at.host() as host:
        with anyio.fail_after(BOUND_S):
            view = await host.call("sop_start", name="line", wait_s=45)
        assert (only(view)["action"], only(view)["execution_id"]) == ("execute_step", "6.1")
        assert (view["who_acts"], view["may_proceed"]) == ("host", True)


async def test_a_call_that_does_not_wait_says_when_to_ask_again_and_how(tmp_path: Path, era: str) -> None:
    async with desk(tmp_path, era, sops={"line": LONG}) as at, at.host() as host:
        result = await host.result("sop_start", name="line", wait_s=0)
        view: Any = result.structured_content
        action = only(view)
        assert (view["status"], view["who_acts"], view["may_proceed"]) == ("running", "server", False)
        assert (action["action"], action["execution_id"]) == ("delegated", "1.1")
        assert action["call"] == {"tool": "sop_status", "arguments": {"run_id": view["run_id"], "wait_s": 20}}
        assert view["poll_after_s"] == action["poll_after_s"] == 60
        assert "Ask again after 60 s" in text_of(result)


async def test_a_wait_ends_in_time_and_its_progress_only_grows(tmp_path: Path, era: str) -> None:
    told: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)
        assert message is not None
        assert "Rest" in message

    async with desk(tmp_path, era, sops={"line": LONG}) as at, at.host() as host:
        with anyio.fail_after(BOUND_S):
            result = await host.client.call_tool("sop_start", {"name": "line", "wait_s": 0.3}, progress_callback=hear)
        assert only(result.structured_content)["action"] == "delegated"
        assert told
        assert told == sorted(set(told))


async def test_a_dropped_call_ends_the_waiting_and_not_the_run(tmp_path: Path, era: str) -> None:
    waiting = anyio.Event()

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        waiting.set()

    async with desk(tmp_path, era, sops={"line": LONG}) as at, at.host() as host:
        run_id = (await host.call("sop_start", name="line", wait_s=0))["run_id"]
        with anyio.fail_after(BOUND_S):
            async with anyio.create_task_group() as group:

                async def wait() -> None:
                    await host.client.call_tool("sop_status", {"run_id": run_id, "wait_s": 45}, progress_callback=hear)

                group.start_soon(wait)
                await waiting.wait()
                group.cancel_scope.cancel()
        view = await host.call("sop_status", run_id=run_id, wait_s=0)
        assert only(view)["action"] == "delegated"
        assert (await host.call("sop_cancel", run_id=run_id, reason="enough"))["status"] == "cancelled"
