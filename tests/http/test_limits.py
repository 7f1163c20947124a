"""A token with limits, at every door: what is beyond them is nowhere to be found."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from http_server import TOOLS, Served, served
from mcp import MCPError
from mcp.types import PromptReference, ResourceTemplateReference
from mcp_host import ALL, ERAS, Host, only

from procedo.core.reach import Reach

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("reach")]
eras = pytest.mark.parametrize("era", ERAS)
PLAIN = Reach(sops=("pl*",))
CATALOGUE = {"plain": ALL["plain"], "kiln-firing": ALL["kiln-firing"]}


@pytest.fixture
async def server(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Served]:
    async with served(tmp_path, sops=CATALOGUE) as running:
        yield running


async def kiln(server: Served, era: str) -> Any:
    """A run of ida's beyond the limits, at its gate."""
    async with server.host(era, await server.token("ida", "operate", "approve")) as host:
        return await host.call("sop_start", name="kiln-firing", idempotency_key="once")


@eras
async def test_tools_know_the_procedures_within_the_limits_alone(server: Served, era: str) -> None:
    run = (await kiln(server, era))["run_id"]
    secret = await server.token("ida", "operate", "approve", reach=PLAIN)
    async with server.host(era, secret) as host:
        assert [sop["name"] for sop in (await host.call("sop_list"))["sops"]] == ["plain"]
        for tool in ("sop_list", "sop_describe", "sop_start"):
            told = await host.refused(tool, name="kiln-firing")
            assert told.count("kiln-firing") == (await host.refused(tool, name="kiln-furing")).count("kiln-furing") == 1
        for tool, arguments in TOOLS.items():
            beyond = await host.refused(tool, **arguments(run))
            assert beyond.replace(run, "run-never-was") == await host.refused(tool, **arguments("run-never-was"))
        assert (await host.call("sop_status"))["runs"] == []
        view = await host.call("sop_start", name="plain", idempotency_key="twice")
        assert only(view)["execution_id"] == "1.1"
        assert [line["run_id"] for line in (await host.call("sop_status"))["runs"]] == [view["run_id"]]
    assert (await server.app.runs.look(run)).run.status == "waiting_approval"
    assert (await server.app.runs.look(view["run_id"])).run.reach == (PLAIN,)


async def absent(host: Host, uri: str) -> str:
    with pytest.raises(MCPError) as missing:
        await host.client.read_resource(uri)
    return str(missing.value)


@eras
async def test_resources_prompts_and_completion_know_no_more(server: Served, era: str) -> None:
    run = (await kiln(server, era))["run_id"]
    async with server.host(era, await server.token("ida", "operate", reach=PLAIN)) as host:
        listed = [str(one.uri) for one in (await host.client.list_resources()).resources]
        assert [uri for uri in listed if uri.startswith("sop://sops/")] == ["sop://sops/plain"]
        assert [one.name for one in (await host.client.list_prompts()).prompts] == ["plain"]
        contents = (await host.client.read_resource("sop://catalog")).contents
        assert "kiln" not in "".join(getattr(one, "text", "") for one in contents)
        for beyond, unknown in (
            (f"sop://runs/{run}", "sop://runs/run-never-was"),
            (f"sop://runs/{run}/timeline", "sop://runs/run-never-was/timeline"),
            ("sop://sops/kiln-firing", "sop://sops/kiln-furing"),
        ):
            told = (await absent(host, beyond)).replace(run, "run-never-was").replace("kiln-firing", "kiln-furing")
            assert told == await absent(host, unknown)
        with pytest.raises(MCPError):
            await host.client.get_prompt("kiln-firing")
        names = ResourceTemplateReference(uri="sop://sops/{name}")
        found = await host.client.complete(names, {"name": "name", "value": ""})
        assert found.completion.values == ["plain"]
        runs = ResourceTemplateReference(uri="sop://runs/{run_id}")
        assert (await host.client.complete(runs, {"name": "run_id", "value": ""})).completion.values == []
        prompt = PromptReference(name="kiln-firing")
        assert (await host.client.complete(prompt, {"name": "inputs", "value": ""})).completion.values == []


async def test_nobody_subscribes_to_what_is_beyond_their_limits(server: Served) -> None:
    run = (await kiln(server, "auto"))["run_id"]
    uris = [f"sop://runs/{run}", "sop://sops/kiln-firing", "sop://sops/plain"]
    secret = await server.token("ida", "operate", reach=PLAIN)
    async with server.host("auto", secret) as host, host.client.listen(resource_subscriptions=uris) as stream:
        assert stream.honored.resource_subscriptions == ["sop://sops/plain"]


async def test_the_page_shows_no_gate_beyond_the_limits(server: Served) -> None:
    gate = only(await kiln(server, "auto"))["gate_id"]
    pages = {}
    for name, reach in (("narrow", PLAIN), ("wide", Reach(sops=("kiln*",)))):
        secret = await server.token("ida", "approve", reach=reach)
        async with server.web() as web:
            await web.get("/inbox/login")
            await web.post("/inbox/login", data={"credential": secret, "next": ""}, headers={"origin": server.origin})
            inbox = await web.get("/inbox?show=all")
            detail = await web.get(f"/inbox/gates/{gate}")
            pages[name] = (gate in inbox.text, detail.status_code, "Load kiln" in detail.text)
    assert pages == {"narrow": (False, 404, False), "wide": (True, 200, True)}


@eras
async def test_a_narrow_token_narrows_what_a_wide_one_of_the_same_subject_began(server: Served, era: str) -> None:
    async with server.host(era, await server.token("ida", "operate")) as host:
        run = (await host.call("sop_start", name="plain"))["run_id"]
    narrow = Reach(agents=())
    async with server.host(era, await server.token("ida", "operate", reach=narrow)) as host:
        await host.call("sop_advance", run_id=run, execution_id="1.1", status="completed")
    history = await server.app.runs.history(run)
    assert history.snapshot.run.reach == (narrow,)
    assert [json.loads(json.dumps(one.data)) for one in history.records if one.kind == "ReachNarrowed"] == [
        {"reach": [{"agents": []}]}
    ]


async def test_a_token_that_ends_leaves_the_run_within_its_limits(server: Served) -> None:
    secret = await server.token("ida", "operate", reach=PLAIN)
    async with server.host("auto", secret) as host:
        run = (await host.call("sop_start", name="plain"))["run_id"]
    (token,) = [token for token in await server.app.tokens.list() if token.reach == PLAIN]
    await server.app.tokens.revoke(token.id)
    async with server.host("auto", await server.token("ida", "operate")) as host:
        await host.call("sop_advance", run_id=run, execution_id="1.1", status="completed")
    assert (await server.app.runs.look(run)).run.reach == (PLAIN,)
