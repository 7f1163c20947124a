"""`/metrics`: the numbers of this server in the text format of Prometheus.

They are about everybody's runs, in sums: names of procedures, agents, policies and routes are in them, runs and
people are not. Who reads them has the role view and no limit, once there are tokens.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, BearerAuthBackend
from pydantic import AnyHttpUrl
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from procedo.access.tokens import Tokens
from procedo.core.access import Role
from procedo.core.reach import BOUNDLESS
from procedo.errors import Refused, StoreError
from procedo.surfaces.http.addresses import is_loopback
from procedo.surfaces.http.verifier import Admitted, Verifier
from procedo.telemetry.meters import CONTENT_TYPE

__all__ = ["METRICS_PATH", "MetricsPage", "check_open"]

METRICS_PATH: Final = "/metrics"
_JSON: Final = {"cache-control": "no-store"}


def check_open(open_metrics: bool, host: str) -> None:
    """Raises `Refused` when the numbers would be open to a network."""
    if open_metrics and not is_loopback(host):
        message = f"[http] open_metrics is on, and {host} can be reached from other machines."
        raise Refused("open_metrics", message, "Give the scraper a token with the role view, or listen at 127.0.0.1.")


class MetricsPage:
    """Serves the page. `verifier` None: nobody had a token when the server began.

    `hosts` are the names under which it answers. With `open_local` a request under a name of this machine needs no
    token; one that came through a proxy carries another name.
    """

    def __init__(
        self,
        page: Callable[[], Awaitable[str]],
        tokens: Tokens,
        verifier: Verifier | None,
        hosts: frozenset[str],
        *,
        open_local: bool = False,
        resource: str | None = None,
        scopes: tuple[str, ...] = (),
    ) -> None:
        self._page = page
        self._tokens = tokens
        self._verifier = verifier
        self._hosts = hosts
        self._open_local = open_local
        self._resource = None if resource is None else AnyHttpUrl(resource)
        self._scopes = scopes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        response = await self._answer(scope)
        await response(scope, receive, send)

    async def _answer(self, scope: Scope) -> Response:
        if scope["method"] not in ("GET", "HEAD"):
            return Response(status_code=405, headers={"allow": "GET, HEAD"})
        host = Headers(scope=scope).get("host", "")
        if host not in self._hosts:
            return JSONResponse({"error": "wrong_host"}, 421, _JSON)
        objection = None if self._open_local and is_loopback(_name(host)) else await self._objection(scope)
        if objection is not None:
            return objection
        try:
            text = await self._page()
        except StoreError as error:
            return JSONResponse({"error": "unavailable", "error_description": error.code}, 503, _JSON)
        return PlainTextResponse(text, headers={**_JSON, "content-type": CONTENT_TYPE})

    async def _objection(self, scope: Scope) -> Response | None:
        """Why the caller may not see it, or None."""
        if self._verifier is None:
            return _refusal(401, "invalid_token", "It takes tokens after a restart.") if await self._any() else None
        found = await BearerAuthBackend(self._verifier, resource_server_url=self._resource).authenticate(
            HTTPConnection(scope)
        )
        if found is None:
            return _refusal(401, "invalid_token", "A token with the role view is needed.")
        _, user = found
        admitted = user.access_token if isinstance(user, AuthenticatedUser) else None
        if not isinstance(admitted, Admitted) or not set(self._scopes) <= set(admitted.scopes):
            return _refusal(403, "insufficient_scope", "The token lacks a scope.")
        if not admitted.access.may(Role.VIEW) or admitted.access.reach != BOUNDLESS:
            return _refusal(403, "not_permitted", "The numbers are for tokens with the role view and without limits.")
        return None

    async def _any(self) -> bool:
        return await self._tokens.any()


def _name(host: str) -> str:
    """The host without its port."""
    return host if host.endswith("]") else host.rpartition(":")[0] or host


def _refusal(status: int, code: str, text: str) -> Response:
    headers = {"www-authenticate": f'Bearer error="{code}", error_description="{text}"', **_JSON}
    return JSONResponse({"error": code, "error_description": text}, status, headers)
