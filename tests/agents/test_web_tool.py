import json
import socket
from pathlib import Path

import pytest
from agent_workspace import assemble, refused, toml, workspace
from chat_server import Chat, chat_server

from procedo.agents.parts import SecurityPolicy
from procedo.agents.ports import ToolDenied, ToolFailed
from procedo.agents.refusal import Cause
from procedo.agents.tools.catalogue import perform
from procedo.core.model import Json
from procedo.ports import OutcomeUnknown

pytestmark = pytest.mark.anyio


async def policy_of(folder: Path, *hosts: str) -> SecurityPolicy:
    risk = f'allowed_tools = ["http_request"]\nallowed_hosts = {json.dumps(hosts)}'
    return (await assemble(workspace(folder, toml(risk=risk)))).security


def place(chat: Chat) -> str:
    return chat.endpoint.removeprefix("http://").partition("/")[0]


async def call(policy: SecurityPolicy, **arguments: Json) -> str:
    return await perform("http_request", policy, {}, arguments, "effect-1")


async def test_an_allowed_host_is_called_and_every_status_is_a_result(tmp_path: Path) -> None:
    with chat_server((200, {"ok": True}), (404, {"why": "gone"})) as chat:
        policy = await policy_of(tmp_path, place(chat))
        good = await call(policy, url=chat.endpoint, method="POST", json={"a": 1})
        missing = await call(policy, url=chat.endpoint, method="POST", json={"a": 1})
    assert json.loads(good) == {"status": 200, "headers": {}, "body": '{"ok": true}'}
    assert json.loads(missing)["status"] == 404
    assert chat.requests[0] == {"a": 1}
    assert chat.headers[0]["idempotency-key"] == "effect-1"


async def test_another_host_is_denied_and_never_reached(tmp_path: Path) -> None:
    with chat_server({}) as chat:
        policy = await policy_of(tmp_path, "api.example.org")
        for url in (chat.endpoint, chat.endpoint.replace("127.0.0.1", "localhost"), "file:///etc/passwd"):
            with pytest.raises(ToolDenied):
                await call(policy, url=url, method="POST", json={})
    assert chat.requests == []


async def test_an_answer_that_is_lost_after_sending_may_have_acted(tmp_path: Path) -> None:
    with chat_server((200, b"x" * 2_000_000)) as chat:
        policy = await policy_of(tmp_path, place(chat))
        with pytest.raises(OutcomeUnknown):
            await call(policy, url=chat.endpoint, method="POST", json={})
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: every connection is refused
        gone = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ToolFailed):
            await call(await policy_of(tmp_path, gone), url=f"http://{gone}", method="POST", json={})


async def test_a_tool_that_may_call_nobody_is_refused_when_it_is_named(tmp_path: Path) -> None:
    named = workspace(tmp_path, toml(risk='allowed_tools = ["http_request"]'))
    assert await refused(named) == {Cause.TOOL_UNUSABLE: "http_request can do nothing: no host is allowed"}
