"""Running the server: at which address, until which signal, and ending well.

After SIGTERM, SIGINT or SIGHUP new requests are refused, calls that wait are answered as things stand, what was begun
is answered, and work on steps is put down for another server; then the application is closed. That takes seconds and
never more than `LONGEST_S`. A second signal ends at once.
"""

import asyncio
import os
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from datetime import datetime
from typing import Final, Protocol, TypeVar

import uvicorn
from mcp.server.auth.settings import AuthSettings
from msgspec import Struct
from pydantic import AnyHttpUrl
from starlette.types import ASGIApp

from procedo.config.serving import OAuthSettings
from procedo.errors import Refused
from procedo.ports import Clock
from procedo.surfaces.http.addresses import Addresses, is_loopback, listen
from procedo.surfaces.http.door import BoundApp, HttpDoor
from procedo.surfaces.http.draining import Draining
from procedo.surfaces.http.edge import MOST_BYTES, Edge
from procedo.surfaces.http.front import HEALTH_PATHS, Front, Health, OpenDoor, guarded
from procedo.surfaces.http.metrics import METRICS_PATH, MetricsPage, check_open
from procedo.surfaces.http.oauth import OAuth, keys_of
from procedo.surfaces.http.verifier import Verifier
from procedo.surfaces.mcp.callers import Whole
from procedo.surfaces.mcp.server import build_server
from procedo.surfaces.web.code import TerminalCode
from procedo.surfaces.web.protection import hosts_of
from procedo.surfaces.web.site import ConsoleApp, console
from procedo.telemetry.lines import SERVER_STARTED
from procedo.telemetry.logbook import say
from procedo.telemetry.logs import log_to_stderr
from procedo.telemetry.observing import Telemetry, installed_version

__all__ = ["DEFAULT_PORT", "Desk", "HttpApp", "beside", "build", "http_server", "serve_http"]

DEFAULT_PORT: Final = 8321
MCP_PATH: Final = "/mcp"
_DRAIN_S: Final = 8.0
"""How long requests that were begun have, and steps at work."""
_GRACE_S: Final = 2
"""How long connections have after that."""
LONGEST_S: Final = 20.0


class HttpApp(ConsoleApp, BoundApp, Whole, Protocol):
    """What the server needs of the application."""

    @property
    def stopping(self) -> asyncio.Event:
        """Set once the process is to end."""

    async def put_down(self, seconds: float) -> None:
        """Begin no further work, and wait for what is at hand."""

    @property
    def telemetry(self) -> Telemetry:
        """Who watches it."""


A = TypeVar("A", bound=ConsoleApp)


class Desk(Struct, frozen=True):
    """The person who started the server: their account, and how lines are put before them."""

    operator: str
    say: Callable[[str], None]

    def code(self, clock: Clock) -> TerminalCode:
        """The login code of this terminal."""

        def show(code: str, until: datetime) -> None:
            self.say(f"procedo: inbox login code {code} (works once, until {until:%H:%M} UTC)")

        return TerminalCode(clock.now, show)


class _Server(uvicorn.Server):
    """A server that leaves signals to us: uvicorn would raise them again before the application is closed."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take none."""
        yield


def http_server(app: ASGIApp, *, lifespan: bool) -> uvicorn.Server:
    """A server for an application, which leaves signals alone. `lifespan` when it has a start and an end."""
    return _Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="on" if lifespan else "off",
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=_GRACE_S,
        )
    )


async def _protected(app: HttpApp, host: str) -> bool:
    """True when callers have to show a token. Raises `Refused` when that would leave a network open to everybody."""
    if app.settings.serving.oauth is not None or await app.tokens.any():
        return True
    if not is_loopback(host):
        message = f"{host} can be reached from other machines, and no token and no OAuth issuer is configured."
        hint = "Make a token first (procedo token create), declare [http.oauth], or listen at 127.0.0.1."
        raise Refused("unprotected", message, hint)
    return False


def _auth(addresses: Addresses, oauth: OAuthSettings | None) -> AuthSettings:
    """With OAuth the endpoint names its issuer to clients; our own tokens have none that a client could ask."""
    if oauth is None:
        return AuthSettings(issuer_url=AnyHttpUrl(addresses.origin), resource_server_url=None)
    return AuthSettings(
        issuer_url=AnyHttpUrl(oauth.issuer),
        resource_server_url=AnyHttpUrl(oauth.resource),
        required_scopes=list(oauth.required_scopes),
        validate_token_resource=True,
    )


async def build(app: HttpApp, addresses: Addresses, host: str, code: TerminalCode, operator: str) -> Draining:
    """The whole application as ASGI. Raises `Refused` when it would be open to a network."""
    protected = await _protected(app, host)
    check_open(app.settings.serving.open_metrics, host)
    oauth = app.settings.serving.oauth
    verifier = None
    if protected:
        foreign = None if oauth is None else OAuth(oauth, keys_of(oauth))
        resource, scopes = (None, ()) if oauth is None else (oauth.resource, oauth.required_scopes)
        verifier = Verifier(app.tokens, foreign, resource, scopes)
    pages = console(app, code, origin=addresses.origin, operator=operator, stopping=app.stopping)
    server = build_server(
        app,
        door=HttpDoor(app, anonymous=not protected, route=f"the inbox page, {addresses.origin}/inbox"),
        verifier=verifier,
        auth=_auth(addresses, oauth) if protected else None,
    )
    mcp: ASGIApp = server.streamable_http_app(
        streamable_http_path=MCP_PATH,
        transport_security=addresses.security,
        host=host,
        max_request_body_size=MOST_BYTES,
    )
    mcp = Edge(mcp, addresses.origins)
    numbers = MetricsPage(
        lambda: app.telemetry.page(app.store, app.clock),
        app.tokens,
        verifier,
        hosts_of(addresses.origins),
        open_local=app.settings.serving.open_metrics,
        resource=None if oauth is None else oauth.resource,
        scopes=() if oauth is None else oauth.required_scopes,
    )
    front = Front(
        mcp if protected else OpenDoor(mcp, app.tokens),
        guarded(pages, addresses.origins),
        Health(app.store, app.stopping, app.clock.now),
        {METRICS_PATH: numbers},
    )
    paths = frozenset({MCP_PATH})
    return Draining(front, always=frozenset({*HEALTH_PATHS, METRICS_PATH}), endless=paths, rpc=paths)


async def _ended_well(app: HttpApp, front: Draining, server: uvicorn.Server) -> None:
    """Once the server is to stop: answer what was begun, put work down, and let it go."""
    await app.stopping.wait()
    front.stop()
    await asyncio.gather(front.drained(_DRAIN_S), app.put_down(_DRAIN_S))
    server.should_exit = True


async def _serve(
    opening: Callable[[], AbstractAsyncContextManager[HttpApp]], sock: socket.socket, host: str, desk: Desk
) -> int:
    ended: list[int] = []
    async with opening() as app:
        port = sock.getsockname()[1]
        addresses = Addresses.of(host, port, app.settings.serving)
        app.inbox.served_at(addresses.origin)
        code = desk.code(app.clock)
        front = await build(app, addresses, host, code, desk.operator)
        server = http_server(front, lifespan=True)

        def stop(number: int) -> None:
            if ended:
                os._exit(128 + number)
            ended.append(number)
            last_resort = threading.Timer(LONGEST_S, os._exit, (128 + number,))
            last_resort.daemon = True
            last_resort.start()
            app.stopping.set()

        loop = asyncio.get_running_loop()
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), lambda n, _: loop.call_soon_threadsafe(stop, n))
        desk.say(f"procedo: MCP at {addresses.origin}{MCP_PATH}, inbox at {addresses.origin}/inbox")
        code.renew()
        workspace, address = str(app.settings.root), f"{addresses.origin}{MCP_PATH}"
        say(SERVER_STARTED, {"address": address, "workspace": workspace, "version": installed_version()})
        ending = asyncio.create_task(_ended_well(app, front, server))
        await server.serve(sockets=[sock])
        ending.cancel()
    return 128 + ended[0] if ended else 0


def serve_http(opening: Callable[[], AbstractAsyncContextManager[HttpApp]], desk: Desk, *, host: str, port: int) -> int:
    """Serve until a signal; returns the exit code. Raises `BadArgument` when nothing can listen there."""
    log_to_stderr()
    sock = listen(host, port)
    try:
        return asyncio.run(_serve(opening, sock, host, desk))
    finally:
        sock.close()


@asynccontextmanager
async def beside(opening: AbstractAsyncContextManager[A], desk: Desk, *, port: int = 0) -> AsyncIterator[A]:
    """An application with its inbox page on this machine, for a server that speaks MCP elsewhere."""
    host = "127.0.0.1"
    sock = listen(host, port)
    try:
        async with opening as app:
            addresses = Addresses.of(host, sock.getsockname()[1], app.settings.serving)
            app.inbox.served_at(addresses.origin)
            stopping, code = asyncio.Event(), desk.code(app.clock)
            pages = console(app, code, origin=addresses.origin, operator=desk.operator, stopping=stopping)
            server = http_server(guarded(pages, addresses.origins), lifespan=False)
            serving = asyncio.create_task(server.serve(sockets=[sock]))
            desk.say(f"procedo: inbox at {addresses.origin}/inbox")
            code.renew()
            try:
                yield app
            finally:
                stopping.set()
                server.should_exit = True
                await serving
    finally:
        sock.close()
