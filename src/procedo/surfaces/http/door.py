"""The door of HTTP callers: each reaches their own runs, with the roles of their token, and acts as its subject.

Whoever calls a tool is a model, also when a person's token lets it in. The person is who answers a question
that the client puts to its user; that counts only with a token of a person who may decide at gates.
"""

import asyncio
from typing import Final, Protocol

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.mcpserver import Context
from msgspec import Struct
from starlette.requests import Request

from procedo.access.permitted import Permitted
from procedo.access.reached import reached
from procedo.config.settings import Settings
from procedo.core.access import Access, Role
from procedo.core.altered import altered
from procedo.core.principal import Principal, PrincipalKind, Source
from procedo.errors import Refused
from procedo.inbox_address import InboxAddress
from procedo.runs import Runs, Surface
from procedo.sopfile.library import Library
from procedo.surfaces.http.verifier import Admitted
from procedo.surfaces.mcp.callers import Engine, can_ask

__all__ = ["ANONYMOUS", "BoundApp", "HttpDoor"]

ANONYMOUS: Final = Access(Principal(Source.HTTP, "", PrincipalKind.AGENT), frozenset({Role.VIEW, Role.OPERATE}))
"""Whoever calls a server on this machine that has no tokens. Nobody is known, so nothing can be decided."""


class BoundApp(Protocol):
    """An application that binds runs to callers."""

    @property
    def settings(self) -> Settings:
        """The workspace's settings."""

    @property
    def library(self) -> Library:
        """The procedures."""

    @property
    def inbox(self) -> InboxAddress:
        """Where people find the inbox page."""

    @property
    def stopping(self) -> asyncio.Event:
        """Set once the process is to end."""

    def runs_of(self, caller: Principal, /) -> Runs:
        """The verbs for one caller."""


class Seen(Struct, frozen=True):
    """The application as one caller may use it."""

    settings: Settings
    library: Library
    runs: Runs
    inbox: InboxAddress
    stopping: asyncio.Event


class HttpDoor(Struct, frozen=True):
    """See `procedo.surfaces.mcp.callers.Door`. `anonymous` lets in whoever has no token; `route` is told to people."""

    app: BoundApp
    anonymous: bool
    route: str

    def engine(self, ctx: Context) -> Engine:
        """The caller's own runs, behind their roles."""
        access = self._access(ctx)
        access.require(Role.VIEW)
        runs = self.app.runs_of(_model(access))
        library = reached(self.app.library, access.reach)
        return Seen(self.app.settings, library, Permitted(runs, access), self.app.inbox, self.app.stopping)

    def surface(self, ctx: Context) -> Surface:
        """The model that uses the token."""
        access = self._access(ctx)
        person = access.principal.kind is PrincipalKind.HUMAN and access.may(Role.APPROVE)
        return Surface(_model(access), can_ask=person and can_ask(ctx.client_capabilities), route=self.route)

    def operates(self, ctx: Context) -> bool:
        """See `Door.operates`. With the role operate."""
        return self._access(ctx).may(Role.OPERATE)

    def reads_transcripts(self, ctx: Context) -> bool:
        """See `Door.reads_transcripts`. With the token of a person who has the role operate."""
        access = self._access(ctx)
        return access.principal.kind is PrincipalKind.HUMAN and access.may(Role.OPERATE)

    def _access(self, ctx: Context) -> Access:
        request = ctx.request_context.request
        user = request.scope.get("user") if isinstance(request, Request) else None
        token = user.access_token if isinstance(user, AuthenticatedUser) else None
        if isinstance(token, Admitted):
            return token.access
        if self.anonymous and token is None:
            return ANONYMOUS
        raise Refused("not_permitted", "This call carries no token.", "Send it with an Authorization header.")


def _model(access: Access) -> Principal:
    return altered(access.principal, kind=PrincipalKind.AGENT)
