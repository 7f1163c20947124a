"""The edge of the MCP endpoint: what is refused there says what would be right.

Status and error code stay those of the SDK, whose checks these are. Only what a client reads is put in words, and
always as a JSON-RPC error, or as OAuth has it where a token is the matter.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from mcp.types import INVALID_REQUEST
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from msgspec import Struct
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["MOST_BYTES", "Edge"]

MOST_BYTES: Final = 4 * 1024 * 1024
"""The largest body that is taken."""
_UNSUPPORTED: Final = -32022
_OLDER_METHODS: Final = frozenset(
    {"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
)
_NEWEST: Final = MODERN_PROTOCOL_VERSIONS[-1]
_OLDEST_WAY: Final = f"begin with initialize and send the Mcp-Session-Id of its answer, or speak revision {_NEWEST}"


class _Call(Struct, frozen=True):
    """A request as far as its refusal needs it."""

    method: str
    headers: Headers

    def sent(self, name: str) -> str:
        value = self.headers.get(name)
        return f"no {name}" if value is None else f"{name} {value[:100]!r}"

    @property
    def modern(self) -> bool:
        revision = self.headers.get("mcp-protocol-version")
        return revision is not None and revision not in HANDSHAKE_PROTOCOL_VERSIONS


def _host(call: _Call, origins: tuple[str, ...]) -> str:
    return (
        f"There is {call.sent('Host')}: this server is called as {', '.join(origins)} ([http] public_url adds a name)."
    )


def _origin(call: _Call, _: tuple[str, ...]) -> str:
    return f"There is {call.sent('Origin')}: scripts of pages call this only where [http] allowed_origins names them."


def _type(call: _Call, _: tuple[str, ...]) -> str:
    return f"There is {call.sent('Content-Type')}: send application/json."


def _accept(call: _Call, _: tuple[str, ...]) -> str:
    both = "text/event-stream" if call.method == "GET" else "application/json, text/event-stream"
    return f"There is {call.sent('Accept')}: send Accept: {both}."


def _method(call: _Call, _: tuple[str, ...]) -> str:
    if call.modern:
        return f"{call.method} is not taken: revision {_NEWEST} has POST alone, and news by subscriptions/listen."
    return f"{call.method} is not taken: send POST, GET for news of a session, or DELETE to end one."


def _size(_: _Call, __: tuple[str, ...]) -> str:
    return f"The body has more than {MOST_BYTES} bytes, and nothing was done. Send less."


_BY_STATUS: Final[Mapping[int, Callable[[_Call, tuple[str, ...]], str]]] = {
    400: _type, 403: _origin, 405: _method, 406: _accept, 413: _size, 421: _host,
}  # fmt: skip
_SINGLE: Final = "The body has to be one JSON-RPC request or notification; batches are not taken: send one by one."


def _session(call: _Call, error: Mapping[str, Any]) -> str | None:
    if error["message"] == "Bad Request: Missing session ID":
        return f"This call names no session: {_OLDEST_WAY}, which needs none."
    if error["message"] in ("Session not found", "Not Found: Session has been terminated"):
        named = call.headers.get("mcp-session-id", "")[:64]
        why = "it has ended, is another caller's, or this server never had it (restarted, or another one answered)"
        return (
            f"Session not found: {named!r}; {why}. Begin anew with initialize: no run is lost, sop_status lists them."
        )
    return None


def _worded(call: _Call, error: Mapping[str, Any]) -> str | None:
    """What an error of the SDK says here; None where its own words do."""
    message, code = str(error["message"]), error["code"]
    if (found := _session(call, error)) is not None:
        return found
    if code == -32700:
        return f"{message}: the body is no JSON that can be read. Send one JSON-RPC request in UTF-8."
    if message.startswith(("Body must be a single", "Validation error: ")):
        return _SINGLE
    if code == -32601 and error.get("data") in _OLDER_METHODS:
        return f"{error['data']} belongs to older revisions; {_NEWEST} has server/discover and subscriptions/listen."
    if code == -32601:
        return f"There is no method {error.get('data')!r} here."
    return None


class Edge:
    """Puts refusals of the endpoint behind it in words. `origins` are the names under which it is called."""

    def __init__(self, app: ASGIApp, origins: tuple[str, ...]) -> None:
        self._app = app
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the lifespan."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        call = _Call(scope["method"], Headers(scope=scope))
        held: Message | None = None
        body = bytearray()

        async def sent(message: Message) -> None:
            nonlocal held
            if message["type"] == "http.response.start" and message["status"] >= 400:
                held = message
            elif held is None:
                await send(message)
            else:
                body.extend(message.get("body", b""))
                if not message.get("more_body", False):
                    text = self._better(call, held, bytes(body))
                    MutableHeaders(scope=held)["content-length"] = str(len(text))
                    await send(held)
                    await send({"type": "http.response.body", "body": text})

        await self._app(scope, receive, sent)

    def _better(self, call: _Call, start: Message, body: bytes) -> bytes:
        """The body of a refusal; its headers are changed in place."""
        headers = MutableHeaders(scope=start)
        if "www-authenticate" in headers:
            return _about_token(call, headers, body)
        answer = _rpc(body)
        if answer is None:
            worded = _BY_STATUS.get(start["status"])
            if worded is None:
                return body
            answer = {
                "jsonrpc": "2.0",
                "id": None,
                "error": {"code": INVALID_REQUEST, "message": worded(call, self._origins)},
            }
        elif (unsupported := _unsupported(call)) is not None:
            answer["error"] = unsupported
        elif start["status"] in (405, 406):
            answer["error"]["message"] = _BY_STATUS[start["status"]](call, self._origins)
        elif (text := _worded(call, answer["error"])) is not None:
            answer["error"]["message"] = text
        headers["content-type"] = "application/json"
        return json.dumps(answer, separators=(",", ":")).encode()


def _unsupported(call: _Call) -> dict[str, Any] | None:
    revision = call.headers.get("mcp-protocol-version")
    known = (*MODERN_PROTOCOL_VERSIONS, *HANDSHAKE_PROTOCOL_VERSIONS)
    if revision is None or revision in known:
        return None
    message = f"Unsupported protocol version {revision[:40]!r}: this server speaks {', '.join(sorted(known))}."
    data = {"supported": list(MODERN_PROTOCOL_VERSIONS), "requested": revision}
    return {"code": _UNSUPPORTED, "message": message, "data": data}


def _rpc(body: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(body)
    except ValueError:
        return None
    error = found.get("error") if isinstance(found, dict) else None
    return found if isinstance(error, dict) and {"code", "message"} <= set(error) else None


def _about_token(call: _Call, headers: MutableHeaders, body: bytes) -> bytes:
    """The SDK says the same of a token that is missing and of one that is not good."""
    old = "Authentication required"
    if old.encode() not in body:
        return body
    new = _NOT_LIVE if "authorization" in call.headers else _NO_TOKEN
    headers["www-authenticate"] = headers["www-authenticate"].replace(old, new)
    return body.replace(old.encode(), new.encode())


_NO_TOKEN: Final = "Send a token: Authorization: Bearer TOKEN"  # noqa: S105  # the word stands for one
_NOT_LIVE: Final = "The token is unknown, expired, revoked or not for this server. Ask for a new one."
