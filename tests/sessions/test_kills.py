"""A real server is killed while a session works in it, and another one goes on."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chat_server import called, said
from commands import Workspace
from forked import Piped
from moments import Moments, moments
from session_bench import IDA, config
from stdio_process import BOUND_S, HELLO, READY, Process, answer, call, forked, say, served
from wholeness import whole

from procedo.app import open_app
from procedo.core.session import CallState, SessionState, Transcript
from procedo.core.state import Verdict

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="a kill that cannot be caught is one of POSIX"),
    pytest.mark.requirement("session-kills"),
]
PAY = str(Path(__file__).parents[1] / "support" / "pay_server.py")
PATIENCE = 6
CALLS = called(("a", "s__look", "{}"), ("b", "s__pay", '{"to": "ida"}'))
FINAL = said("all paid")


def workspace(
    folder: Path, now: Moments, *, ask: str = "", steps: str = "", more: str = "", auto: str = "s__pay"
) -> None:
    server = f"""
[mcp_bundles.all]
servers = ["s"]
[[mcp.servers]]
name = "s"
command = "{sys.executable}"
args = ["{PAY}", "{now.port}", "{now.ledger}"]
read_only_tools = ["look"]
connect_timeout_secs = 120
[worker]
lease = "3s"
{more}
"""
    text = config(
        tools=["s__*"],
        auto=["s__look", auto] if not ask else ["s__look"],
        ask=[ask] if ask else [],
        agent='mcp_bundles = ["all"]',
        kind="openai_compatible",
        provider=f'model = "m"\nendpoint = "{now.endpoint}"',
        more=server,
    )
    (folder / "procedo.toml").write_text(text)
    sop = folder / "sops" / "pay"
    sop.mkdir(parents=True)
    (sop / "SOP.toml").write_text('[sop]\nname = "pay"\ndescription = "d"\nexecution_mode = "auto"\n')
    (sop / "SOP.md").write_text("## Steps\n\n" + (steps or "1. **Pay** — Pay ida.\n   - agent: reviewer\n"))


def working(folder: Path) -> Piped:
    return forked(folder, agents=True)


def start(process: Process, wait_s: float = 0) -> str:
    say(process, HELLO, READY)
    answer(process, 1)
    say(process, call(2, "sop_start", name="pay", inputs={}, wait_s=wait_s))
    run_id: str = answer(process, 2)["structuredContent"]["run_id"]
    return run_id


def kill(process: Process) -> None:
    process.kill()
    process.wait(BOUND_S)


def status(process: Process, run_id: str, number: int, wait_s: float = 40) -> Any:
    """How the run stands; a busy machine is given the longest wait of a call several times."""
    for more in range(1 if wait_s == 0 else PATIENCE):
        say(process, call(number * 10 + more, "sop_status", run_id=run_id, wait_s=wait_s))
        view = answer(process, number * 10 + more)["structuredContent"]
        if [action["action"] for action in view["actions"]] != ["delegated"]:
            break
    return view


def decided(folder: Path, verdict: Verdict) -> None:
    async def go() -> None:
        async with open_app(folder, worker=False) as app:
            (found,) = await app.runs.inbox(IDA)
            await app.runs.decide(found.gate.id, verdict, IDA)

    asyncio.run(go())


def looked(folder: Path, run_id: str) -> Transcript:
    """The transcript, once the whole record is seen to be whole."""

    async def go() -> Transcript:
        async with open_app(folder, worker=False) as app:
            await app.store.read(lambda reader: whole(reader, run_id))
            found = await app.runs.transcript(run_id, "1.1")
            assert found is not None
            return found

    return asyncio.run(go())


def first_request(now: Moments) -> None:
    assert now.following() == "asked"


def after_write_ahead(now: Moments) -> None:
    now.until("called")


def after_effect(now: Moments) -> None:
    now.until("acted")


def after_result(now: Moments) -> None:
    now.until("acted")
    now.on()
    assert now.following() == "asked"


MOMENTS = [
    pytest.param(first_request, None, 1, "success", id="before the write-ahead, with the model"),
    pytest.param(after_write_ahead, Verdict.SKIP, 0, "interrupted", id="after the write-ahead, left out"),
    pytest.param(after_write_ahead, Verdict.REPEAT, 1, "success", id="after the write-ahead, repeated"),
    pytest.param(after_effect, Verdict.SKIP, 1, "interrupted", id="after the effect"),
    pytest.param(after_result, None, 1, "success", id="after the result"),
]


@pytest.mark.parametrize(("reach", "verdict", "paid", "outcome"), MOMENTS)
def test_a_killed_session_goes_on_with_at_most_one_effect(
    tmp_path: Path, reach: Callable[[Moments], None], verdict: Verdict | None, paid: int, outcome: str
) -> None:
    with moments(tmp_path / "ledger", CALLS, FINAL) as now:
        workspace(tmp_path, now)
        with working(tmp_path) as process:
            run_id = start(process)
            reach(now)
            kill(process)
        now.off()
        with working(tmp_path) as process:
            say(process, HELLO, READY)
            answer(process, 1)
            if verdict is not None:
                view = status(process, run_id, 3)
                assert (view["status"], view["who_acts"]) == ("waiting_approval", "human")
                decided(tmp_path, verdict)
            ended = finished(process, now, run_id)
    assert (ended["status"], ended["output"]) == ("completed", "all paid")
    assert now.paid() == ["paid ida"] * paid
    transcript = looked(tmp_path, run_id)
    assert transcript.session.state is SessionState.COMPLETED
    assert [(row.offered, row.state, row.outcome) for row in transcript.calls] == [
        ("s__look", CallState.DONE, "success"),
        ("s__pay", CallState.DONE, outcome),
    ]
    assert transcript.session.unmeasured == (1 if verdict is None else 0)
    verified = Workspace(tmp_path).run("audit", "verify")
    assert (verified.code, verified.err) == (0, "")


def finished(process: Process, now: Moments, run_id: str) -> Any:
    """Let everything go on until the run ends."""
    with now.all_pass():
        return status(process, run_id, 9)


def test_a_parked_session_outlives_its_server_and_asks_once(tmp_path: Path) -> None:
    with moments(tmp_path / "ledger", CALLS, FINAL) as now:
        workspace(tmp_path, now, ask="s__pay")
        with working(tmp_path) as process:
            run_id = start(process)
            with now.all_pass():
                assert status(process, run_id, 3)["status"] == "waiting_approval"
            kill(process)
        with working(tmp_path) as process:
            say(process, HELLO, READY)
            answer(process, 1)
            assert status(process, run_id, 3, 0)["status"] == "waiting_approval"
            assert now.paid() == []
            decided(tmp_path, Verdict.APPROVE)
            assert finished(process, now, run_id)["output"] == "all paid"
    assert now.paid() == ["paid ida"]
    assert [(row.offered, row.outcome) for row in looked(tmp_path, run_id).calls] == [
        ("s__look", "success"),
        ("s__pay", "success"),
    ]


def test_a_kill_right_behind_the_models_answer_leaves_at_most_one_effect(tmp_path: Path) -> None:
    with moments(tmp_path / "ledger", CALLS, FINAL) as now:
        workspace(tmp_path, now)
        with working(tmp_path) as process:
            run_id = start(process)
            assert now.following() == "asked"
            now.on()
            kill(process)
        with working(tmp_path) as process, now.all_pass():
            say(process, HELLO, READY)
            answer(process, 1)
            view = status(process, run_id, 3)
            if view["status"] == "waiting_approval":
                decided(tmp_path, Verdict.SKIP)
                view = status(process, run_id, 4)
    assert view["status"] == "completed"
    assert len(now.paid()) <= 1
    assert all(row.outcome is not None for row in looked(tmp_path, run_id).calls)


def test_a_cancelled_run_stops_the_tool_that_works_for_it_and_takes_no_late_result(tmp_path: Path) -> None:
    with moments(tmp_path / "ledger", CALLS, FINAL) as now:
        workspace(tmp_path, now)
        with working(tmp_path) as process:
            run_id = start(process)
            now.until("called")
            say(process, call(5, "sop_cancel", run_id=run_id, reason="enough"))
            assert answer(process, 5)["structuredContent"]["status"] == "cancelled"
            now.off()
            now.wait_gone()
            assert status(process, run_id, 6, 0)["status"] == "cancelled"
    assert now.paid() == []
    transcript = looked(tmp_path, run_id)
    assert (transcript.session.state, transcript.session.reason) == (SessionState.CANCELLED, "the run is cancelled")
    look, pay = transcript.calls
    assert (look.outcome, pay.outcome) == ("success", "interrupted")
    assert pay.text == "cancelled while it ran; it may have acted"


def test_shutting_down_is_no_cancellation_and_leaves_no_process(tmp_path: Path) -> None:
    with moments(tmp_path / "ledger", CALLS, FINAL) as now:
        workspace(tmp_path, now)
        with served(tmp_path) as process:
            run_id = start(process)
            now.until("called")
            process.terminate()
            assert process.wait(BOUND_S) == 143
            now.off()
            now.wait_gone()
        session = looked(tmp_path, run_id).session
        assert session.state is SessionState.RUNNING
        with working(tmp_path) as process:
            say(process, HELLO, READY)
            answer(process, 1)
            assert status(process, run_id, 3)["status"] == "waiting_approval"
            decided(tmp_path, Verdict.SKIP)
            assert finished(process, now, run_id)["status"] == "completed"
    assert now.paid() == []


def test_work_goes_on_when_the_host_drops_its_call_and_another_process_takes_it_over(tmp_path: Path) -> None:
    with moments(tmp_path / "ledger", CALLS, FINAL) as now:
        workspace(tmp_path, now)
        with working(tmp_path) as first, working(tmp_path) as second:
            run_id = start(first)
            say(first, call(3, "sop_status", run_id=run_id, wait_s=40))
            assert now.following() == "asked"
            drop = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}}
            say(first, drop)
            now.on()
            assert now.following() == "called"  # nobody waits for it, and it goes on
            now.on()
            assert now.following() == "acted"
            now.on()
            assert now.following() == "asked"
            kill(first)
            now.off()
            say(second, HELLO, READY)
            answer(second, 1)
            view = finished(second, now, run_id)
    assert (view["status"], view["output"]) == ("completed", "all paid")
    assert now.paid() == ["paid ida"]
