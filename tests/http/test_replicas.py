"""Two servers of one workspace behind one address: what one began the other carries on."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from commands import Workspace
from http_server import MAKER, bearer
from mcp_host import KILN, PLAIN, workspace
from served_process import LIMIT_S, Running, forked, request, serving

from procedo.app import open_app
from procedo.core.access import Role
from procedo.core.principal import PrincipalKind

pytestmark = pytest.mark.requirement("state-keys")
OLD, NEW = "o" * 64, "n" * 64


async def _token(folder: Path) -> str:
    roles = [Role.OPERATE, Role.APPROVE]
    async with open_app(folder, worker=False) as app:
        return (await app.tokens.create("t", MAKER, subject="ida", kind=PrincipalKind.HUMAN, roles=roles)).secret


class Desk:
    """A host of the newer revision that forgets nothing and asks its user nothing by itself."""

    def __init__(self, secret: str) -> None:
        self._secret = secret

    def call(self, running: Running, method: str, named: str, /, **params: Any) -> Any:
        body = request("")
        meta = body["params"]["_meta"]
        meta["io.modelcontextprotocol/clientCapabilities"] = {
            "elicitation": {"form": {}},
            "extensions": {"io.modelcontextprotocol/tasks": {}},
        }
        body["method"], body["params"] = method, {"_meta": meta, **params}
        headers = {
            "accept": "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28",
            "mcp-method": method, "mcp-name": named, **bearer(self._secret),
        }  # fmt: skip
        answer = httpx2.post(f"{running.origin}/mcp", json=body, headers=headers, timeout=LIMIT_S)
        return json.loads(answer.text if answer.text.startswith("{") else answer.text.rpartition("data: ")[2])

    def tool(self, running: Running, tool: str, arguments: Any, **more: Any) -> Any:
        return self.call(running, "tools/call", tool, name=tool, arguments=arguments, **more)


def placed(folder: Path, config: str = "") -> tuple[Workspace, Desk]:
    workspace(folder, {"kiln-firing": KILN, "plain": PLAIN}, config)
    return Workspace(folder), Desk(asyncio.run(_token(folder)))


def asked(desk: Desk, running: Running) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """A gate about which a server has a question for the user: its id, and the answer that says yes."""
    started = desk.tool(running, "sop_start", {"name": "kiln-firing", "wait_s": 0})["result"]
    gate = _gate(desk, running, started)
    arguments = {"gate_id": gate}
    result = desk.tool(running, "sop_approve", arguments)["result"]
    assert result["resultType"] == "input_required"
    (key,) = result["inputRequests"]
    yes = {"action": "accept", "content": {"decision": "approve", "comment": "go on"}}
    return gate, arguments, {"requestState": result["requestState"], "inputResponses": {key: yes}}


def _gate(desk: Desk, running: Running, started: Any) -> str:
    if started.get("resultType") != "task":
        return str(started["structuredContent"]["actions"][0]["gate_id"])
    task = desk.call(running, "tasks/get", started["taskId"], taskId=started["taskId"])["result"]
    return str(next(iter(task["inputRequests"])).rpartition(".")[0])


@pytest.fixture(params=["beside the store", "by reference"])
def config(request: pytest.FixtureRequest) -> str:
    return '[http]\nstate_keys = { env = "STATE_KEYS" }\n' if request.param == "by reference" else ""


@pytest.fixture
def pair(tmp_path: Path, config: str) -> Iterator[tuple[Running, Running, Desk]]:
    place, desk = placed(tmp_path, config)
    # A rotation under way: the one seals with the old key still, the other with the new one already.
    first, second = (Workspace(place.root, {"STATE_KEYS": keys}) for keys in (f"{OLD} {NEW}", f"{NEW} {OLD}"))
    with (
        serving(first, "--http", "--port", "0", begin=forked) as one,
        serving(second, "--http", "--port", "0", begin=forked) as other,
    ):
        yield one, other, desk


def test_a_question_of_one_server_is_answered_at_the_other_and_back(pair: tuple[Running, Running, Desk]) -> None:
    one, other, desk = pair
    for asking, answering in ((one, other), (other, one)):
        gate, arguments, answer = asked(desk, asking)
        decided = desk.tool(answering, "sop_approve", arguments, **answer)["result"]["structuredContent"]
        assert decided["actions"][0]["execution_id"] == "1.1", gate
        desk.tool(one, "sop_cancel", {"run_id": decided["run_id"], "reason": "seen"})


def test_a_state_that_was_tampered_with_decides_nothing_at_either(pair: tuple[Running, Running, Desk]) -> None:
    one, other, desk = pair
    _, arguments, answer = asked(desk, one)
    state = answer["requestState"]
    forged = {**answer, "requestState": state[:-2] + ("AA" if state[-2:] != "AA" else "BB")}
    for running in (one, other):
        assert desk.tool(running, "sop_approve", arguments, **forged)["error"]["code"] == -32602
    again = desk.tool(other, "sop_approve", arguments, **answer)["result"]["structuredContent"]
    assert again["actions"][0]["execution_id"] == "1.1", "the true one still does"


def test_a_state_sealed_with_a_key_that_is_gone_decides_nothing(tmp_path: Path) -> None:
    place, desk = placed(tmp_path, '[http]\nstate_keys = { env = "STATE_KEYS" }\n')
    with serving(Workspace(place.root, {"STATE_KEYS": OLD}), "--http", "--port", "0", begin=forked) as one:
        _, arguments, answer = asked(desk, one)
    with serving(Workspace(place.root, {"STATE_KEYS": NEW}), "--http", "--port", "0", begin=forked) as other:
        assert desk.tool(other, "sop_approve", arguments, **answer)["error"]["code"] == -32602


def test_a_task_of_one_server_is_looked_at_and_ended_at_the_other(tmp_path: Path) -> None:
    place, desk = placed(tmp_path)
    with (
        serving(place, "--http", "--port", "0", begin=forked) as one,
        serving(place, "--http", "--port", "0", begin=forked) as other,
    ):
        made = desk.tool(one, "sop_start", {"name": "kiln-firing", "wait_s": 0})["result"]
        assert made["resultType"] == "task"
        name = made["taskId"]
        seen = [desk.call(at, "tasks/get", name, taskId=name)["result"] for at in (one, other)]
        assert seen[0] == seen[1]
        assert seen[0]["status"] == "input_required"
        desk.call(other, "tasks/cancel", name, taskId=name)
        assert desk.call(one, "tasks/get", name, taskId=name)["result"]["status"] == "cancelled"
