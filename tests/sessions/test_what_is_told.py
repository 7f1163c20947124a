"""What a run's agents cost and did, as the host, a person and the record are told."""

import json
import os

import pytest
from commands import Workspace
from mcp_host import connected, text_of
from pydantic_ai.usage import RequestUsage
from session_bench import COMPATIBLE, Bench, answer, call, config, said, script, step

from procedo.core.state import Status
from procedo.surfaces.mcp.server import build_server

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("session-told")]

PRICED = COMPATIBLE + "input_usd_per_million = 100\noutput_usd_per_million = 1000\n"
WRITER = """
[agents.writer]
model_provider = "openai_compatible.own"
risk_profile = "careful"
"""


async def test_tokens_and_cost_are_charged_to_the_agent_and_to_the_run_with_its_sub_runs(bench: Bench) -> None:
    bench.configure(config(kind="openai_compatible", provider=PRICED, more=WRITER))
    bench.procedure(step(agent="writer"), name="inner")
    bench.procedure(step() + "2. **Below** — Do it.\n   - sop: inner\n3. **End** — Report.\n", name="outer")

    def used(sent: int, received: int) -> RequestUsage:
        return RequestUsage(input_tokens=sent, output_tokens=received)

    talk = [
        said(call("file_read", path="a"), usage=used(10, 1)),
        said("x", usage=used(20, 2)),
        said("y", usage=used(7, 3)),
    ]
    async with bench.opened(talk, {"file_read": answer}) as desk, connected(build_server(desk.app), "auto") as host:
        await desk.start(name="outer")
        await desk.work()
        view = await host.call("sop_status", run_id=desk.run_id, wait_s=0)
        text = text_of(await host.result("sop_status", run_id=desk.run_id, wait_s=0))
        handed_out = await host.call("sop_resume", run_id=desk.run_id, wait_s=0)
        (child,) = (await desk.app.runs.history(desk.run_id)).children
        below = text_of(await host.result("sop_status", run_id=child.run_id, wait_s=0))
    reviewer, writer = view["usage"].pop("agents")
    assert view["usage"] == {"input_tokens": 37, "output_tokens": 6, "cost_usd": "0.0097", "sub_runs": 1}
    assert reviewer == {
        "agent": "reviewer", "sessions": 1, "model_turns": 2, "tool_calls": 1,
        "input_tokens": 30, "output_tokens": 3, "cost_usd": "0.006",
    }  # fmt: skip
    assert (writer["agent"], writer["input_tokens"], writer["cost_usd"]) == ("writer", 7, "0.0037")
    assert "Agent reviewer used 30 tokens in, 3 out, 0.006 USD." in text
    assert "All agents used 37 tokens in, 6 out, 0.0097 USD.\nThat is with sub-runs (1)." in text
    assert "Agent writer used 7 tokens in, 3 out, 0.0037 USD." in below
    assert "with sub-runs" not in below
    # What hands out work stays short.
    assert "usage" not in handed_out


async def test_what_is_not_known_is_told_as_such_and_not_as_nothing(bench: Bench) -> None:
    bench.configure(config(kind="openai_compatible", provider=COMPATIBLE))
    silent = said("fine", usage=RequestUsage(details={"nothing": 1}))
    async with bench.opened([silent], {}) as desk, connected(build_server(desk.app), "auto") as host:
        await desk.start()
        await desk.work()
        view = await host.call("sop_status", run_id=desk.run_id, wait_s=0)
        text = text_of(await host.result("sop_status", run_id=desk.run_id, wait_s=0))
    assert (view["usage"]["unmeasured"], view["usage"]["unpriced"]) == (1, 1)
    assert "and 1 requests of unknown size, and 1 of unknown cost." in text


async def test_a_run_without_agents_tells_nothing_about_cost(bench: Bench) -> None:
    bench.procedure("1. **Mine** — Do it.\n", name="plain")
    async with bench.opened() as desk, connected(build_server(desk.app), "auto") as host:
        await desk.start(name="plain")
        assert "usage" not in await host.call("sop_status", run_id=desk.run_id, wait_s=0)


def test_a_person_reads_cost_and_transcript_at_the_terminal(bench: Bench) -> None:
    (bench.root / "change.md").write_text("a change with api_key=sk-abcdefghijklmnopqrstuvwx and more")
    bench.configure(config(tools=["file_read"], auto=["file_read"]))
    bench.procedure(step() + "2. **End** — Report.\n")
    read = '{ tool = "file_read", args = { path = "change.md" } }, { tool = "shell", args = { argv = ["ls"] } }'
    bench.script(script(f"calls = [{read}]\ntokens = [10, 2]", 'text = "it is \\u001b[31mfine"\ntokens = [30, 4]'))
    workspace = Workspace(bench.root, {"PATH": os.environ["PATH"]})
    started = workspace.json("start", "review", "--wait", "60")
    run_id = started["run_id"]
    assert started["actions"][0]["execution_id"] == "2.1"
    assert "usage" not in started
    assert workspace.json("status", run_id)["usage"]["agents"][0]["scripted"] is True
    for words in (("status", run_id), ("show", run_id)):
        assert (
            "Agent reviewer used 40 tokens in, 6 out, 0 USD (answers from a script, no model)."
            in workspace.run(*words).out
        )
    shown = workspace.run("show", run_id, "--step", "1").out
    for part in (
        "1.1  agent reviewer; completed; for host, started by human:cli:",
        "instructions | You review.",
        "| Procedure review, step 1 of 2: Review",
        "turn 1  scripted, 10 in, 2 out, 0 USD",
        "call 1.0  file_read: success, allowed in advance",
        "call 1.1  shell: failed",
        "gave         | no such tool: 'shell'; available: file_read",
        "says         | it is \\x1b[31mfine",
    ):
        assert part in shown, shown
    assert "sk-abcdefghijklmnopqrstuvwx" not in shown
    (whole,) = workspace.json("show", run_id, "--step", "1.1")
    assert (whole["session"]["agent"], whole["session"]["state"], whole["session"]["output"]) == (
        "reviewer", "completed", "it is \x1b[31mfine",
    )  # fmt: skip
    assert [entry["entry"] for entry in whole["entries"]].count("call") == 2
    none = workspace.run("show", run_id, "--step", "2")
    assert (none.code, "Executions with a session: 1.1" in none.err) == (4, True), none.err
    assert json.loads(workspace.run("show", run_id, "--step", "2", "--json").err)["code"] == "unknown_session"


async def test_the_record_says_which_agent_was_at_work(bench: Bench) -> None:
    async with bench.opened([said("fine")], {}) as desk:
        await desk.start()
        assert (await desk.work()).run.status is Status.COMPLETED
        run_id = desk.run_id
    shown = Workspace(bench.root, {"PATH": os.environ["PATH"]}).run("show", run_id, "--records").out
    assert "1.1: agent reviewer is at work for host" in shown


def test_a_person_allows_a_call_for_the_rest_of_the_session(bench: Bench) -> None:
    bench.configure(config(ask=["file_read"], tools=["file_read"], runtime='tool_call_dedup_exempt = ["file_read"]'))
    (bench.root / "a.md").write_text("text")
    read = 'calls = [{ tool = "file_read", args = { path = "a.md" } }]'
    bench.script(script(read, read, 'text = "fine"'))
    workspace = Workspace(bench.root, {"PATH": os.environ["PATH"]})
    view = workspace.json("start", "review", "--wait", "60")
    code = view["actions"][0]["context"]["code"]
    denied = workspace.person("deny", code, answers=("n",))
    assert "May reviewer call file_read in step 1?" in denied.text
    screen = workspace.person("approve", code, "--for-session", "--wait", "60")
    assert "It also holds for this very call later in the session." in screen.text
    assert workspace.json("status", view["run_id"])["status"] == "completed"


def test_only_the_approval_of_a_call_lasts_for_a_session(bench: Bench) -> None:
    bench.procedure("1. **Mine** — Do it.\n   - requires_confirmation: true\n", name="gated")
    workspace = Workspace(bench.root, {"PATH": os.environ["PATH"]})
    view = workspace.json("start", "gated")
    screen = workspace.person("approve", view["actions"][0]["context"]["code"], "--for-session", answers=())
    assert "--for-session does not fit gate" in screen.text
    assert workspace.json("status", view["run_id"])["status"] == "waiting_approval"
