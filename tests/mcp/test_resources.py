"""What clients can read, as a host reads it; over HTTP, also what they cannot."""

import json
from pathlib import Path
from typing import Any

import pytest
from http_server import served
from mcp.shared.exceptions import MCPError
from mcp.types import ResourceTemplateReference, TextResourceContents
from mcp_host import ERAS, KILN, LETTER, PLAIN, Host, desk

from procedo.core.session import CallRow, Message, SessionRow, Transcript, TurnRow
from procedo.sopfile.manual import manual

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("resources")]
both_eras = pytest.mark.parametrize("era", ERAS)
BROKEN = {"SOP.toml": '[sop]\nname = "broken"\n', "SOP.md": "## Steps\n\n1. **One** — Do it.\n"}


def keeps_back(reveal: str) -> dict[str, str]:
    return {
        "SOP.toml": f'[sop]\nname = "secretive"\ndescription = "d"\nexecution_mode = "auto"\nreveal = "{reveal}"\n',
        "SOP.md": "## Steps\n\n1. **First** — Hidden words.\n2. **Second** — More hidden words.\n",
    }


async def contents(host: Host, uri: str) -> list[tuple[str, str]]:
    found = (await host.client.read_resource(uri)).contents
    assert all(isinstance(content, TextResourceContents) and content.uri == uri for content in found)
    return [(content.mime_type or "", content.text) for content in found if isinstance(content, TextResourceContents)]


async def read(host: Host, uri: str) -> Any:
    """The JSON form of a resource."""
    (text,) = [text for mime, text in await contents(host, uri) if mime == "application/json"]
    return json.loads(text)


async def refusal(host: Host, uri: str) -> tuple[int, str]:
    with pytest.raises(MCPError) as error:
        await host.client.read_resource(uri)
    assert error.value.error.data["uri"] == uri
    return error.value.error.code, error.value.error.message


async def walked(host: Host, *outputs: Any, name: str = "plain", inputs: Any = None) -> str:
    """A run whose first steps were reported."""
    run_id: str = (await host.call("sop_start", name=name, inputs=inputs))["run_id"]
    for number, output in enumerate(outputs, start=1):
        arguments = {"run_id": run_id, "execution_id": f"{number}.1", "status": "completed", "output": output}
        await host.call("sop_advance", **arguments)
    return run_id


@both_eras
async def test_the_list_names_catalogue_format_and_each_procedure(tmp_path: Path, era: str) -> None:
    async with desk(tmp_path, era, {"plain": PLAIN, "broken": BROKEN}) as at, at.host() as host:
        listed = (await host.client.list_resources()).resources
        ours = [(r.uri, r.name, r.description) for r in listed if r.uri.startswith("sop://")]
        assert ours == [
            ("sop://catalog", "catalog", "Every procedure, and the problems of those that cannot be used."),
            ("sop://format", "format", "Every key of a procedure's files, and every problem code."),
            ("sop://sops/broken", "broken", "cannot be started; it has problems"),
            ("sop://sops/plain", "plain", "Three steps"),
        ]
        templates = (await host.client.list_resource_templates()).resource_templates
        assert [t.uri_template for t in templates] == [
            "sop://sops/{name}",
            "sop://runs/{run_id}",
            "sop://runs/{run_id}/state",
            "sop://runs/{run_id}/timeline{?after,max_chars}",
            "sop://runs/{run_id}/inputs{?cursor,max_chars}",
            "sop://runs/{run_id}/output{?cursor,max_chars}",
            "sop://runs/{run_id}/steps/{n}{?execution,cursor,max_chars}",
            "sop://runs/{run_id}/gates/{gate}{?cursor,max_chars}",
            "sop://runs/{run_id}/transcript/{execution}{?cursor,max_chars}",
        ]


@pytest.mark.requirement("C47")
@both_eras
async def test_the_catalogue_and_a_procedure_read_as_the_tools_tell_them(tmp_path: Path, era: str) -> None:
    async with desk(tmp_path, era, {"plain": PLAIN, "broken": BROKEN}) as at, at.host() as host:
        assert await read(host, "sop://catalog") == await host.call("sop_list")
        assert await read(host, "sop://sops/plain") == await host.call("sop_describe", name="plain")
        (mime, text), _ = await contents(host, "sop://sops/plain")
        assert mime == "text/markdown"
        assert "Do the second thing." in text
        broken = await read(host, "sop://sops/broken")
        assert [entry["startable"] for entry in broken["sops"]] == [False]
        assert await contents(host, "sop://format") == [("text/markdown", manual())]


@pytest.mark.parametrize(
    ("reveal", "titles", "bodies"), [("all", True, True), ("titles", True, False), ("current", False, False)]
)
async def test_a_procedure_shows_beforehand_what_it_reveals_and_a_run_no_more(
    tmp_path: Path, reveal: str, titles: bool, bodies: bool
) -> None:
    async with desk(tmp_path, sops={"secretive": keeps_back(reveal)}) as at, at.host() as host:
        run_id = await walked(host, name="secretive")
        described = "".join(text for _, text in await contents(host, "sop://sops/secretive"))
        assert ("Second" in described, "hidden words" in described) == (titles, bodies)
        state = (await contents(host, f"sop://runs/{run_id}/state"))[0][1]
        assert ("Second" in state, "More hidden words" in state) == (titles, False)


@both_eras
async def test_a_run_reads_as_its_status(tmp_path: Path, era: str) -> None:
    async with desk(tmp_path, era) as at, at.host() as host:
        run_id = await walked(host, "a")
        result = await host.result("sop_status", run_id=run_id, wait_s=0)
        (mime, text), _ = await contents(host, f"sop://runs/{run_id}")
        assert (mime, text) == ("text/plain", result.content[0].text)  # type: ignore[union-attr]  # it is text
        assert await read(host, f"sop://runs/{run_id}") == result.structured_content


async def test_the_state_has_steps_executions_gates_and_graph(tmp_path: Path) -> None:
    async with desk(tmp_path) as at, at.host() as host:
        run_id = await walked(host, "draft", name="letter")
        state = await read(host, f"sop://runs/{run_id}/state")
        assert state["run"]["status"] == "paused_checkpoint"
        assert state["steps"] == {"1": "done", "2": "waiting"}
        assert [execution["output"] for execution in state["executions"]] == ["draft"]
        assert [gate["kind"] for gate in state["gates"]] == ["checkpoint"]
        assert "classDef waiting" in state["graph"]


async def test_the_timeline_comes_in_pages_that_join_without_gap(tmp_path: Path) -> None:
    async with desk(tmp_path) as at, at.host() as host:
        run_id = await walked(host, "a", "b", "c")
        address = f"sop://runs/{run_id}/timeline"
        whole = await read(host, address)
        assert "next" not in whole
        assert [record["seq"] for record in whole["records"]] == list(range(1, len(whole["records"]) + 1))
        assert whole["records"][-1]["kind"] == "RunCompleted"
        found, following = [], f"{address}?max_chars=600"
        for _ in whole["records"]:
            page = await read(host, following)
            found += page["records"]
            following = page.get("next", "")
            if not following:
                break
        assert found == whole["records"]


async def test_a_long_output_is_named_where_it_is_cut_and_is_read_in_pages(tmp_path: Path) -> None:
    long = "0123456789" * 4_000
    async with desk(tmp_path) as at, at.host() as host:
        run_id = await walked(host, "a", "b", long)
        view = await host.call("sop_status", run_id=run_id)
        assert view["output"]["cut"] is True
        assert view["output"]["resource"] == f"sop://runs/{run_id}/output"
        following, found = view["output"]["resource"], ""
        for _ in range(2):
            page = await read(host, following)
            assert page["characters"] == len(long)
            found += page["part"]
            following = page.get("next")
        assert (found, following) == (long, None)
        state = await read(host, f"sop://runs/{run_id}/state")
        assert state["executions"][2]["output"]["resource"] == f"sop://runs/{run_id}/steps/3?execution=3.1"
        step = await read(host, f"{state['executions'][2]['output']['resource']}&cursor=39990&max_chars=100")
        assert step == {
            "run_id": run_id,
            "step": 3,
            "executions": [{"execution_id": "3.1", "agent": "host", "phase": "completed"}],
            "execution_id": "3.1",
            "part": "0123456789",
            "cursor": 39990,
            "characters": 40000,
        }


async def test_a_short_output_keeps_its_type(tmp_path: Path) -> None:
    async with desk(tmp_path) as at, at.host() as host:
        run_id = await walked(host, {"n": 1}, inputs=[1, "x"])
        assert (await read(host, f"sop://runs/{run_id}/steps/1"))["value"] == {"n": 1}
        assert await read(host, f"sop://runs/{run_id}/inputs") == {"value": [1, "x"]}
        assert "value" not in await read(host, f"sop://runs/{run_id}/steps/2")


async def test_what_a_gate_asks_about_is_read_whole(tmp_path: Path) -> None:
    long = {"body": "word " * 2_000}
    async with desk(tmp_path) as at, at.host() as host:
        run_id = await walked(host, long, name="letter")
        (action,) = (await host.call("sop_status", run_id=run_id))["actions"]
        where = action["context"]["content"]["resource"]
        assert where == f"sop://runs/{run_id}/gates/{action['context']['code']}"
        assert (await read(host, where))["value"] == long


@pytest.mark.requirement("C42")
async def test_secrets_are_masked_also_where_a_page_would_cut_them(tmp_path: Path) -> None:
    async with desk(tmp_path) as at, at.host() as host:
        run_id = await walked(host, "x" * 95 + " sk-ours-12345678 " + "y" * 200, {"token": "abc", "n": 1})
        page = await read(host, f"sop://runs/{run_id}/steps/1?max_chars=100")
        assert page["part"] == "x" * 95 + " [mas"
        assert (await read(host, f"sop://runs/{run_id}/steps/2"))["value"] == {"token": "[masked]", "n": 1}
        for part in ("", "/state", "/timeline", "/inputs"):
            assert "sk-ours" not in str(await contents(host, f"sop://runs/{run_id}{part}"))


@pytest.mark.requirement("C55")
@both_eras
async def test_what_does_not_exist_is_not_found_and_says_what_does(tmp_path: Path, era: str) -> None:
    async with desk(tmp_path, era, {"kiln-firing": KILN, "plain": PLAIN}) as at, at.host() as host:
        run_id = await walked(host, "a")
        for uri, told in [
            ("sop://sops/kilnfiring", "kiln-firing"),
            ("sop://runs/run-0", "run-0"),
            ("sop://runs/run-0/state", "run-0"),
            (f"sop://runs/{run_id}/steps/3", "Executed so far: 1, 2"),
            (f"sop://runs/{run_id}/steps/1?execution=9.9", "There are 1.1."),
            (f"sop://runs/{run_id}/gates/XYZ", "Its gates: none"),
            (f"sop://runs/{run_id}/output", "running"),
            ("sop://nonsense", "sop://catalog"),
        ]:
            code, message = await refusal(host, uri)
            assert code == -32602
            assert told in message


@pytest.mark.parametrize(
    ("page", "told"),
    [
        ("steps/1?cursor=-1", "cursor is '-1'"),
        ("steps/1?cursor=99", "There are 1 characters."),
        ("steps/1?max_chars=0", "from 1 to 200000"),
        ("steps/1?max_chars=x", "max_chars is 'x'"),
        ("steps/one", "'one' is no number of a step"),
        ("timeline?after=x", "after is 'x'"),
    ],
)
async def test_a_page_that_cannot_be_is_an_error_that_says_why(tmp_path: Path, page: str, told: str) -> None:
    async with desk(tmp_path) as at, at.host() as host:
        run_id = await walked(host, "a")
        code, message = await refusal(host, f"sop://runs/{run_id}/{page}")
        assert code == -32602
        assert told in message


def session(run_id: str, at: Any) -> Transcript:
    """What an agent might have left behind."""
    row = SessionRow(run_id, "1.1", "reviewer", "host", "agent:host:x", 1, "local", 1, at, at, input_tokens=10)
    message = Message(1, "request", {"parts": ["hello", "sk-ours-12345678"]}, "2", at)
    turn = TurnRow(1, "d", "gpt", at, answered=True, input_tokens=10, output_tokens=2)
    call = CallRow(1, 0, "c1", "built_in:file_read", "file_read", "s", {"path": "a"}, "digest", at)
    return Transcript(row, (message,), (turn,), (call,))


@both_eras
async def test_a_transcript_is_for_people_who_operate(tmp_path: Path, era: str) -> None:
    async with served(tmp_path) as server:
        operator = await server.token("ida", "operate")
        async with server.host(era, operator) as host:
            run_id = await walked(host)
            left = session(run_id, server.app.clock.now())
            await server.app.store.write(lambda w: w.put_session(left.session, left.messages, left.turns, left.calls))
            address = f"sop://runs/{run_id}/transcript/1.1"
            view = await read(host, address)
            assert (view["session"]["agent"], view["session"]["input_tokens"]) == ("reviewer", 10)
            assert [entry["entry"] for entry in view["entries"]] == ["turn", "message", "call"]
            assert view["entries"][1]["data"] == {"parts": ["hello", "[masked]"]}
            page = await read(host, f"{address}?max_chars=1")
            assert (len(page["entries"]), page["next"]) == (1, f"{address}?cursor=1&max_chars=1")
            assert (await refusal(host, f"sop://runs/{run_id}/transcript/9.9"))[0] == -32602
        for kind, roles in [("human", ("view",)), ("human", ("approve",)), ("agent", ("operate",))]:
            async with server.host(era, await server.token("ida", *roles, kind=kind)) as host:
                found = await host.client.read_resource(f"sop://runs/{run_id}")
                assert found.contents
                code, message = await refusal(host, address)
                assert (code, "people who operate" in message) == (-32600, True)


@both_eras
async def test_the_host_that_started_us_and_a_caller_without_token_get_no_transcript(tmp_path: Path, era: str) -> None:
    async with desk(tmp_path, era) as at, at.host() as host:
        run_id = await walked(host)
        left = session(run_id, at.app.clock.now())
        await at.app.store.write(lambda w: w.put_session(left.session, left.messages, left.turns, left.calls))
        assert (await refusal(host, f"sop://runs/{run_id}/transcript/1.1"))[0] == -32600


async def test_a_caller_without_token_gets_no_transcript(tmp_path: Path) -> None:
    async with served(tmp_path, protected=False) as server, server.host("auto") as host:
        run_id = await walked(host)
        left = session(run_id, server.app.clock.now())
        await server.app.store.write(lambda w: w.put_session(left.session, left.messages, left.turns, left.calls))
        assert (await refusal(host, f"sop://runs/{run_id}/transcript/1.1"))[0] == -32600


@both_eras
async def test_somebody_elses_run_is_not_found_in_the_words_for_one_that_never_was(tmp_path: Path, era: str) -> None:
    async with served(tmp_path) as server:
        async with server.host(era, await server.token("ida", "operate")) as host:
            run_id = await walked(host, "a")
        async with server.host(era, await server.token("noor", "operate")) as other:
            for part in ("", "/state", "/timeline", "/inputs", "/steps/1", "/gates/X", "/transcript/1.1"):
                code, message = await refusal(other, f"sop://runs/{run_id}{part}")
                _, unknown = await refusal(other, f"sop://runs/run-0{part}")
                assert (code, message) == (-32602, unknown.replace("run-0", run_id))


@both_eras
async def test_names_and_ids_are_completed(tmp_path: Path, era: str) -> None:
    async with desk(tmp_path, era) as at, at.host() as host:
        run_id = await walked(host, "draft", name="letter")
        other = await walked(host)

        async def values(template: str, argument: str, typed: str = "", **known: str) -> list[str]:
            ref = ResourceTemplateReference(uri=template)
            found = await host.client.complete(ref, {"name": argument, "value": typed}, known)
            return found.completion.values

        assert await values("sop://sops/{name}", "name", "K") == ["kiln-firing"]
        assert sorted(await values("sop://runs/{run_id}", "run_id", "run-")) == sorted([run_id, other])
        assert await values("sop://runs/{run_id}", "run_id", run_id[:12]) == [run_id]
        step = "sop://runs/{run_id}/steps/{n}{?execution,cursor,max_chars}"
        assert await values(step, "n", run_id=run_id) == ["1"]
        assert await values(step, "execution", run_id=run_id, n="1") == ["1.1"]
        gate = "sop://runs/{run_id}/gates/{gate}{?cursor,max_chars}"
        assert len(await values(gate, "gate", run_id=run_id)) == 1
        assert await values("sop://runs/{run_id}", "run_id", "nope") == []
        assert await values(step, "n", run_id="run-0") == []


async def test_only_own_runs_are_among_the_suggestions(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        async with server.host("auto", await server.token("ida", "operate")) as host:
            mine = await walked(host)
        ref = ResourceTemplateReference(uri="sop://runs/{run_id}")
        for subject, found in [("ida", [mine]), ("noor", [])]:
            async with server.host("auto", await server.token(subject, "operate")) as host:
                answer = await host.client.complete(ref, {"name": "run_id", "value": ""})
                assert answer.completion.values == found


async def test_tools_stay_within_their_budget_beside_all_of_this(tmp_path: Path) -> None:
    async with desk(tmp_path, sops={"plain": PLAIN, "letter": LETTER}) as at, at.host() as host:
        tools = await host.client.list_tools()
        listed = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools.tools]
        assert len(json.dumps(listed)) / 4 <= 2500
