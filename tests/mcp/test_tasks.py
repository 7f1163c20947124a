"""Calls as tasks, for clients that declare the extension; and no difference for those that do not."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from host import HOST
from http_server import Served, bearer, served
from mcp import Client
from mcp.client import ClientRequestContext, advertise
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import ElicitRequestParams, ElicitResult, Implementation, Request
from mcp_host import KILN, FixedClock, workspace
from pydantic import BaseModel, ConfigDict
from service import person

from procedo.app import App, open_app
from procedo.core.state import Verdict
from procedo.surfaces.mcp.server import build_server
from procedo.surfaces.mcp.tasks import EXTENSION

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("tasks")]
PATIENT = {
    "SOP.toml": """
[sop]
name = "patient"
description = "Wait, then do something"
execution_mode = "auto"
max_concurrent = 9
""",
    "SOP.md": "## Steps\n\n1. **Rest**\n   - wait: 10m\n2. **Act** — Do it.\n",
}
AWAY = {
    "SOP.toml": KILN["SOP.toml"].replace("kiln-firing", "away"),
    "SOP.md": KILN["SOP.md"].replace("requires_confirmation: true", "requires_confirmation: true\n   - policy: far"),
}
SOPS = {"patient": PATIENT, "kiln-firing": KILN, "away": AWAY}
CONFIG = "[sop.approval.policies.far]\nout_of_band = true\n"


class Loose(BaseModel):
    """Whatever is answered."""

    model_config = ConfigDict(extra="allow")


class Call(Request[dict[str, Any], str]):
    """A request of any method."""


async def never_asked(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
    raise AssertionError("a client of tasks is asked through the task")


@dataclass
class TaskHost:
    """A client that declares the extension."""

    client: Client
    app: App

    async def send(self, method: str, **params: Any) -> Any:
        found = await self.client.session.send_request(Call(method=method, params=params), Loose)
        return found.model_dump(mode="json")

    async def call(self, tool: str, **arguments: Any) -> Any:
        return await self.send("tools/call", name=tool, arguments={**arguments, "wait_s": 0})

    async def get(self, task_id: str) -> Any:
        found = await self.send("tasks/get", taskId=task_id)
        assert found["resultType"] == "complete"
        return found

    async def update(self, task_id: str, **responses: Any) -> None:
        ack = await self.send("tasks/update", taskId=task_id, inputResponses=responses)
        assert "status" not in ack
        assert ack["resultType"] == "complete"

    async def refused(self, method: str, **params: Any) -> tuple[int, str]:
        with pytest.raises(MCPError) as error:
            await self.send(method, **params)
        return error.value.error.code, error.value.error.message


@asynccontextmanager
async def connected(app: App, *, asks: bool = True, declares: bool = True) -> AsyncIterator[TaskHost]:
    extensions = [advertise(EXTENSION)] if declares else []
    async with Client(
        build_server(app),
        mode="auto",
        client_info=Implementation(name="desk", version="1"),
        elicitation_callback=never_asked if asks else None,
        extensions=extensions,
    ) as client:
        yield TaskHost(client, app)


@asynccontextmanager
async def opened(folder: Path, clock: FixedClock) -> AsyncIterator[App]:
    async with open_app(folder, worker=False, clock=clock) as app:
        yield app


@asynccontextmanager
async def host(folder: Path, clock: FixedClock | None = None, **how: bool) -> AsyncIterator[TaskHost]:
    async with (
        opened(workspace(folder, SOPS, CONFIG), clock or FixedClock()) as app,
        connected(app, **how) as client,
    ):
        yield client


async def test_a_call_that_leaves_the_server_at_work_answers_with_a_task(tmp_path: Path) -> None:
    clock = FixedClock()
    async with host(tmp_path, clock) as at:
        task = await at.call("sop_start", name="patient")
        run_id, _, revision = task["taskId"].rpartition(".")
        run = (await at.app.runs.look(run_id)).run
        assert task == {
            "resultType": "task",
            "taskId": f"{run.id}.{run.revision}",
            "status": "working",
            "createdAt": "2026-11-29T12:00:00.000Z",
            "lastUpdatedAt": "2026-11-29T12:00:00.000Z",
            "ttlMs": None,
            "pollIntervalMs": 1000,
            "_meta": task["_meta"],
        }
        assert (await at.get(task["taskId"]))["status"] == "working"
        clock.time += timedelta(minutes=11)
        done = await at.get(task["taskId"])
        assert (done["status"], done["createdAt"]) == ("completed", task["createdAt"])
        (action,) = done["result"]["structuredContent"]["actions"]
        assert action["execution_id"] == "2.1"
        assert "Do it." in done["result"]["content"][0]["text"]
        assert revision == str(run.revision)


async def test_what_is_for_the_host_at_once_or_refused_is_no_task(tmp_path: Path) -> None:
    async with host(tmp_path, asks=False) as at:
        gate = await at.call("sop_start", name="kiln-firing")
        assert (gate["resultType"], gate["structuredContent"]["who_acts"]) == ("complete", "human")
        unknown = await at.call("sop_start", name="nothing")
        assert unknown["isError"] is True
        run_id = gate["structuredContent"]["run_id"]
        status = await at.send("tools/call", name="sop_status", arguments={"run_id": run_id, "wait_s": 0})
        assert status["resultType"] == "complete"


async def test_a_client_that_does_not_declare_the_extension_sees_no_difference(tmp_path: Path) -> None:
    async with host(tmp_path, declares=False) as at:
        view = (await at.client.call_tool("sop_start", {"name": "patient", "wait_s": 0})).structured_content
        assert view is not None
        assert view["who_acts"] == "server"
        run = (await at.app.runs.look(str(view["run_id"]))).run
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            code, _ = await at.refused(method, taskId=f"{run.id}.{run.revision}", inputResponses={})
            assert code == -32021


async def test_a_task_survives_a_restart(tmp_path: Path) -> None:
    clock = FixedClock()
    async with host(tmp_path, clock) as at:
        task = (await at.call("sop_start", name="patient"))["taskId"]
    clock.time += timedelta(minutes=11)
    async with opened(tmp_path, clock) as app, connected(app) as at:
        assert (await at.get(task))["status"] == "completed"


async def test_a_task_that_was_seen_to_end_stays_ended_when_the_run_goes_on(tmp_path: Path) -> None:
    clock = FixedClock()
    async with host(tmp_path, clock) as at:
        task = (await at.call("sop_start", name="patient"))["taskId"]
        clock.time += timedelta(minutes=11)
        assert (await at.get(task))["status"] == "completed"
        run_id = task.rpartition(".")[0]
        await at.app.runs.advance(run_id, "2.1", "completed", "x", HOST)
        later = await at.get(task)
        assert later["status"] == "completed"
        assert "moved on since" in later["result"]["structuredContent"]["notes"][0]


async def test_a_gate_becomes_a_question_and_the_persons_answer_counts(tmp_path: Path) -> None:
    async with host(tmp_path) as at:
        task = await at.call("sop_start", name="kiln-firing")
        assert (task["resultType"], "inputRequests" in task) == ("task", False)
        asked = await at.get(task["taskId"])
        assert asked["status"] == "input_required"
        ((key, request),) = asked["inputRequests"].items()
        assert request["method"] == "elicitation/create"
        assert "kiln-firing" in request["params"]["message"]
        assert request["params"]["requestedSchema"]["properties"]["decision"]["enum"] == ["approve", "deny"]
        await at.update(task["taskId"], nonsense={"action": "accept", "content": {"decision": "approve"}})
        assert (await at.get(task["taskId"]))["status"] == "input_required"
        await at.update(task["taskId"], **{key: {"action": "accept", "content": {"decision": "approve"}}})
        done = await at.get(task["taskId"])
        assert done["status"] == "completed"
        run_id = task["taskId"].rpartition(".")[0]
        history = await at.app.runs.history(run_id)
        assert [(gate.verdict, str(gate.decided_by)) for gate in history.gates] == [
            (Verdict.APPROVE, "desk (human, host)")
        ]
        await at.update(task["taskId"], **{key: {"action": "accept", "content": {"decision": "deny"}}})
        assert (await at.get(task["taskId"]))["status"] == "completed"
        assert (await at.app.runs.look(run_id)).run.end is None


async def test_an_answer_that_does_not_fit_its_form_is_refused(tmp_path: Path) -> None:
    async with host(tmp_path) as at:
        task = (await at.call("sop_start", name="kiln-firing"))["taskId"]
        (key,) = (await at.get(task))["inputRequests"]
        for response in ({"action": "accept", "content": {"decision": "maybe"}}, {"action": "accept"}, 5):
            code, message = await at.refused("tasks/update", taskId=task, inputResponses={key: response})
            assert code == -32602
            assert "approve, deny" in message
        assert (await at.get(task))["status"] == "input_required"


async def test_a_closed_question_decides_nothing_and_is_not_asked_again(tmp_path: Path) -> None:
    async with host(tmp_path) as at:
        task = (await at.call("sop_start", name="kiln-firing"))["taskId"]
        (key,) = (await at.get(task))["inputRequests"]
        await at.update(task, **{key: {"action": "decline"}})
        done = await at.get(task)
        assert done["status"] == "completed"
        view = done["result"]["structuredContent"]
        assert view["status"] == "waiting_approval"
        assert "you do not ask again here" in view["notes"][0]
        assert view["actions"][0]["call"]["tool"] == "sop_resume"
        (gate,) = (await at.app.runs.history(task.rpartition(".")[0])).gates
        assert gate.open


async def test_a_gate_that_is_decided_elsewhere_is_never_a_question_here(tmp_path: Path) -> None:
    async with host(tmp_path) as at:
        view = (await at.call("sop_start", name="away"))["structuredContent"]
        assert view["who_acts"] == "human"
        patient = (await at.call("sop_start", name="patient"))["taskId"]
        (gate,) = (await at.app.runs.look(str(view["run_id"]))).run.open_gates
        await at.update(patient, **{f"{gate.id}.1": {"action": "accept", "content": {"decision": "approve"}}})
        assert (await at.app.runs.look(str(view["run_id"]))).run.open_gates == (gate,)


async def test_a_client_that_cannot_ask_its_user_answers_for_nobody(tmp_path: Path) -> None:
    folder, clock = workspace(tmp_path, SOPS, CONFIG), FixedClock()
    async with opened(folder, clock) as app:
        async with connected(app) as at:
            task = (await at.call("sop_start", name="kiln-firing"))["taskId"]
            (key,) = (await at.get(task))["inputRequests"]
        async with connected(app, asks=False) as at:
            await at.update(task, **{key: {"action": "accept", "content": {"decision": "approve"}}})
            assert (await app.runs.look(task.rpartition(".")[0])).run.open_gates


async def test_ending_a_task_ends_the_waiting_and_not_the_run(tmp_path: Path) -> None:
    clock = FixedClock()
    async with host(tmp_path, clock) as at:
        task = (await at.call("sop_start", name="patient"))["taskId"]
        for _ in range(2):
            ack = await at.send("tasks/cancel", taskId=task)
            assert (ack["resultType"], "status" in ack) == ("complete", False)
            assert (await at.get(task))["status"] == "cancelled"
        clock.time += timedelta(minutes=11)
        assert (await at.get(task))["status"] == "cancelled"
        assert (await at.app.runs.state(task.rpartition(".")[0], HOST)).run.end is None


async def test_a_person_elsewhere_answers_the_question_of_a_task_too(tmp_path: Path) -> None:
    async with host(tmp_path) as at:
        task = (await at.call("sop_start", name="kiln-firing"))["taskId"]
        (gate,) = (await at.app.runs.look(task.rpartition(".")[0])).run.open_gates
        await at.app.runs.decide(gate.code, Verdict.APPROVE, person("ida"))
        assert (await at.get(task))["status"] == "completed"


@pytest.mark.parametrize("task_id", ["", "x", "run-0.1", "run-0.x", "../etc"])
async def test_an_unknown_task_is_an_error(tmp_path: Path, task_id: str) -> None:
    async with host(tmp_path) as at:
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            code, message = await at.refused(method, taskId=task_id, inputResponses={})
            assert (code, repr(task_id) in message) == (-32602, True)


@asynccontextmanager
async def over_http(server: Served, secret: str) -> AsyncIterator[TaskHost]:
    headers = bearer(secret)
    async with httpx2.AsyncClient(headers=headers, timeout=240, trust_env=False) as http:
        transport = streamable_http_client(f"{server.origin}/mcp", http_client=http)
        async with Client(transport, mode="auto", extensions=[advertise(EXTENSION)]) as client:
            yield TaskHost(client, server.app)


async def test_over_http_a_task_is_its_principals_alone(tmp_path: Path) -> None:
    async with served(tmp_path, sops=SOPS, config=CONFIG) as server:
        async with over_http(server, await server.token("ida", "operate")) as at:
            task = (await at.call("sop_start", name="patient"))["taskId"]
            assert (await at.get(task))["status"] == "working"
        async with over_http(server, await server.token("noor", "operate")) as at:
            for method in ("tasks/get", "tasks/update", "tasks/cancel"):
                assert await at.refused(method, taskId=task, inputResponses={}) == (
                    -32602,
                    f"There is no task {task!r}.",
                )
