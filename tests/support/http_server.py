"""Our HTTP server in this process at a free port, and hosts that come to it over real connections."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import Implementation
from mcp_host import ALL, Host, User, workspace

from procedo.app import App, open_app
from procedo.core.access import Role
from procedo.core.principal import Principal, PrincipalKind, Source
from procedo.core.reach import UNLIMITED, Reach
from procedo.ports import Clock
from procedo.surfaces.http.addresses import Addresses, listen
from procedo.surfaces.http.serving import build, http_server
from procedo.surfaces.web.code import TerminalCode

__all__ = ["TOOLS", "Served", "reserved", "served"]

MAKER = Principal(Source.CLI, "root", PrincipalKind.HUMAN)
BOUND_S = 240.0
TOOLS: dict[str, Any] = {
    "sop_advance": lambda run: {"run_id": run, "execution_id": "1.1", "status": "completed"},
    "sop_approve": lambda run: {"gate_id": f"{run}.g1", "decision": "approve"},
    "sop_resume": lambda run: {"run_id": run},
    "sop_status": lambda run: {"run_id": run},
    "sop_cancel": lambda run: {"run_id": run, "reason": "why not"},
}
"""What each tool that is about a run takes, made of the run's id."""


@dataclass
class Served:
    """A running server. `codes` are those that its terminal showed; `refuse` lets it take nothing new."""

    app: App
    origin: str
    codes: list[str] = field(default_factory=list)
    refuse: Callable[[], None] = lambda: None

    @asynccontextmanager
    async def host(
        self, era: str, secret: str | None = None, user: User | None = None, name: str = "desk"
    ) -> AsyncIterator[Host]:
        """A host that speaks MCP with us, with a bearer token and with a user if there is one."""
        async with httpx2.AsyncClient(headers=bearer(secret), timeout=BOUND_S, trust_env=False) as http:
            transport = streamable_http_client(f"{self.origin}/mcp", http_client=http)
            info = Implementation(name=name, version="1")
            async with Client(transport, mode=era, client_info=info, elicitation_callback=user) as client:
                yield Host(client)

    @asynccontextmanager
    async def web(self, **headers: str) -> AsyncIterator[httpx2.AsyncClient]:
        """A plain HTTP client."""
        async with httpx2.AsyncClient(base_url=self.origin, headers=headers, timeout=BOUND_S, trust_env=False) as http:
            yield http

    async def token(
        self,
        subject: str,
        *roles: str,
        kind: str = "human",
        lifetime_s: float | None = None,
        reach: Reach = UNLIMITED,
    ) -> str:
        """A token's secret."""
        issued = await self.app.tokens.create(
            f"{subject}-{len(await self.app.tokens.list())}",
            MAKER,
            subject=subject,
            kind=PrincipalKind(kind),
            roles=[Role(role) for role in roles],
            lifetime_s=lifetime_s,
            reach=reach,
        )
        return issued.secret


def bearer(secret: str | None) -> dict[str, str]:
    """The headers of a call with a token."""
    return {} if secret is None else {"authorization": f"Bearer {secret}"}


@asynccontextmanager
async def reserved(folder: Path, *, protected: bool = True, clock: Clock | None = None) -> AsyncIterator[Served]:
    """A server in a workspace that exists; `protected` when it has tokens."""
    codes = list[str]()

    def show(code: str, until: datetime) -> None:
        codes.append(code)

    async with open_app(folder, worker=clock is None, clock=clock) as app:
        if protected and not await app.tokens.any():
            first = {"subject": "nobody", "kind": PrincipalKind.HUMAN, "roles": [Role.VIEW]}
            await app.tokens.create("first", MAKER, **first)  # type: ignore[arg-type]  # named just above
        sock = listen("127.0.0.1", 0)
        addresses = Addresses.of("127.0.0.1", sock.getsockname()[1], app.settings.serving)
        code = TerminalCode(app.clock.now, show)
        front = await build(app, addresses, "127.0.0.1", code, "ida")
        server = http_server(front, lifespan=True)
        serving = asyncio.create_task(server.serve(sockets=[sock]))
        code.renew()
        try:
            yield Served(app, f"http://127.0.0.1:{sock.getsockname()[1]}", codes, front.stop)
        finally:
            app.stopping.set()
            front.stop()
            server.should_exit = True
            await asyncio.wait_for(serving, BOUND_S)
            sock.close()


@asynccontextmanager
async def served(
    folder: Path,
    config: str = "",
    sops: Mapping[str, Mapping[str, str]] = ALL,
    *,
    protected: bool = True,
    clock: Any = None,
) -> AsyncIterator[Served]:
    """A server in a new workspace."""
    async with reserved(workspace(folder, sops, config), protected=protected, clock=clock) as running:
        yield running
