"""Who calls, and what can be done at that door. Taken from the connection, never from an argument."""

import asyncio
from typing import Final, Protocol, cast

from mcp.server.mcpserver import Context
from mcp.types import ClientCapabilities
from msgspec import Struct

from procedo.config.settings import Settings
from procedo.core.altered import altered
from procedo.core.state import Principal, PrincipalKind, Source
from procedo.inbox_address import InboxAddress
from procedo.ports import Store
from procedo.runs import Runs, Surface
from procedo.sopfile.library import Library

__all__ = [
    "ROUTE",
    "Door",
    "Engine",
    "Pipe",
    "Whole",
    "caller",
    "can_ask",
    "engine",
    "operates",
    "person",
    "reads_transcripts",
]

ROUTE: Final = "the operator's terminal or inbox"
"""Where people decide who do not sit at the host. Words only: a command would be run by the model that reads it."""

_UNNAMED: Final = "mcp"


class Engine(Protocol):
    """What the tools need of the application."""

    @property
    def settings(self) -> Settings:
        """The workspace's settings."""

    @property
    def library(self) -> Library:
        """The procedures."""

    @property
    def runs(self) -> Runs:
        """The one write path."""

    @property
    def inbox(self) -> InboxAddress:
        """Where people find the inbox page."""

    @property
    def stopping(self) -> asyncio.Event:
        """Set once the process is to end."""


class Whole(Engine, Protocol):
    """The application itself, as the server has it behind every door."""

    @property
    def store(self) -> Store:
        """The store, whose changes are told to those who want to know."""


class Door(Protocol):
    """Where calls come in: what each of them may reach there, and as whom it acts."""

    def engine(self, ctx: Context) -> Engine:
        """The application as this caller may use it."""

    def surface(self, ctx: Context) -> Surface:
        """Who calls, and what can be done there."""

    def operates(self, ctx: Context) -> bool:
        """True for those to whom work is handed out with its true values."""

    def reads_transcripts(self, ctx: Context) -> bool:
        """True for people who operate: they alone read what agents said and did in their sessions."""


class Pipe(Struct, frozen=True):
    """The door of a host that started this process: it sees everything that the account sees."""

    app: Engine

    def engine(self, ctx: Context) -> Engine:  # noqa: ARG002  # everybody at this door reaches the same
        """See `Door.engine`."""
        return self.app

    def surface(self, ctx: Context) -> Surface:
        """The model at the host, known by the client's name."""
        client = ctx.session.client_params
        name = client.client_info.name.strip() if client is not None else ""
        principal = Principal(Source.HOST, name or _UNNAMED, PrincipalKind.AGENT)
        return Surface(principal, can_ask=can_ask(ctx.client_capabilities), route=ROUTE)

    def operates(self, ctx: Context) -> bool:  # noqa: ARG002  # everybody at this door does
        """See `Door.operates`."""
        return True

    def reads_transcripts(self, ctx: Context) -> bool:  # noqa: ARG002  # at this door everybody is a model
        """See `Door.reads_transcripts`. Whoever calls here is a model, so no."""
        return False


def _door(ctx: Context) -> Door:
    return cast("Door", ctx.request_context.lifespan_context)


def engine(ctx: Context) -> Engine:
    """The application behind this call."""
    return _door(ctx).engine(ctx)


def can_ask(capabilities: ClientCapabilities | None) -> bool:
    """True when the client can put a form to its user. A bare `elicitation: {}` means forms; `url` alone does not."""
    elicitation = capabilities.elicitation if capabilities is not None else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def operates(ctx: Context) -> bool:
    """True when this caller performs steps and moves runs on."""
    return _door(ctx).operates(ctx)


def reads_transcripts(ctx: Context) -> bool:
    """True when this caller may read what agents said and did in their sessions."""
    return _door(ctx).reads_transcripts(ctx)


def caller(ctx: Context) -> Surface:
    """Who calls, as the door of this call knows them."""
    return _door(ctx).surface(ctx)


def person(surface: Surface) -> Surface:
    """The same door with the person who answered a question there."""
    return altered(surface, principal=altered(surface.principal, kind=PrincipalKind.HUMAN))
