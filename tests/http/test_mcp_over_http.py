import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from http_server import TOOLS, Served, bearer, reserved, served
from mcp import MCPError
from mcp.types import ResourceTemplateReference
from mcp_host import ERAS, FixedClock, User, only, says, workspace

from procedo.core.state import Verdict

pytestmark = pytest.mark.anyio
eras = pytest.mark.parametrize("era", ERAS)


@pytest.fixture
async def server(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Served]:
    async with served(tmp_path) as running:
        yield running


@eras
async def test_a_procedure_runs_to_its_end_over_http(server: Served, era: str) -> None:
    async with server.host(era, await server.token("ida", "operate")) as host:
        view = await host.call("sop_start", name="plain")
        for number in (1, 2, 3):
            assert only(view)["execution_id"] == f"{number}.1"
            view = await host.call(
                "sop_advance", run_id=view["run_id"], execution_id=f"{number}.1", status="completed", output=number
            )
    assert (view["status"], view["output"]) == ("completed", 3)
    run = (await server.app.runs.look(view["run_id"])).run
    assert (run.starter.source, run.starter.subject, run.starter.kind) == ("http", "ida", "agent")


@eras
@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.requirement("own-runs")
async def test_anothers_run_is_not_found_by_any_tool(server: Served, era: str, tool: str) -> None:
    ida, noor = await server.token("ida", "operate", "approve"), await server.token("noor", "operate", "approve")
    async with server.host(era, ida) as mine, server.host(era, noor) as theirs:
        run = (await mine.call("sop_start", name="kiln-firing"))["run_id"]
        before = (await server.app.runs.look(run)).run
        foreign = await theirs.refused(tool, **TOOLS[tool](run))
        unknown = await theirs.refused(tool, **TOOLS[tool]("run-never-was"))
        assert foreign.replace(run, "run-never-was") == unknown
        assert (await server.app.runs.look(run)).run == before
        assert (await theirs.call("sop_status"))["runs"] == []
        assert [line["run_id"] for line in (await mine.call("sop_status"))["runs"]] == [run]


@eras
async def test_a_role_that_is_missing_is_told_and_nothing_happens(server: Served, era: str) -> None:
    async with server.host(era, await server.token("ida", "view")) as host:
        assert len((await host.call("sop_list"))["sops"]) == 3
        assert "needs the role operate" in await host.refused("sop_start", name="plain")
    assert sum((await server.app.runs.counts()).values()) == 0


@eras
async def test_the_person_behind_a_human_token_is_asked_where_the_client_can(server: Served, era: str) -> None:
    user = User([says("approve", "go on")])
    async with server.host(era, await server.token("ida", "operate", "approve"), user) as host:
        view = await host.call("sop_start", name="kiln-firing")
        gate = only(view)["gate_id"]
        assert only(view)["call"]["tool"] == "sop_approve"
        view = await host.call("sop_approve", gate_id=gate)
    assert only(view)["execution_id"] == "1.1"
    decided = (await server.app.runs.gate(gate))[0].gate
    assert (str(decided.decided_by), decided.comment) == ("ida (human, http)", "go on")


REFUSED = {
    "an agent with every role": ("agent", ("operate", "approve")),
    "a person without the role approve": ("human", ("operate",)),
}


@eras
@pytest.mark.parametrize("who", REFUSED)
@pytest.mark.requirement("no-own-gate")
async def test_a_client_that_answers_for_its_user_opens_no_gate_by_it(server: Served, era: str, who: str) -> None:
    kind, roles = REFUSED[who]
    user = User([says("approve")])
    async with server.host(era, await server.token("bot", *roles, kind=kind), user) as host:
        view = await host.call("sop_start", name="kiln-firing", inputs={"approved": True})
        gate = only(view)["gate_id"]
        view = await host.call("sop_approve", gate_id=gate, decision="approve")
        assert "Nothing was decided" in view["notes"][0]
        assert f"the inbox page, {server.origin}/inbox" in view["notes"][0]
    assert user.asked == []
    assert (await server.app.runs.gate(gate))[0].gate.open


@eras
@pytest.mark.requirement("no-own-gate")
async def test_a_model_with_a_persons_token_decides_nothing_by_itself(server: Served, era: str) -> None:
    async with server.host(era, await server.token("ida", "operate", "approve")) as host:
        gate = only(await host.call("sop_start", name="kiln-firing"))["gate_id"]
        view = await host.call("sop_approve", gate_id=gate, decision="approve", comment="ida said so")
    assert view["status"] == "waiting_approval"
    assert (await server.app.runs.gate(gate))[0].gate.open


@eras
@pytest.mark.requirement("no-own-gate")
async def test_without_tokens_a_caller_is_nobody_and_decides_nothing(tmp_path: Path, era: str) -> None:
    user = User([says("approve")])
    async with served(tmp_path, protected=False) as server, server.host(era, None, user) as host:
        gate = only(await host.call("sop_start", name="kiln-firing"))["gate_id"]
        view = await host.call("sop_approve", gate_id=gate, decision="approve")
        assert view["status"] == "waiting_approval"
        assert user.asked == []
        found, snapshot = await server.app.runs.gate(gate)
        assert (found.gate.open, snapshot.run.starter.subject) == (True, "")


async def test_the_open_door_closes_when_the_first_token_is_made(tmp_path: Path) -> None:
    async with served(tmp_path, protected=False) as server:
        async with server.host("auto") as host:
            await host.call("sop_list")
            await server.token("ida", "view")
            async with server.web() as web:
                answer = await web.post("/mcp", json={})
        assert answer.status_code == 401
        assert "restart" in answer.json()["error_description"]


@eras
async def test_a_question_that_is_open_at_a_client_survives_a_restart(tmp_path: Path, era: str) -> None:
    folder = workspace(tmp_path)
    async with reserved(folder) as first:
        secret = await first.token("ida", "operate", "approve")
        async with first.host(era, secret) as host:
            run = (await host.call("sop_start", name="kiln-firing"))["run_id"]
    async with reserved(folder) as second, second.host(era, secret, User([says("approve")])) as host:
        view = await host.call("sop_approve", gate_id=f"{run}.g1")
    assert only(view)["execution_id"] == "1.1"


async def test_the_state_of_a_question_is_taken_by_the_next_process_and_only_for_the_same_caller(
    tmp_path: Path,
) -> None:
    """The rounds of one question, by hand: asked of the first process, answered to the second."""
    folder = workspace(tmp_path)
    async with reserved(folder) as first:
        ida, noor = await first.token("ida", "operate", "approve"), await first.token("noor", "operate", "approve")
        async with first.host("auto", ida) as host:
            run = (await host.call("sop_start", name="kiln-firing"))["run_id"]
        asked = await modern_call(first, ida, run)
    assert asked["resultType"] == "input_required"
    (key,) = asked["inputRequests"]
    answer = {key: {"action": "accept", "content": {"decision": "approve", "comment": ""}}}
    more = {"requestState": asked["requestState"], "inputResponses": answer}
    async with reserved(folder) as second:
        stolen = await modern_call(second, noor, run, **more)
        assert stolen.get("isError") or "error" in stolen
        assert (await second.app.runs.gate(f"{run}.g1"))[0].gate.open
        taken = await modern_call(second, ida, run, **more)
        assert taken["structuredContent"]["status"] == "running", taken


async def modern_call(server: Served, secret: str, run: str, **more: Any) -> Any:
    """One round of sop_approve as it travels in the newer revision."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "desk", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    }
    params = {"name": "sop_approve", "arguments": {"gate_id": f"{run}.g1"}, "_meta": meta, **more}
    headers = {
        **bearer(secret),
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "sop_approve",
    }
    async with server.web(**headers) as web:
        answer = await web.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    text = answer.text
    if answer.headers["content-type"].startswith("text/event-stream"):
        text = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")][-1]
    body = json.loads(text)
    return body.get("result", body)


async def test_a_token_that_ends_while_a_client_is_connected_ends_its_calls(tmp_path: Path) -> None:
    clock = FixedClock()
    async with served(tmp_path, clock=clock) as server:
        secret = await server.token("ida", "view", lifetime_s=60.0)
        async with server.web(**bearer(secret)) as web:
            assert (await web.post("/mcp", json={})).status_code not in (401, 403)
            clock.time += timedelta(seconds=60)
            assert (await web.post("/mcp", json={})).status_code == 401


async def test_a_decision_on_the_page_is_seen_by_the_host(server: Served) -> None:
    from procedo.core.principal import Principal, PrincipalKind, Source
    from procedo.runs import Surface

    async with server.host("auto", await server.token("ida", "operate")) as host:
        view = await host.call("sop_start", name="kiln-firing")
        person = Surface(Principal(Source.WEB, "noor", PrincipalKind.HUMAN))
        await server.app.runs.decide(only(view)["gate_id"], Verdict.APPROVE, person)
        view = await host.call("sop_resume", run_id=view["run_id"])
    assert only(view)["execution_id"] == "1.1"


@eras
@pytest.mark.requirement("own-runs")
async def test_anothers_run_cannot_be_read_as_a_resource_or_completed(server: Served, era: str) -> None:
    ida, noor = await server.token("ida", "operate"), await server.token("noor", "operate")
    async with server.host(era, ida) as mine, server.host(era, noor) as theirs:
        run = (await mine.call("sop_start", name="kiln-firing"))["run_id"]
        for template in (await mine.client.list_resource_templates()).resource_templates:
            if "{run_id}" not in template.uri_template or template.uri_template.count("{") > 1:
                continue
            uri = template.uri_template.replace("{run_id}", run)
            assert (await mine.client.read_resource(uri)).contents
            with pytest.raises(MCPError) as foreign:
                await theirs.client.read_resource(uri)
            with pytest.raises(MCPError) as unknown:
                await theirs.client.read_resource(uri.replace(run, "run-never-was"))
            assert str(foreign.value).replace(run, "run-never-was") == str(unknown.value)
        (uri_template, *_) = [
            found.uri_template
            for found in (await mine.client.list_resource_templates()).resource_templates
            if "{run_id}" in found.uri_template
        ]
        argument = {"name": "run_id", "value": "run-"}
        reference = ResourceTemplateReference(uri=uri_template)
        assert (await mine.client.complete(reference, argument)).completion.values == [run]
        assert (await theirs.client.complete(reference, argument)).completion.values == []
