import asyncio
import gzip
import socket
from collections.abc import Awaitable, Callable

import anyio
import pytest
from webhost import WebHost

from procedo.capabilities.registry import Registry
from procedo.core.model import Json
from procedo.errors import BadArgument, Refused
from procedo.ports import OutcomeUnknown

Perform = Callable[[Registry, str, Json], Awaitable[Json]]
pytestmark = pytest.mark.anyio


Build = Callable[..., Registry]


@pytest.fixture
def registry(web: WebHost, web_registry: Build) -> Registry:
    return web_registry(f"127.0.0.1:{web.port}")


async def test_json_comes_back_as_json_with_a_few_headers(web: WebHost, registry: Registry, perform: Perform) -> None:
    web.answers("/a", 200, b'{"id": 4}', Content_Type="application/json; charset=utf-8", ETag='"7"', X_Internal="x")

    result = await perform(registry, "http.request", {"url": web.url("/a?q=1")})

    assert result == {
        "status": 200,
        "headers": {"content-type": "application/json; charset=utf-8", "etag": '"7"'},
        "json": {"id": 4},
    }
    assert [(seen.method, seen.path) for seen in web.seen] == [("GET", "/a?q=1")]


@pytest.mark.parametrize(
    ("body", "kind", "expected"),
    [
        (b"plain", "text/plain", "plain"),
        ("grün".encode("latin-1"), "text/plain; charset=latin-1", "grün"),
        (b"\xff\xfe", "application/octet-stream", "\ufffd\ufffd"),
        (b"text", "text/plain; charset=no-such", "text"),
        (b"", "text/plain", ""),
        (b"{not json", "application/json", "{not json"),
        (b"[NaN]", "application/json", "[NaN]"),
        (b'"\\ud800"', "application/json", '"\\ud800"'),
    ],
)
async def test_whatever_is_no_json_comes_back_as_text(
    web: WebHost, registry: Registry, perform: Perform, body: bytes, kind: str, expected: str
) -> None:
    web.answers("/a", 200, body, Content_Type=kind)

    result = await perform(registry, "http.request", {"url": web.url("/a")})

    assert result == {"status": 200, "headers": {"content-type": kind}, "body": expected}


async def test_a_request_carries_its_body_its_headers_and_a_key_by_which_a_repeat_is_known(
    web: WebHost, registry: Registry, perform: Perform
) -> None:
    web.answers("/a", 201)
    arguments = {"method": "POST", "url": web.url("/a"), "json": {"ü": [1]}, "headers": {"X-Token": "t"}}

    await perform(registry, "http.request", arguments)
    await perform(registry, "http.request", {"method": "PUT", "url": web.url("/a"), "body": "text"})
    await perform(registry, "http.request", {"url": web.url("/a")})

    posted, put, got = web.seen
    assert (posted.method, posted.body, posted.headers["content-type"]) == ("POST", '{"ü": [1]}', "application/json")
    assert (posted.headers["idempotency-key"], posted.headers["x-token"]) == ("run-1:2.1", "t")
    assert (put.method, put.body, put.headers["content-type"]) == ("PUT", "text", "text/plain; charset=utf-8")
    assert put.headers["idempotency-key"] == "run-1:2.1"
    assert "idempotency-key" not in got.headers


async def test_head_brings_no_body(web: WebHost, web_registry: Build, perform: Perform) -> None:
    web.answers("/a", 200, b"x" * 100)

    small = web_registry(f"127.0.0.1:{web.port}", max_bytes=10)

    result = await perform(small, "http.request", {"method": "HEAD", "url": web.url("/a")})
    assert result == {"status": 200, "headers": {}, "body": ""}


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://localhost:{port}/a", "http://localhost:{port}/a is not allowed"),
        ("http://127.0.0.1:1/a", "is not allowed"),
        ("https://127.0.0.1.evil.example/a", "is not allowed"),
        ("http://2130706433:{port}/a", "is not allowed"),
        ("http://[::ffff:127.0.0.1]:{port}/a", "is not allowed"),
        ("http://10.0.0.1/a", "is not allowed"),
        ("http://127.0.0.1:{port}@evil.example/a", "without a user name"),
        ("http://user:secret@127.0.0.1:{port}/a", "without a user name"),
        ("file:///etc/passwd", "has to begin with https://"),
        ("/a", "has to begin with https://"),
        ("http://127.0.0.1:{port}\n/a", "cannot be read"),
    ],
)
async def test_only_listed_hosts_are_called(
    web: WebHost, registry: Registry, perform: Perform, url: str, told: str
) -> None:
    web.answers("/a", 200)

    with pytest.raises(Refused) as caught:
        await perform(registry, "http.request", {"url": url.format(port=web.port)})
    assert told.format(port=web.port) in str(caught.value)
    assert "secret" not in str(caught.value)
    assert web.seen == []

    assert (await perform(registry, "http.request", {"url": web.url("/a")}))["status"] == 200


async def test_plain_http_to_another_machine_has_to_be_listed_with_its_scheme(
    web_registry: Build, perform: Perform
) -> None:
    with pytest.raises(Refused, match=r'Use https, or list "http://host\.invalid"'):
        await perform(web_registry("host.invalid"), "http.request", {"url": "http://host.invalid/a"})

    with pytest.raises(Refused) as caught:
        await perform(web_registry("http://host.invalid"), "http.request", {"url": "http://host.invalid/a"})
    assert caught.value.code == "http_connection"


async def test_proxies_of_the_environment_are_not_used(
    web: WebHost, registry: Registry, perform: Perform, monkeypatch: pytest.MonkeyPatch
) -> None:
    web.answers("/a", 200)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)

    assert (await perform(registry, "http.request", {"url": web.url("/a")}))["status"] == 200


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({"Host": "evil.example"}, "'Host' is set by procedo"),
        ({"content-LENGTH": "0"}, "'content-LENGTH' is set by procedo"),
        ({"Idempotency-Key": "mine"}, "'Idempotency-Key' is set by procedo"),
        ({"X-A": "a\r\nX-B: b"}, "'X-A' has characters"),
        ({"X-A": "a\n"}, "'X-A' has characters"),
        ({"X A": "a"}, "'X A' has characters"),
    ],
)
async def test_headers_that_would_change_the_message_are_refused(
    web: WebHost, registry: Registry, perform: Perform, headers: Json, told: str
) -> None:
    with pytest.raises(BadArgument, match=told):
        await perform(registry, "http.request", {"url": web.url("/a"), "headers": headers})

    assert web.seen == []


@pytest.mark.parametrize(
    "arguments",
    [{"method": "TRACE"}, {"json": 1, "body": "x"}, {"method": "GET", "json": 1}, {"accept_status": [200]}, {"url": 5}],
)
async def test_arguments_that_cannot_be_sent_are_refused(
    web: WebHost, registry: Registry, perform: Perform, arguments: Json
) -> None:
    with pytest.raises(BadArgument):
        await perform(registry, "http.request", {"url": web.url("/a"), **arguments})

    assert web.seen == []


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_an_error_status_is_a_failed_attempt_with_the_short_body(
    web: WebHost, registry: Registry, perform: Perform, method: str
) -> None:
    web.answers("/a", 422, b"the pump\n is unknown " + b"x" * 5000)

    with pytest.raises(Refused) as caught:
        await perform(registry, "http.request", {"method": method, "url": web.url("/a?token=secret")})

    assert f"{method} {web.url('/a')} answered 422 Unprocessable" in str(caught.value)
    assert "the pump is unknown xxx" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert len(str(caught.value)) < 700


async def test_an_error_status_that_is_accepted_is_a_result(web: WebHost, registry: Registry, perform: Perform) -> None:
    web.answers("/a", 404, b"none")
    arguments = {"url": web.url("/a"), "accept_status": [404]}

    assert await perform(registry, "http.request", arguments) == {"status": 404, "headers": {}, "body": "none"}
    with pytest.raises(Refused):
        await perform(registry, "http.request", arguments | {"accept_status": [410]})


@pytest.mark.parametrize("status", [502, 504])
async def test_a_gateway_that_lost_its_server_leaves_the_outcome_of_a_post_unknown(
    web: WebHost, registry: Registry, perform: Perform, status: int
) -> None:
    web.answers("/a", status)

    with pytest.raises(OutcomeUnknown, match="may have been carried out"):
        await perform(registry, "http.request", {"method": "POST", "url": web.url("/a")})
    with pytest.raises(Refused):
        await perform(registry, "http.request", {"url": web.url("/a")})


@pytest.mark.parametrize("way", ["hangs", "hangs_up"])
async def test_a_lost_answer_is_unknown_after_a_post_and_a_failure_when_a_repeat_does_no_harm(
    web: WebHost, web_registry: Build, perform: Perform, way: str
) -> None:
    getattr(web, way)("/a")
    registry = web_registry(f"127.0.0.1:{web.port}", timeout_s=6.0 if way == "hangs" else 60.0)
    post = {"method": "POST", "url": web.url("/a"), "json": {}}
    calls = (post, post | {"idempotent": True}, {"url": web.url("/a")})

    ended = await asyncio.gather(*(perform(registry, "http.request", c) for c in calls), return_exceptions=True)

    assert [type(error) for error in ended] == [OutcomeUnknown, Refused, Refused]
    assert "may have been carried out" in str(ended[0])
    assert [seen.method for seen in web.seen].count("POST") == 2


async def test_a_host_that_cannot_be_reached_got_no_request(web_registry: Build, perform: Perform) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: every connection is refused
        port = taken.getsockname()[1]
        registry = web_registry(f"127.0.0.1:{port}")

        with pytest.raises(Refused) as caught:
            await perform(registry, "http.request", {"method": "POST", "url": f"http://127.0.0.1:{port}/a"})

    assert caught.value.code == "http_connection"


async def test_a_cancelled_call_ends_at_once(web: WebHost, registry: Registry, perform: Perform) -> None:
    web.hangs("/a")
    arguments = {"method": "POST", "url": web.url("/a")}
    task = asyncio.ensure_future(perform(registry, "http.request", arguments))
    async with asyncio.timeout(240):
        await asyncio.to_thread(web.reached.wait, 240)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


@pytest.mark.parametrize("path", ["/declared", "/undeclared"])
async def test_a_body_over_the_limit_is_refused_whole(
    web: WebHost, registry: Registry, perform: Perform, path: str
) -> None:
    web.answers("/declared", 200, b"x" * 5000)
    web.pours("/undeclared", 3_000_000)
    web.answers("/fits", 200, b"x" * 4096)

    with pytest.raises(Refused, match="max_bytes"):
        await perform(registry, "http.request", {"url": web.url(path)})
    with pytest.raises(OutcomeUnknown, match="more than the 4096"):
        await perform(registry, "http.request", {"method": "POST", "url": web.url(path)})
    assert (await perform(registry, "http.request", {"url": web.url("/fits")}))["body"] == "x" * 4096


async def test_a_packed_body_is_never_unpacked(web: WebHost, registry: Registry, perform: Perform) -> None:
    web.answers("/a", 200, gzip.compress(b"0" * 50_000_000), Content_Encoding="gzip")

    with pytest.raises(Refused, match="packed as 'gzip'"):
        await perform(registry, "http.request", {"url": web.url("/a")})

    assert web.seen[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("status", "method", "followed_by"),
    [
        (301, "GET", "GET"), (302, "GET", "GET"), (307, "GET", "GET"), (308, "HEAD", "HEAD"),
        (303, "POST", "GET"), (302, "POST", "GET"), (307, "POST", "POST"), (308, "PUT", "PUT"),
    ],
)  # fmt: skip
async def test_a_redirect_inside_the_allowlist_is_followed(
    web: WebHost, registry: Registry, perform: Perform, status: int, method: str, followed_by: str
) -> None:
    web.redirects("/old", status, "/new")
    web.answers("/new", 200)
    body = {} if method in {"GET", "HEAD"} else {"json": {"a": 1}}

    result = await perform(registry, "http.request", {"method": method, "url": web.url("/old"), **body})

    assert result["status"] == 200
    assert [(seen.method, seen.path) for seen in web.seen] == [(method, "/old"), (followed_by, "/new")]
    kept = followed_by not in {"GET", "HEAD"}
    assert web.seen[1].body == ('{"a": 1}' if kept else "")
    assert web.seen[1].headers.get("idempotency-key") == ("run-1:2.1" if kept else None)


async def test_a_redirect_out_of_the_allowlist_is_not_followed(
    web: WebHost, registry: Registry, perform: Perform
) -> None:
    web.redirects("/out", 302, web.url("/a", host="localhost"))
    web.redirects("/file", 302, "file:///etc/passwd")
    web.redirects("/moved", 307, web.url("/a", host="localhost"))

    for path in ("/out", "/file"):
        with pytest.raises(Refused):
            await perform(registry, "http.request", {"url": web.url(path)})
    with pytest.raises(OutcomeUnknown, match="is not allowed; the request may have been carried out"):
        await perform(registry, "http.request", {"method": "POST", "url": web.url("/out")})
    with pytest.raises(Refused, match="is not allowed"):
        await perform(registry, "http.request", {"method": "POST", "url": web.url("/moved")})

    assert [seen.path for seen in web.seen] == ["/out", "/file", "/out", "/moved"]


async def test_a_token_does_not_travel_to_another_host(web: WebHost, web_registry: Build, perform: Perform) -> None:
    registry = web_registry(f"127.0.0.1:{web.port}", f"localhost:{web.port}")
    web.redirects("/same", 302, "/a")
    web.redirects("/other", 302, web.url("/a", host="localhost"))
    web.answers("/a", 200)
    headers = {"Authorization": "Bearer t", "X-Api-Key": "k", "Accept": "text/plain"}

    for path in ("/same", "/other"):
        await perform(registry, "http.request", {"url": web.url(path), "headers": headers})

    arrived = [seen.headers for seen in web.seen if seen.path == "/a"]
    assert [(h.get("authorization"), h.get("x-api-key"), h["accept"]) for h in arrived] == [
        ("Bearer t", "k", "text/plain"),
        (None, None, "text/plain"),
    ]


async def test_redirects_come_to_an_end(web: WebHost, registry: Registry, perform: Perform) -> None:
    web.redirects("/a", 302, "/a")

    with pytest.raises(Refused, match="more than 5 redirects"):
        await perform(registry, "http.request", {"url": web.url("/a")})

    assert len(web.seen) == 6


async def test_a_redirect_that_is_accepted_is_a_result(web: WebHost, registry: Registry, perform: Perform) -> None:
    web.redirects("/a", 303, "https://elsewhere.example/b")
    arguments = {"method": "POST", "url": web.url("/a"), "accept_status": [303]}

    assert await perform(registry, "http.request", arguments) == {
        "status": 303,
        "headers": {"location": "https://elsewhere.example/b"},
        "body": "",
    }


async def test_a_scope_that_is_cancelled_cancels_the_call(web: WebHost, registry: Registry, perform: Perform) -> None:
    web.hangs("/a")
    ended: list[str] = []

    async def call() -> None:
        try:
            await perform(registry, "http.request", {"url": web.url("/a")})
        finally:
            ended.append("ended")

    with anyio.fail_after(240):
        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await asyncio.to_thread(web.reached.wait, 240)
            group.cancel_scope.cancel()

    assert ended == ["ended"]
