"""What subscribers are told: that something is to be read again, after the commit, whoever made it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from host import HOST
from http_server import Served, bearer, served
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp.types import (
    PromptListChangedNotification,
    ResourceListChangedNotification,
    ResourceUpdatedNotification,
)
from mcp_host import PLAIN, Host, desk

from procedo.app import open_app
from procedo.surfaces.mcp.server import build_server

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("news")]
# The older revision's own way of subscribing; the SDK calls it deprecated because the newer one has another.
older = pytest.mark.filterwarnings("ignore:resources/(un)?subscribe is removed")
BOUND_S = 240.0


class Older:
    """A client of the older revision, and what it is told."""

    def __init__(self) -> None:
        self.client: Client
        self._send, self._told = anyio.create_memory_object_stream[Any](100)

    async def __call__(self, message: Any) -> None:
        await self._send.send(message)

    async def told(self) -> Any:
        """The next thing that it is told."""
        with anyio.fail_after(BOUND_S):
            return await self._told.receive()

    def waiting(self) -> int:
        return self._told.statistics().current_buffer_used

    def close(self) -> None:
        self._send.close()
        self._told.close()


@asynccontextmanager
async def an_older_client(server: Any) -> AsyncIterator[Older]:
    at = Older()
    async with Client(server, mode="legacy", message_handler=at) as client:
        at.client = client
        yield at
    at.close()


async def following(stream: Any) -> Any:
    with anyio.fail_after(BOUND_S):
        return await anext(stream)


async def advanced(host: Host, run_id: str, execution: str) -> None:
    await host.call("sop_advance", run_id=run_id, execution_id=execution, status="completed", output="x")


async def test_a_run_that_moved_is_news_for_those_who_follow_it(tmp_path: Path) -> None:
    async with desk(tmp_path) as at, at.host() as host:
        run_id = (await host.call("sop_start", name="plain"))["run_id"]
        other = (await host.call("sop_start", name="plain"))["run_id"]
        uris = [f"sop://runs/{run_id}", f"sop://runs/{run_id}/state", "sop://catalog"]
        async with host.client.listen(resource_subscriptions=uris) as stream:
            assert stream.honored.resource_subscriptions == uris
            await advanced(host, other, "1.1")
            await advanced(host, run_id, "1.1")
            told = {await following(stream), await following(stream)}
            assert told == {ResourceUpdated(uri=uris[0]), ResourceUpdated(uri=uris[1])}
            read = await host.client.read_resource(uris[0])
            assert "2.1" in read.model_dump_json()


async def test_the_commit_of_another_process_is_news_too(tmp_path: Path) -> None:
    async with desk(tmp_path) as at, at.host() as host:
        run_id = (await host.call("sop_start", name="plain"))["run_id"]
        uri = f"sop://runs/{run_id}"
        async with host.client.listen(resource_subscriptions=[uri]) as stream, open_app(tmp_path, worker=False) as app:
            await app.runs.advance(run_id, "1.1", "completed", "x", HOST)
            assert await following(stream) == ResourceUpdated(uri=uri)


async def test_an_edited_file_changes_both_lists_the_catalogue_and_its_procedure(tmp_path: Path) -> None:
    async with desk(tmp_path, sops={"plain": PLAIN}) as at, at.host() as host:
        uris = ["sop://catalog", "sop://sops/plain", "sop://format"]
        wanted = host.client.listen(
            prompts_list_changed=True, resources_list_changed=True, tools_list_changed=True, resource_subscriptions=uris
        )
        async with wanted as stream:
            file = tmp_path / "sops" / "plain" / "SOP.md"
            file.write_text(PLAIN["SOP.md"].replace("Third", "Last"), encoding="utf-8")
            told = {await following(stream) for _ in range(4)}
            assert told == {
                PromptsListChanged(),
                ResourcesListChanged(),
                ResourceUpdated(uri="sop://catalog"),
                ResourceUpdated(uri="sop://sops/plain"),
            }


@older
async def test_an_older_client_subscribes_and_unsubscribes(tmp_path: Path) -> None:
    async with desk(tmp_path) as at, at.host() as host, an_older_client(build_server(at.app)) as other:
        capabilities = other.client.server_capabilities
        assert capabilities is not None
        assert capabilities.resources is not None
        assert (capabilities.resources.subscribe, capabilities.resources.list_changed) == (True, True)
        run_id = (await host.call("sop_start", name="plain"))["run_id"]
        uri = f"sop://runs/{run_id}"
        await other.client.subscribe_resource(uri)
        await other.client.subscribe_resource(f"{uri}/state")
        await advanced(host, run_id, "1.1")
        told = [await other.told(), await other.told()]
        assert all(isinstance(news, ResourceUpdatedNotification) for news in told)
        assert {news.params.uri for news in told} == {uri, f"{uri}/state"}
        await other.client.unsubscribe_resource(uri)
        await advanced(host, run_id, "2.1")
        assert (await other.told()).params.uri == f"{uri}/state"
        assert other.waiting() == 0
        with pytest.raises(MCPError, match="no resource") as error:
            await other.client.subscribe_resource("sop://runs/run-0")
        assert error.value.error.code == -32602


async def test_an_older_client_that_has_read_a_list_is_told_when_files_change(tmp_path: Path) -> None:
    async with desk(tmp_path) as at, an_older_client(build_server(at.app)) as other:
        await other.client.list_prompts()
        (tmp_path / "sops" / "plain" / "SOP.md").unlink()
        told = [await other.told(), await other.told()]
        kinds = (PromptListChangedNotification, ResourceListChangedNotification)
        assert [type(news) for news in told] == list(kinds)


@older
async def test_over_http_nobody_is_told_of_somebody_elses_run(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        ida, noor = await server.token("ida", "operate"), await server.token("noor", "operate")
        async with server.host("auto", ida) as host, server.host("auto", noor) as other:
            run_id = (await host.call("sop_start", name="plain"))["run_id"]
            mine = (await other.call("sop_start", name="plain"))["run_id"]
            uris = [f"sop://runs/{run_id}", f"sop://runs/{mine}", f"sop://runs/{mine}/transcript/1.1"]
            async with (
                host.client.listen(resource_subscriptions=uris) as owner,
                other.client.listen(resource_subscriptions=uris) as stranger,
            ):
                assert owner.honored.resource_subscriptions == uris[:1]
                assert stranger.honored.resource_subscriptions == uris[1:]
                await advanced(host, run_id, "1.1")
                assert await following(owner) == ResourceUpdated(uri=uris[0])
                await advanced(other, mine, "1.1")
                assert await following(stranger) == ResourceUpdated(uri=uris[1])
        async with older_over_http(server, noor) as stranger_of_old:
            with pytest.raises(MCPError, match="no resource"):
                await stranger_of_old.client.subscribe_resource(f"sop://runs/{run_id}")


@older
async def test_an_older_client_is_told_over_http(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        ida = await server.token("ida", "operate")
        async with server.host("auto", ida) as host, older_over_http(server, ida) as other:
            run_id = (await host.call("sop_start", name="plain"))["run_id"]
            await other.client.subscribe_resource(f"sop://runs/{run_id}")
            await advanced(host, run_id, "1.1")
            assert (await other.told()).params.uri == f"sop://runs/{run_id}"


@asynccontextmanager
async def older_over_http(server: Served, secret: str) -> AsyncIterator[Older]:
    listening = anyio.Event()

    async def noted(answer: httpx2.Response) -> None:
        if answer.request.method == "GET":
            listening.set()

    hooks = {"response": [noted]}
    async with (
        httpx2.AsyncClient(headers=bearer(secret), timeout=BOUND_S, trust_env=False, event_hooks=hooks) as http,
        an_older_client(streamable_http_client(f"{server.origin}/mcp", http_client=http)) as at,
    ):
        # The client opens its stream beside its first calls, and what is told before is told to nobody.
        with anyio.fail_after(BOUND_S):
            await listening.wait()
        yield at
