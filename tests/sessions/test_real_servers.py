"""Sessions whose tools are real MCP servers over stdio: what a server does to a call is told as what it is."""

from collections.abc import Sequence
from contextlib import suppress

import anyio
import pytest
from agent_workspace import bundle, server
from session_bench import Bench, Desk, Talk, call, config, said

from procedo.agents.ports import ToolFailed
from procedo.core.state import Status, Verdict

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("session-servers")]


def served(*words: str, more: str = "", risk: str = "", ask: Sequence[str] = (), beside: str = "") -> str:
    """An agent with the server `s`, and with the server `t` where there is one `beside`."""
    return config(
        tools=["s__*", *(["t__*"] if beside else [])],
        auto=["s__echo", "s__fail", "s__die", *(["t__hang"] if beside else [])],
        agent='mcp_bundles = ["all"]',
        risk=risk,
        ask=ask,
        more=server("s", *words, more=more) + beside + bundle("s", *(["t"] if beside else [])),
    )


async def test_each_way_in_which_a_servers_call_ends_has_its_word(bench: Bench) -> None:
    # Only what never ends is given little time: a busy machine may take long for the others.
    impatient = server("t", "tools=hang", more="tool_timeout_secs = 1")
    bench.configure(served("tools=echo,fail,die", more="tool_timeout_secs = 120", beside=impatient))
    turns = [said(call(name, text="x")) for name in ("s__echo", "s__fail", "t__hang", "s__die")]
    talk = Talk([*turns, said(call("s__echo", text="y")), said("well")])
    async with bench.opened(talk) as desk:
        await desk.start()
        assert (await desk.work()).run.status is Status.COMPLETED
        rows = (await desk.transcript()).calls
    told = {row.offered: (row.outcome, row.text) for row in rows[:4]}
    assert told["s__echo"] == ("success", "echo: x")
    assert told["s__fail"] == ("failed", "it failed: x")
    assert told["t__hang"][0] == told["s__die"][0] == "interrupted"
    assert told["t__hang"][1].endswith("it may have acted")
    assert told["s__die"][1].endswith("it may have acted")
    # A connection that is known to be lost carried nothing.
    assert (rows[4].outcome, rows[4].started_at is not None) == ("failed", True)
    assert "the connection to the server 's' is lost" in rows[4].text


async def test_a_servers_tool_is_not_reached_by_its_bare_name_or_as_another_servers(bench: Bench) -> None:
    bench.configure(served("tools=echo,other", risk='excluded_tools = ["s__other"]'))
    talk = Talk([said(call("echo", text="x"), call("t__echo"), call("s__other"), call("s__echo", text="x")), said("w")])
    async with bench.opened(talk) as desk:
        await desk.start()
        await desk.work()
        assert [outcome for _, _, outcome in await desk.calls()] == ["failed", "failed", "failed", "success"]
    assert [tool.name for tool in talk.infos[0].function_tools] == ["s__echo"]


async def until_it_changed(desk: Desk) -> None:
    """Until it is known here that the server changed its tools, which it tells beside its answers."""
    (contract,), (tools,) = desk.place.contracts, desk.place.opened_tools
    echo = contract.tool("s__echo")
    assert echo is not None
    with anyio.fail_after(240), suppress(ToolFailed):
        while True:
            await tools.call(echo.id, {"text": "x"}, "effect-of-the-test")


async def test_a_list_that_changes_in_the_middle_ends_the_use_of_the_tool_and_the_next_start_of_the_session(
    bench: Bench,
) -> None:
    bench.configure(served("tools=echo,fail", "change", ask=["s__fail"]))
    talk = Talk(
        [said(call("s__echo", text="x")), said(call("s__echo", text="y"), call("s__fail", text="z")), said("w")]
    )

    async def the_news_has_come() -> None:
        if len(talk.heard) == 2:
            await until_it_changed(desk)

    talk.before = the_news_has_come
    async with bench.opened(talk) as desk:
        await desk.start()
        snapshot = await desk.work()
        first, second, third = (await desk.transcript()).calls
        assert (first.outcome, second.outcome, third.outcome) == ("success", "failed", None)
        assert second.text == "s__echo is no longer what it was when this agent was assembled, so it is not used"
        assert snapshot.run.status is Status.WAITING_APPROVAL
        run_id = desk.run_id
        await desk.decide(Verdict.APPROVE)
    # The server has changed for good by the time the session goes on.
    bench.configure(served("tools=echo,fail", "describe=Other.", ask=["s__fail"]))
    async with bench.opened([said("never")], run_id=run_id) as desk:
        assert (await desk.work()).run.status is Status.FAILED
        assert "is not what it was when this session began: mcp.servers: " in await desk.failure()


@pytest.mark.parametrize("required", [True, False])
async def test_a_required_server_that_cannot_be_reached_refuses_the_step(bench: Bench, required: bool) -> None:
    bench.configure(served("fail", more=f"required = {str(required).lower()}"))
    talk = Talk([said("done without it")])
    async with bench.opened(talk) as desk:
        await desk.start()
        status = (await desk.work()).run.status
        assert status is (Status.FAILED if required else Status.COMPLETED)
        if required:
            assert "the MCP server 's' cannot be reached" in await desk.failure()
    assert len(talk.heard) == (0 if required else 1)


async def test_what_a_server_says_about_itself_is_not_said_to_the_model(bench: Bench) -> None:
    bench.configure(served("tools=echo"))
    talk = Talk([said(call("s__echo", text="x")), said("fine")])
    async with bench.opened(talk) as desk:
        await desk.start()
        await desk.work()
    assert "IGNORE ALL RULES" not in repr(talk.heard)
    assert talk.infos[0].function_tools[0].description == "A tool for tests."
