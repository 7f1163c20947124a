import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest
from agent_workspace import assemble, bundle, offered, open_tools, refused, server, toml, workspace
from anyio.streams.buffered import BufferedByteReceiveStream
from web_tool_server import web_tool_server

from procedo.agents.contract import Contract
from procedo.agents.parts import Origin, ToolId
from procedo.agents.ports import ToolDenied, ToolFailed
from procedo.agents.refusal import Cause, NotAssembled
from procedo.core.altered import altered
from procedo.ports import OutcomeUnknown

pytestmark = pytest.mark.anyio

BOTH = 'allowed_tools = ["s__*"]'
AGENT = 'mcp_bundles = ["all"]'


def one_server(*words: str, more: str = "", risk: str = BOTH) -> str:
    return toml(agent=AGENT, risk=risk, more=server("s", *words, more=more) + bundle("s"))


def tool_of(contract: Contract, name: str) -> ToolId:
    tool = contract.tool(name)
    assert tool is not None
    return tool.id


async def test_a_paged_list_is_read_to_its_end_and_pinned(tmp_path: Path) -> None:
    registry = workspace(tmp_path, one_server("tools=e,d,c,b,a"))
    contract = await assemble(registry)
    assert offered(contract) == ["s__a", "s__b", "s__c", "s__d", "s__e"]
    (binding,) = contract.mcp.servers
    assert [pin.name for pin in binding.pins] == ["a", "b", "c", "d", "e"]
    assert {pin.digest for pin in binding.pins} == {tool.id.schema for tool in contract.tools}
    async with open_tools(registry) as tools:
        assert await tools.call(tool_of(contract, "s__d"), {"text": "hello"}, "effect-1") == "d: hello"
        assert tools.changed == ()


async def test_what_a_server_says_about_itself_reaches_no_prompt(tmp_path: Path) -> None:
    contract = await assemble(workspace(tmp_path, one_server()))
    assert "IGNORE ALL RULES" not in str(contract.record())
    assert "A tool for tests." in str(contract.record())


async def test_a_server_gets_the_environment_of_the_contract_and_nothing_else(tmp_path: Path) -> None:
    more = 'env = { MODE = "fast", TOKEN = { env = "UPSTREAM_TOKEN" } }'
    environ = {"PATH": os.environ["PATH"], "UPSTREAM_TOKEN": "s3cr3t-value", "OTHER": "x", "HOME": "/root"}
    registry = workspace(tmp_path, one_server("tools=environment,backwards", more=more), environ=environ)
    contract = await assemble(registry)
    async with open_tools(registry) as tools:
        text = await tools.call(tool_of(contract, "s__environment"), {}, "effect-1")
        backwards = await tools.call(tool_of(contract, "s__backwards"), {}, "effect-2")
    found = dict(line.split("=", 1) for line in text.splitlines())
    del found["LC_CTYPE"]  # Python itself sets it in the child
    assert found == {"PATH": os.environ["PATH"], "MODE": "fast", "TOKEN": "[masked]"}
    assert backwards == "eulav-t3rc3s"
    assert "s3cr3t-value" not in repr(contract) + str(contract.record())


@pytest.mark.parametrize(
    ("word", "why"), [("fail", "it said: no token=[masked] given"), ("silent", "did not answer within 2 s")]
)
async def test_a_required_server_that_cannot_be_reached_refuses(tmp_path: Path, word: str, why: str) -> None:
    text = one_server(word, more=f"connect_timeout_secs = {2 if word == 'silent' else 30}")
    reasons = await refused(workspace(tmp_path, text))
    assert set(reasons) == {Cause.UNREACHABLE_SERVER}
    assert why in reasons[Cause.UNREACHABLE_SERVER]
    assert "abc123secret" not in reasons[Cause.UNREACHABLE_SERVER]


async def test_an_optional_server_that_cannot_be_reached_is_left_out(tmp_path: Path) -> None:
    more = server("gone", "fail", more="required = false") + server("s") + bundle("s", "gone")
    text = toml(agent=AGENT, risk='allowed_tools = ["s__*", "gone__x", "file_read"]', more=more)
    contract = await assemble(workspace(tmp_path, text))
    assert offered(contract) == ["file_read", "s__echo"]
    assert [binding.name for binding in contract.mcp.servers] == ["s"]


async def test_a_server_that_is_not_there_refuses(tmp_path: Path) -> None:
    text = toml(agent=AGENT, risk=BOTH, more='[[mcp.servers]]\nname = "s"\ncommand = "no-such-program"\n' + bundle("s"))
    assert "no program 'no-such-program'" in (await refused(workspace(tmp_path, text)))[Cause.UNREACHABLE_SERVER]


async def test_excludes_win_over_the_union_of_bundles(tmp_path: Path) -> None:
    more = server("a") + server("b") + bundle("a", "b") + bundle("a", name="less", exclude='"b"')
    text = toml(
        agent='mcp_bundles = ["all", "less"]', risk='allowed_tools = ["*"]\nexcluded_tools = ["file_read"]', more=more
    )
    contract = await assemble(workspace(tmp_path, text))
    assert [name for name in offered(contract) if "__" in name] == ["a__echo"]
    assert contract.mcp.excluded == ("b",)


async def test_two_tools_that_read_alike_are_refused_until_one_is_excluded(tmp_path: Path) -> None:
    reasons = await refused(workspace(tmp_path, one_server("tools=Look,look")))
    assert set(reasons) == {Cause.TOOL_COLLISION}
    risk = BOTH + '\nexcluded_tools = ["s__Look"]'
    assert offered(await assemble(workspace(tmp_path, one_server("tools=Look,look", risk=risk)))) == ["s__look"]


async def test_a_name_no_provider_takes_is_refused_when_it_is_wanted(tmp_path: Path) -> None:
    assert set(await refused(workspace(tmp_path, one_server("tools=a b,c")))) == {Cause.TOOL_UNUSABLE}
    contract = await assemble(workspace(tmp_path, one_server("tools=a b,c", risk='allowed_tools = ["s__c"]')))
    assert offered(contract) == ["s__c"]


async def test_a_double_underscore_in_a_tools_name_opens_nothing(tmp_path: Path) -> None:
    more = server("a", "tools=b__c,c") + server("b", "tools=c") + bundle("a", "b")
    text = toml(agent=AGENT, risk='allowed_tools = ["b__c"]', more=more)
    contract = await assemble(workspace(tmp_path, text))
    assert [tool.id.key for tool in contract.tools] == ["mcp:b/c"]


@pytest.mark.parametrize("key", ["allowed_tools", "excluded_tools", "always_ask"])
async def test_a_tool_that_the_server_does_not_have_refuses(tmp_path: Path, key: str) -> None:
    lists = {"allowed_tools": '["s__echo"]', key: '["s__ecko"]'}
    risk = "\n".join(f"{name} = {value}" for name, value in lists.items())
    reasons = await refused(workspace(tmp_path, one_server(risk=risk)))
    assert reasons == {
        Cause.UNKNOWN_TOOL: f"{key} of risk profile 'careful' names 's__ecko', and there is no such tool"
    }


async def test_a_tool_that_is_denied_is_not_reached_by_its_bare_name(tmp_path: Path) -> None:
    registry = workspace(tmp_path, one_server("tools=a,b", risk='allowed_tools = ["s__a"]'))
    contract = await assemble(registry)
    known = tool_of(contract, "s__a")
    async with open_tools(registry) as tools:
        for wrong in (
            altered(known, name="b"),
            altered(known, schema="0"),
            altered(known, server=""),
            ToolId(Origin.BUILT_IN, "", "file_read", ""),
            ToolId(Origin.BUILT_IN, "", "sop_approve", ""),
        ):
            with pytest.raises(ToolDenied):
                await tools.call(wrong, {}, "effect-1")
        assert await tools.call(known, {"text": "x"}, "effect-2") == "a: x"


@pytest.mark.requirement("pinned-tools")
async def test_a_changed_tool_is_not_called_and_the_next_assembly_is_refused(tmp_path: Path) -> None:
    before = workspace(tmp_path, one_server("describe=Old."))
    contract = await assemble(before)
    async with open_tools(before) as tools:
        assert await tools.call(tool_of(contract, "s__echo"), {"text": "x"}, "effect-1") == "echo: x"
    after = workspace(tmp_path, one_server("describe=New."))
    with pytest.raises(NotAssembled) as caught:
        await assemble(after, recorded=contract.record())
    assert [reason.cause for reason in caught.value.reasons] == [Cause.CHANGED]


async def test_a_list_that_the_server_changes_under_way_ends_the_use_of_the_tool(tmp_path: Path) -> None:
    registry = workspace(tmp_path, one_server("change"))
    contract = await assemble(registry)
    identity = tool_of(contract, "s__echo")
    async with open_tools(registry) as tools:
        assert await tools.call(identity, {"text": "x"}, "effect-1") == "echo: x"

        async def until_the_news_has_come() -> None:
            while True:
                await tools.call(identity, {"text": "x"}, "effect-2")

        with anyio.fail_after(240), pytest.raises(ToolFailed, match="no longer what it was"):
            await until_the_news_has_come()
        assert tools.changed == ("mcp:s/echo",)


async def test_a_server_is_reached_over_http_with_the_headers_of_the_contract(tmp_path: Path) -> None:
    with web_tool_server() as server_there:
        own = f'[[mcp.servers]]\nname = "s"\ntransport = "http"\nurl = "{server_there.url}"\n'
        own += 'headers = { Authorization = { env = "UP" }, X-Kind = "test" }\n'
        text = toml(agent=AGENT, risk=BOTH, more=own + bundle("s"))
        registry = workspace(tmp_path, text, environ={"UP": "Bearer s3cr3t-value"})
        contract = await assemble(registry)
        assert offered(contract) == ["s__echo"]
        async with open_tools(registry) as tools:
            assert await tools.call(tool_of(contract, "s__echo"), {"text": "x"}, "effect-1") == "echo: x"
    assert {headers["authorization"] for headers in server_there.headers} == {"Bearer s3cr3t-value"}
    assert {headers["x-kind"] for headers in server_there.headers} == {"test"}
    assert set(await refused(registry)) == {Cause.UNREACHABLE_SERVER}


@pytest.mark.parametrize(("tool", "kind"), [("die", OutcomeUnknown), ("hang", OutcomeUnknown), ("fail", ToolFailed)])
async def test_how_a_call_ends_tells_whether_it_may_have_acted(
    tmp_path: Path, tool: str, kind: type[Exception]
) -> None:
    registry = workspace(tmp_path, one_server("tools=die,hang,fail,echo", more="tool_timeout_secs = 120"))
    contract = await assemble(registry)
    async with open_tools(registry) as tools:
        assert await tools.call(tool_of(contract, "s__echo"), {"text": "x"}, "effect-1") == "echo: x"
    if tool == "hang":  # only what never ends is given little time: a busy machine may take long for the others
        registry = workspace(tmp_path, one_server("tools=die,hang,fail,echo", more="tool_timeout_secs = 1"))
    async with open_tools(registry) as tools:
        with pytest.raises(kind):
            await tools.call(tool_of(contract, f"s__{tool}"), {"text": "x"}, "effect-2")


async def gone(pids: Sequence[int]) -> bool:
    """True when none of these processes is alive any more; a dead one that nobody reaped counts as gone."""
    with anyio.move_on_after(240):
        while any(_alive(pid) for pid in pids):  # noqa: ASYNC110  # a process of another process group tells nobody
            await anyio.sleep(0.01)
        return True
    return False


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("how", ["end", "error", "cancel", "dead server"])
@pytest.mark.requirement("pinned-tools")
async def test_no_process_outlives_its_connection(tmp_path: Path, how: str) -> None:
    sign = tmp_path / "pids"
    registry = workspace(tmp_path, one_server("tools=die,echo", f"child={sign}", more="tool_timeout_secs = 1"))
    contract = await assemble(registry)
    assert await gone([int(word) for word in sign.read_text().split()])
    ended = ""
    with anyio.CancelScope() as scope:
        try:
            async with open_tools(registry) as tools:
                pids = [int(word) for word in sign.read_text().split()]
                assert all(_alive(pid) for pid in pids)
                if how == "dead server":
                    with pytest.raises(OutcomeUnknown):
                        await tools.call(tool_of(contract, "s__die"), {}, "effect-1")
                elif how == "error":
                    raise KeyError("of the session")
                elif how == "cancel":
                    scope.cancel()
                    await anyio.sleep_forever()
        except KeyError as error:
            ended = str(error)
    assert ended == ("'of the session'" if how == "error" else "")
    assert await gone(pids)


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="this system ties no process to another one")
async def test_a_server_that_is_deaf_ends_even_with_a_process_that_is_killed(tmp_path: Path) -> None:
    sign = tmp_path / "pid"
    deaf = f"import os, pathlib, time; pathlib.Path({str(sign)!r}).write_text(str(os.getpid())); time.sleep(600)"
    code = """
import sys, anyio
from pathlib import Path
from procedo.agents.servers.child import Complaints, child
async def main():
    async with child([sys.executable, "-c", sys.argv[1]], {}, Path(), Complaints()):
        while not Path(sys.argv[2]).exists() or not Path(sys.argv[2]).read_text():
            await anyio.sleep(0.01)
        print("there", flush=True)
        await anyio.sleep_forever()
anyio.run(main)
"""
    words = [sys.executable, "-c", code, deaf, str(sign)]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    async with await anyio.open_process(words, env=environ, stderr=None) as parent:
        assert parent.stdout is not None
        with anyio.fail_after(300):
            assert await BufferedByteReceiveStream(parent.stdout).receive_until(b"\n", 100) == b"there"
        pid = int(sign.read_text())
        assert _alive(pid)
        parent.kill()
    assert await gone([pid])


async def test_a_server_that_ignores_everything_is_killed(tmp_path: Path) -> None:
    sign = tmp_path / "pids"
    for seconds in (3, 60):  # a busy machine may need more than three to bring it so far that it says who it is
        text = one_server("silent", f"child={sign}", more=f"connect_timeout_secs = {seconds}")
        assert set(await refused(workspace(tmp_path, text))) == {Cause.UNREACHABLE_SERVER}
        if sign.exists() and len(sign.read_text().split()) == 2:
            break
    server_and_child = [int(word) for word in sign.read_text().split()]
    assert len(server_and_child) == 2
    assert await gone(server_and_child)


async def test_a_server_is_started_once_for_its_agent_and_its_session(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    registry = workspace(tmp_path, one_server(f"note={starts}"))
    async with open_tools(registry):
        assert starts.read_text() == "started\n"
    assert starts.read_text() == "started\n"


async def test_a_server_none_of_whose_tools_is_offered_does_not_stay(tmp_path: Path) -> None:
    sign = tmp_path / "pids"
    registry = workspace(tmp_path, one_server(f"child={sign}", risk='allowed_tools = ["file_read"]'))
    async with open_tools(registry):
        assert await gone([int(word) for word in sign.read_text().split()])


async def test_an_answer_that_cannot_be_read_may_be_that_of_a_call_that_acted(tmp_path: Path) -> None:
    registry = workspace(tmp_path, one_server("tools=garble,echo"))
    contract = await assemble(registry)
    async with open_tools(registry) as tools:
        with pytest.raises(OutcomeUnknown) as caught:
            await tools.call(tool_of(contract, "s__garble"), {}, "effect-1")
        assert await tools.call(tool_of(contract, "s__echo"), {"text": "on"}, "effect-2") == "echo: on"
    assert str(caught.value) == (
        "garble on 's': its answer cannot be read, at content: Input should be a valid list; it may have acted"
    )


async def test_an_answer_against_its_own_schema_is_quoted_without_the_servers_secret(tmp_path: Path) -> None:
    more = 'env = { TOKEN = { env = "UP" } }'
    environ = {"PATH": os.environ["PATH"], "UP": "s3cr3t-value"}
    registry = workspace(tmp_path, one_server("tools=own", more=more), environ=environ)
    contract = await assemble(registry)
    async with open_tools(registry) as tools:
        with pytest.raises(OutcomeUnknown) as caught:
            await tools.call(tool_of(contract, "s__own"), {}, "effect-1")
    assert "[masked]" in str(caught.value)
    assert "s3cr3t" not in str(caught.value)


async def test_a_server_whose_list_shows_its_secret_is_not_used(tmp_path: Path) -> None:
    more = 'env = { TOKEN = { env = "UP" } }'
    environ = {"PATH": os.environ["PATH"], "UP": 's3cr3t-"value"'}
    reasons = await refused(workspace(tmp_path, one_server("tell", more=more), environ=environ))
    assert reasons == {
        Cause.UNREACHABLE_SERVER: "the MCP server 's' cannot be reached: "
        "its list of tools shows a credential that it was given"
    }
    assert offered(await assemble(workspace(tmp_path, one_server(more=more), environ=environ))) == ["s__echo"]
