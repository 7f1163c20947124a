"""The edge of the HTTP server: names, origins, sizes, tokens, and the shapes of its refusals."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from http_server import Served, bearer, served
from mcp_host import FixedClock, workspace

from procedo.config.serving import ServingSettings
from procedo.errors import BadArgument, Refused
from procedo.surfaces.http.addresses import Addresses, is_loopback, listen

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "desk", "version": "1"},
    },
}
MCP = {"accept": "application/json, text/event-stream"}


@pytest.fixture
async def server(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Served]:
    async with served(tmp_path) as running:
        yield running


@pytest.mark.anyio
async def test_a_good_token_at_the_right_name_is_served(server: Served) -> None:
    async with server.web(**MCP, **bearer(await server.token("ida", "view"))) as web:
        for origin in (None, server.origin):
            headers = {} if origin is None else {"origin": origin}
            assert (await web.post("/mcp", json=INITIALIZE, headers=headers)).status_code == 200


@pytest.mark.anyio
@pytest.mark.parametrize("secret", [None, "x", "procedo_wrong", "eyJhbGciOiJub25lIn0.e30.", "Basic"])
@pytest.mark.requirement("http-edge")
async def test_no_or_a_wrong_token_is_401_with_a_challenge(server: Served, secret: str | None) -> None:
    async with server.web(**MCP, **bearer(secret)) as web:
        answer = await web.post("/mcp", json=INITIALIZE)
    assert answer.status_code == 401
    assert answer.json()["error"] == "invalid_token"
    assert answer.headers["www-authenticate"].startswith('Bearer error="invalid_token"')


@pytest.mark.anyio
@pytest.mark.requirement("http-edge")
async def test_a_foreign_name_or_origin_or_too_much_is_refused(server: Served) -> None:
    async with server.web(**MCP, **bearer(await server.token("ida", "view"))) as web:
        assert (await web.post("/mcp", json=INITIALIZE, headers={"host": "evil.example"})).status_code == 421
        assert (await web.post("/mcp", json=INITIALIZE, headers={"origin": "https://evil.example"})).status_code == 403
        assert (await web.post("/mcp", content=b"x" * (4 * 1024 * 1024 + 1))).status_code == 413
        assert (await web.post("/mcp", json=INITIALIZE, headers={"mcp-session-id": "nope"})).status_code == 404


@pytest.mark.anyio
async def test_a_session_of_another_token_does_not_exist(server: Served) -> None:
    ida, noor = bearer(await server.token("ida", "view")), bearer(await server.token("noor", "view"))
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    async with server.web(**MCP) as web:
        session = (await web.post("/mcp", json=INITIALIZE, headers=ida)).headers["mcp-session-id"]
        head = {"mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}
        assert (await web.post("/mcp", json=listing, headers={**noor, **head})).status_code == 404
        assert (await web.post("/mcp", json=listing, headers={**ida, **head})).status_code == 200


@pytest.mark.anyio
async def test_health_needs_no_token_and_tells_nothing(server: Served) -> None:
    async with server.web(host="10.0.0.7:80") as web:
        for path in ("/health", "/ready"):
            answer = await web.get(path)
            assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
            assert (await web.post(path)).status_code == 405


@pytest.mark.anyio
async def test_ready_says_when_the_store_is_gone(tmp_path: Path) -> None:
    async with served(tmp_path, clock=FixedClock()) as server, server.web() as web:
        await server.app.store.close()
        answer = await web.get("/ready")
        assert (answer.status_code, answer.json()) == (503, {"status": "unavailable", "reason": "store_closed"})
        assert (await web.get("/health")).status_code == 200


@pytest.mark.anyio
async def test_the_front_leads_people_to_the_inbox(server: Served) -> None:
    async with server.web() as web:
        answer = await web.get("/")
    assert (answer.status_code, answer.headers["location"]) == (303, "/inbox")


@pytest.mark.anyio
async def test_events_tell_each_version_once_and_end_with_the_login(server: Served) -> None:
    from web_page import HOST

    async with server.web(origin=server.origin) as web:
        await web.post("/inbox/login", data={"credential": server.codes[0]})
        async with web.stream("GET", "/inbox/events") as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            lines = stream.aiter_lines()
            assert await anext(lines) == "event: version"
            first = await anext(lines)
            await server.app.runs.start("kiln-firing", None, HOST)
            second = await next_data(lines)
            assert second != first
            await server.app.store.write(lambda writer: writer.drop_login(only_login(web.cookies)))
            assert await next_data(lines) == "data: logged out"


async def next_data(lines: AsyncIterator[str]) -> str:
    async for line in lines:
        if line.startswith("data: "):
            return line
    raise AssertionError("the stream ended")


def only_login(cookies: object) -> str:
    from procedo.access.tokens import secret_digest

    ((_, secret),) = dict(cookies).items()  # type: ignore[call-overload]  # a mapping of one cookie
    return secret_digest(secret)


LOOPBACK = {"127.0.0.1": True, "127.8.8.8": True, "::1": True, "localhost": True, "0.0.0.0": False, "10.1.2.3": False}  # noqa: S104  # judged, not bound


@pytest.mark.parametrize("host", LOOPBACK)
def test_only_addresses_of_this_machine_are_loopback(host: str) -> None:
    assert is_loopback(host) is LOOPBACK[host]


@pytest.mark.parametrize("name", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", ""])
def test_a_name_that_has_to_be_looked_up_is_not(name: str) -> None:
    assert not is_loopback(name)


@pytest.mark.anyio
@pytest.mark.requirement("http-edge")
async def test_another_address_is_refused_without_tokens_and_taken_with_them(tmp_path: Path) -> None:

    from procedo.app import open_app
    from procedo.surfaces.http.serving import build
    from procedo.surfaces.web.code import TerminalCode

    async with open_app(workspace(tmp_path), worker=False) as app:
        addresses = Addresses.of("10.0.0.5", 8321, ServingSettings())
        code = TerminalCode(app.clock.now, lambda *_: None)
        with pytest.raises(Refused) as refusal:
            await build(app, addresses, "10.0.0.5", code, "ida")
        assert (refusal.value.code, "token create" in refusal.value.hint) == ("unprotected", True)
        await Served(app, "").token("ida", "view")
        await build(app, addresses, "10.0.0.5", code, "ida")


def test_every_interface_needs_a_public_name() -> None:
    with pytest.raises(Refused, match="names that it does not know"):
        Addresses.of("0.0.0.0", 80, ServingSettings())  # noqa: S104  # refused, not bound
    addresses = Addresses.of("0.0.0.0", 80, ServingSettings(public_url="https://ops.example"))  # noqa: S104  # not bound
    assert addresses.origins == ("https://ops.example",)
    assert addresses.security.allowed_hosts == ["ops.example"]


def test_a_public_name_comes_beside_the_loopback_names() -> None:
    settings = ServingSettings(public_url="https://ops.example", allowed_origins=("https://chat.example",))
    addresses = Addresses.of("127.0.0.1", 8321, settings)
    own = ("http://127.0.0.1:8321", "http://localhost:8321", "http://[::1]:8321")
    assert addresses == Addresses(
        "https://ops.example",
        ("https://ops.example", *own),
        ("https://ops.example", *own, "https://chat.example"),
    )
    assert addresses.security.enable_dns_rebinding_protection


def test_a_port_that_is_taken_is_told() -> None:
    first = listen("127.0.0.1", 0)
    try:
        with pytest.raises(BadArgument, match="Nothing can listen"):
            listen("127.0.0.1", first.getsockname()[1])
    finally:
        first.close()
