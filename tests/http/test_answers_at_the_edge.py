"""What goes wrong before any tool is called, in raw HTTP: the status, the error, and words that say what is right."""

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from http_server import Served, bearer, served
from served_process import request

from procedo.surfaces.http.edge import MOST_BYTES

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("http-edge")]
BOTH = "application/json, text/event-stream"
ACCEPT = f"send Accept: {BOTH}"
ENVELOPE = "io.modelcontextprotocol/protocolVersion"
ANCIENT = {"mcp-protocol-version": "1999-01-01"}
BARE = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
OLDER = "2025-11-25"
HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": OLDER, "capabilities": {}, "clientInfo": {"name": "d", "version": "1"}},
}  # fmt: skip


@pytest.fixture
async def server(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Served]:
    async with served(tmp_path) as running:
        yield running


def modern(method: str = "tools/list", **headers: str) -> dict[str, str]:
    return {"accept": BOTH, "content-type": "application/json", "mcp-protocol-version": "2026-07-28",
            "mcp-method": method, **headers}  # fmt: skip


def older(**headers: str) -> dict[str, str]:
    return {"accept": BOTH, "content-type": "application/json", "mcp-protocol-version": OLDER, **headers}


def asked(method: str, **params: Any) -> bytes:
    body = request("")
    body["method"], body["params"] = method, {"_meta": body["params"]["_meta"], **params}
    return json.dumps(body).encode()


LIST = asked("tools/list")
DEEP = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + b"[" * 900 + b"]" * 900 + b"}}"
LONE = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\\ud800"}}'


@dataclass
class Case:
    """A request, and what is answered: `says` occurs in the message."""

    status: int
    code: int
    says: str
    headers: dict[str, str] = field(default_factory=modern)
    body: bytes = LIST
    method: str = "POST"
    id: int | None = None


CASES = {
    "a wrong host": Case(421, -32600, "Host 'evil.example'", modern(host="evil.example")),
    "a wrong origin": Case(403, -32600, "Origin 'http://evil.example'", modern(origin="http://evil.example")),
    "no accept": Case(406, -32600, ACCEPT, modern(accept="text/html")),
    "no accept, older": Case(406, -32600, ACCEPT, older(accept="text/html")),
    "another type": Case(400, -32600, "send application/json", {**modern(), "content-type": "text/plain"}),
    "no json": Case(400, -32700, "the body is no JSON that can be read", body=b"{"),
    "no json, older": Case(400, -32700, "the body is no JSON that can be read", older(), b"{"),
    "no utf-8": Case(400, -32700, "the body is no JSON that can be read", body=b'"\xff'),
    "nested deep, older": Case(400, -32700, "the body is no JSON that can be read", older(), DEEP),
    "half a character, older": Case(400, -32700, "the body is no JSON that can be read", older(), LONE),
    "a batch": Case(400, -32600, "batches are not taken", body=b"[" + LIST + b"]"),
    "a batch, older": Case(400, -32602, "batches are not taken", older(), b"[" + LIST + b"]"),
    "no message": Case(400, -32600, "one JSON-RPC request", body=b'{"id": 1}'),
    "too large": Case(413, -32600, f"more than {MOST_BYTES} bytes", body=b" " * (MOST_BYTES + 1)),
    "an unknown revision": Case(400, -32022, "speaks 2024-11-05", modern() | ANCIENT, id=1),
    "no envelope": Case(
        400, -32602, ENVELOPE, body=BARE, id=1
    ),
    "a header that disagrees": Case(400, -32020, "mcp-method header does not match", modern("tools/call"), id=1),
    "the handshake in the newer revision": Case(
        404, -32601, "initialize belongs to older revisions; 2026-07-28 has server/discover", modern("initialize"),
        asked("initialize"), id=1,
    ),
    "ping in the newer revision": Case(
        404, -32601, "ping belongs to older revisions", modern("ping"), asked("ping"), id=1,
    ),
    "subscribe in the newer revision": Case(
        404, -32601, "has server/discover and subscriptions/listen", modern("resources/subscribe"),
        asked("resources/subscribe", uri="sop://catalog"), id=1,
    ),
    "an unknown method": Case(
        404, -32601, "There is no method 'nonsense'", modern("nonsense"), asked("nonsense"), id=1,
    ),
    "no session": Case(400, -32600, "begin with initialize and send the Mcp-Session-Id", older()),
    "an unknown session": Case(404, -32600, "Session not found: 'x'; it has ended", older(**{"mcp-session-id": "x"})),
    "news without a session": Case(400, -32600, "names no session", {"accept": "text/event-stream"}, b"", "GET"),
    "an end without a session": Case(400, -32600, "names no session", {}, b"", "DELETE"),
    "news in the newer revision": Case(405, -32600, "news by subscriptions/listen", modern(), b"", "GET"),
    "an end in the newer revision": Case(405, -32600, "has POST alone", modern(), b"", "DELETE"),
    "another method of HTTP": Case(405, -32600, "send POST, GET for news", older(), b"", "PUT"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_what_is_wrong_is_answered_with_what_is_right(server: Served, case: Case) -> None:
    headers = case.headers | bearer(await server.token("ida", "operate"))
    async with server.web() as web:
        answer = await web.request(case.method, "/mcp", content=case.body, headers=headers)
    found = answer.json()
    assert (answer.status_code, found["jsonrpc"], found["id"], found["error"]["code"]) == (
        case.status, "2.0", case.id, case.code,
    )  # fmt: skip
    assert case.says in found["error"]["message"]
    assert answer.headers["content-type"] == "application/json"


async def test_the_revisions_that_are_spoken_are_told_to_whoever_speaks_another(server: Served) -> None:
    headers = modern() | ANCIENT | bearer(await server.token("ida", "operate"))
    async with server.web() as web:
        error = (await web.post("/mcp", content=LIST, headers=headers)).json()["error"]
    assert error["data"] == {"supported": ["2026-07-28"], "requested": "1999-01-01"}


async def test_what_is_right_gets_through_the_edge_as_it_is(server: Served) -> None:
    async with server.web(**bearer(await server.token("ida", "operate"))) as web:
        answer = await web.post("/mcp", content=LIST, headers=modern())
        assert (answer.status_code, len(answer.json()["result"]["tools"])) == (200, 8)
        deep = await web.post("/mcp", headers=modern("tools/call", **{"mcp-name": "sop_start"}), content=asked(
            "tools/call", name="sop_start", arguments={"name": "plain", "inputs": json.loads("[" * 300 + "]" * 300)}
        ))  # fmt: skip
        assert deep.json()["result"]["isError"], "what the SDK reads is judged by the tool"


TOKENS: dict[str, tuple[Callable[[str], dict[str, str]], str]] = {
    "none": (lambda _: {}, "Send a token: Authorization: Bearer TOKEN"),
    "of another kind": (lambda _: {"authorization": "Basic aWRhOnB3"}, "unknown, expired, revoked"),
    "unknown": (lambda _: bearer("procedo_made-up"), "unknown, expired, revoked"),
    "foreign": (lambda _: bearer("x.y.z"), "unknown, expired, revoked"),
    "revoked": (bearer, "unknown, expired, revoked"),
}


@pytest.mark.parametrize(("headers", "says"), TOKENS.values(), ids=TOKENS)
async def test_a_token_that_is_missing_or_not_good_is_told_apart(
    server: Served, headers: Callable[[str], dict[str, str]], says: str
) -> None:
    secret = await server.token("ida", "operate")
    (token,) = [one for one in await server.app.tokens.list() if one.subject == "ida"]
    await server.app.tokens.revoke(token.id)
    async with server.web() as web:
        answer = await web.post("/mcp", content=LIST, headers=modern() | headers(secret))
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_token")
    assert says in answer.json()["error_description"]
    assert says in answer.headers["www-authenticate"]


async def test_a_session_is_not_found_on_another_server_or_with_another_token(server: Served, tmp_path: Path) -> None:
    ida, noor = await server.token("ida", "operate"), await server.token("noor", "operate")
    async with server.web() as web:
        first = await web.post("/mcp", json=HELLO, headers={"accept": BOTH} | bearer(ida))
        session = {"mcp-session-id": first.headers["mcp-session-id"]}
        mine = await web.post("/mcp", content=LIST, headers=older(**session) | bearer(ida))
        other = await web.post("/mcp", content=LIST, headers=older(**session) | bearer(noor))
    assert mine.status_code == 200
    assert (other.status_code, "is another caller's" in other.json()["error"]["message"]) == (404, True)
    (tmp_path / "again").mkdir()
    async with served(tmp_path / "again") as restarted, restarted.web() as web:
        headers = older(**session) | bearer(await restarted.token("ida", "operate"))
        gone = await web.post("/mcp", content=LIST, headers=headers)
    assert gone.status_code == 404
    assert "Begin anew with initialize: no run is lost, sop_status lists them." in gone.json()["error"]["message"]


OLDER_ONLY = {"server/discover": -32601, "subscriptions/listen": -32601, "nonsense": -32601}


@pytest.mark.parametrize(("method", "code"), OLDER_ONLY.items(), ids=OLDER_ONLY)
async def test_a_newer_method_in_an_older_session_is_no_method(server: Served, method: str, code: int) -> None:
    async with server.web(**bearer(await server.token("ida", "operate"))) as web:
        first = await web.post("/mcp", json=HELLO, headers={"accept": BOTH})
        headers = older(**{"mcp-session-id": first.headers["mcp-session-id"]})
        answer = await web.post(
            "/mcp", headers=headers, json={"jsonrpc": "2.0", "id": 2, "method": method, "params": {}}
        )
    error = json.loads(answer.text.partition("data: ")[2])["error"]
    assert (answer.status_code, error["code"], error["data"]) == (200, code, method)
