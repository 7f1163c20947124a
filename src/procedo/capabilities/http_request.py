"""`http.request`: one call to a web host that the workspace allows.

Redirects are followed by hand, so that each hop passes the same allowlist. A call that may have acted
and has no usable answer is `OutcomeUnknown`, unless a repeat of it does no harm.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from procedo.capabilities.http_answer import UnusableBody, answer, short_body
from procedo.capabilities.piped import PIPED
from procedo.config.capability_settings import HttpSettings
from procedo.core.model import Json
from procedo.errors import BadArgument, Refused
from procedo.hosts import is_loopback
from procedo.ports import Capability, CapabilityCall, OutcomeUnknown

if TYPE_CHECKING:
    from httpx2 import URL, AsyncClient, Request, Response

__all__ = ["MAX_REDIRECTS", "http_request"]

MAX_REDIRECTS: Final = 5
_SAFE: Final = frozenset({"GET", "HEAD"})
_METHODS: Final = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
_OURS: Final = frozenset(
    {
        "accept-encoding", "connection", "content-length", "expect", "host", "idempotency-key", "keep-alive",
        "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    }
)  # fmt: skip
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE: Final = re.compile(r"[\t\x20-\x7e]*")
_SAME_METHOD: Final = frozenset({307, 308})
_TO_GET: Final = frozenset({301, 302, 303})
# A gateway that lost its server cannot know what the server did.
_GATEWAY: Final = frozenset({502, 504})

_INPUT: Final[Json] = {
    "type": "object",
    "properties": {
        "method": {"enum": _METHODS, "description": "GET when absent."},
        "url": {"type": "string", "description": "https, or http on this machine, to an allowed host."},
        "headers": {"type": "object", "additionalProperties": {"type": "string"}},
        "json": {"description": "Sent as a JSON body."},
        "body": {"type": "string", "description": "Sent as a text body."},
        "accept_status": {
            "type": "array",
            "items": {"type": "integer", "minimum": 300, "maximum": 599},
            "description": "Status codes from 300 that are a good result too.",
        },
        "idempotent": {"type": "boolean", "description": "True when the same call twice does no harm."},
        **PIPED,
    },
    "required": ["url"],
    "not": {"required": ["json", "body"]},
    "additionalProperties": False,
}
_OUTPUT: Final[Json] = {
    "type": "object",
    "properties": {
        "status": {"type": "integer"},
        "headers": {"type": "object", "additionalProperties": {"type": "string"}},
        "body": {"type": "string"},
        "json": True,
    },
    "required": ["status", "headers"],
    "oneOf": [{"required": ["body"]}, {"required": ["json"]}],
    "additionalProperties": False,
}


def http_request(settings: HttpSettings) -> Capability:
    """The capability. `GET`, `HEAD` and whatever says `idempotent` may be repeated."""

    async def run(call: CapabilityCall) -> Json:
        return await _call(settings, call)

    return Capability(
        "http.request",
        "Calls an allowed web host and returns status, a few headers, and the body as JSON or text. A status from "
        "400 is a failed attempt unless accept_status lists it.",
        _INPUT,
        _OUTPUT,
        run,
        objection=None
        if settings.allowed_hosts
        else 'no host is allowed; list them in procedo.toml: [capabilities.http] allowed_hosts = ["api.example.com"]',
        repeats=_repeats,
    )


def _method(arguments: Json) -> str:
    method: str = arguments.get("method", "GET")
    return method


def _repeats(arguments: Json) -> bool:
    return isinstance(arguments, dict) and (_method(arguments) in _SAFE or arguments.get("idempotent") is True)


async def _call(settings: HttpSettings, call: CapabilityCall) -> Json:
    import httpx2

    exchange = _Exchange(settings, _repeats(call.arguments), tuple(call.arguments.get("accept_status", ())))
    headers = _headers(call)
    url = exchange.allowed(call.arguments["url"])
    try:
        async with (
            asyncio.timeout(settings.timeout_s),
            # No proxies or credentials out of the environment: what is reached is what the arguments say.
            httpx2.AsyncClient(trust_env=False, timeout=None) as client,
        ):
            request = client.build_request(
                _method(call.arguments), url, headers=headers, content=_content(call.arguments)
            )
            return await exchange.run(client, request)
    except TimeoutError as error:
        raise exchange.failure(
            "http_timeout", f"no complete answer from {_place(url)} within {settings.timeout_s:g} s"
        ) from error
    except httpx2.RequestError as error:
        reason = str(error) or type(error).__name__
        raise exchange.failure("http_connection", f"the connection to {_place(url)} failed: {reason}") from error


class _Exchange(Struct):
    """One call with its redirects. `acted` is True from the moment that its request may have reached the peer."""

    settings: HttpSettings
    repeatable: bool
    accepted: tuple[int, ...]
    acted: bool = False

    def failure(self, code: str, message: str, hint: str = "") -> Refused | OutcomeUnknown:
        """How the call ends: as a failed attempt when that is certain or harmless, else with an unknown outcome."""
        if self.acted and not self.repeatable:
            return OutcomeUnknown(f"http.request: {message}; the request may have been carried out.")
        return Refused(code, f"http.request: {message}.", hint)

    def allowed(self, target: "str | URL") -> "URL":
        """The address, when the workspace allows it."""
        import httpx2

        try:
            url = httpx2.URL(target)
        except httpx2.InvalidURL as error:
            raise self.failure("bad_url", f"the address cannot be read: {error}") from error
        host = url.raw_host.decode("ascii")
        if url.scheme not in {"http", "https"} or not host or url.userinfo:
            raise self.failure("bad_url", "the address has to begin with https:// and a host, without a user name")
        if any(pattern.allows(url.scheme, host, url.port) for pattern in self.settings.allowed_hosts):
            return url
        if url.scheme == "http" and not is_loopback(host):
            hint = f'Use https, or list "http://{url.netloc.decode("ascii")}" in [capabilities.http] allowed_hosts.'
        else:
            hint = f"Allowed: {', '.join(map(str, self.settings.allowed_hosts)) or 'none'}."
        raise self.failure("host_not_allowed", f"{_place(url)} is not allowed", hint)

    async def run(self, client: "AsyncClient", request: "Request") -> Json:
        """Send the request, follow its redirects, judge the answer."""
        for _ in range(MAX_REDIRECTS + 1):
            request.extensions = {**request.extensions, "trace": self._note_sending(request)}
            response = await client.send(request, stream=True, follow_redirects=False)
            try:
                following = self._following(client, request, response)
                if following is None:
                    return await self._result(response)
            finally:
                await response.aclose()
            request = following
        raise self.failure("too_many_redirects", f"more than {MAX_REDIRECTS} redirects")

    def _note_sending(self, request: "Request") -> object:
        async def trace(event: str, _info: Mapping[str, object]) -> None:
            if event.endswith("send_request_headers.started") and request.method not in _SAFE:
                self.acted = True

        return trace

    def _following(self, client: "AsyncClient", request: "Request", response: "Response") -> "Request | None":
        """The request that a redirect asks for, or None when this is the answer."""
        status, location = response.status_code, response.headers.get("location")
        if location is None or status in self.accepted or status not in _SAME_METHOD | _TO_GET:
            return None
        if status in _SAME_METHOD:
            self.acted = False  # the peer sent us on instead of acting
        url = self.allowed(request.url.join(location))
        same_origin = (url.scheme, url.raw_host, url.port) == (
            request.url.scheme,
            request.url.raw_host,
            request.url.port,
        )
        # What was meant for one host, a token say, does not travel to another.
        travelling = {"accept", "content-type", "idempotency-key", "user-agent"}
        headers = {name: value for name, value in request.headers.items() if name not in _OURS - {"idempotency-key"}}
        headers = {name: value for name, value in headers.items() if same_origin or name in travelling}
        if status in _SAME_METHOD or request.method in _SAFE:
            return client.build_request(request.method, url, headers=headers, content=request.content)
        if request.method != "POST" and status != 303:
            raise self.failure("bad_redirect", f"{_place(request.url)} answered {request.method} with status {status}")
        headers = {name: value for name, value in headers.items() if name not in {"content-type", "idempotency-key"}}
        return client.build_request("GET", url, headers=headers)

    async def _result(self, response: "Response") -> Json:
        status, method = response.status_code, response.request.method
        if status < 400 or status in self.accepted:
            try:
                return await answer(response, self.settings.max_bytes)
            except UnusableBody as error:
                hint = "Raise [capabilities.http] max_bytes, or ask for less."
                raise self.failure(
                    "http_body", f"{_place(response.url)} answered {status}, but {error}", hint
                ) from error
        if method not in _SAFE and status not in _GATEWAY:
            self.acted = False  # the peer itself says that it did not do it
        body = await short_body(response)
        told = f"{method} {_place(response.url)} answered {status} {response.reason_phrase}".rstrip()
        raise self.failure("http_status", f"{told}: {body}" if body else told)


def _place(url: "URL") -> str:
    """An address without its query, which may hold secrets."""
    return f"{url.scheme}://{url.netloc.decode('ascii')}{url.path}"


def _headers(call: CapabilityCall) -> dict[str, str]:
    authored: Mapping[str, str] = call.arguments.get("headers", {})
    for name, value in authored.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise BadArgument("bad_header", f"http.request: header {name!r} has characters that no header may have.")
        if name.lower() in _OURS:
            raise BadArgument("bad_header", f"http.request: header {name!r} is set by procedo.", "Leave it out.")
    headers = {"user-agent": "procedo", **{name.lower(): value for name, value in authored.items()}}
    headers["accept-encoding"] = "identity"
    if _method(call.arguments) not in _SAFE:
        headers["idempotency-key"] = call.effect_id
    if "json" in call.arguments:
        headers.setdefault("content-type", "application/json")
    elif "body" in call.arguments:
        headers.setdefault("content-type", "text/plain; charset=utf-8")
    return headers


def _content(arguments: Json) -> bytes | None:
    if "json" not in arguments and "body" not in arguments:
        return None
    if _method(arguments) in _SAFE:
        raise BadArgument("unexpected_body", f"http.request: {_method(arguments)} takes no body.", "Use POST or PUT.")
    if "json" in arguments:
        return json.dumps(arguments["json"], ensure_ascii=False, allow_nan=False).encode()
    text: str = arguments["body"]
    return text.encode()
