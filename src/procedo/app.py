"""The composition root: the one place that knows concrete classes and puts them together.

Nothing is built and no environment is read on import.
"""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from msgspec import Struct, field

from procedo.access.ownership import OwnStore
from procedo.access.tokens import Tokens
from procedo.capabilities.registry import built_in
from procedo.config import Settings, load
from procedo.config.held_tools import can_hold
from procedo.core.principal import Principal
from procedo.core.state import Execution
from procedo.definitions import check_definition, compile_definition
from procedo.driver import Delegate, Driver
from procedo.inbox_address import InboxAddress
from procedo.notices.delivery import Delivery
from procedo.notices.means import Means
from procedo.outbox import Outbox
from procedo.ports import Capabilities, Claim, Clock, Ids, Store
from procedo.runs import Runs, Snapshot
from procedo.sopfile import Surroundings
from procedo.sopfile.library import Library
from procedo.statefile import StateFiles
from procedo.stores.codec import decode_event
from procedo.stores.connection import SCHEMA_VERSION, stored_version
from procedo.stores.embedded import Embedded
from procedo.stores.sqlite import SqliteStore
from procedo.telemetry.lines import SERVER_ENDED
from procedo.telemetry.logbook import say
from procedo.telemetry.logs import log_to_stderr
from procedo.telemetry.observing import UNWATCHED, Telemetry, observe
from procedo.transition import Transitions

if TYPE_CHECKING:
    from procedo.agents.registry import Registry
    from procedo.sessions import Sessions

__all__ = ["STORE_FILE", "App", "RandomIds", "SystemClock", "assemble", "open_app", "store_versions", "surroundings"]

STORE_FILE = "procedo.db"


class SystemClock:
    """The machine's own time."""

    def now(self) -> datetime:
        """The present moment, in UTC."""
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        """Wait that long."""
        await anyio.sleep(seconds)


class RandomIds:
    """Ids that nobody can guess."""

    _ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"

    def run_id(self) -> str:
        """`run-` and 128 random bits in base 32."""
        number = secrets.randbits(128)
        return "run-" + "".join(self._ALPHABET[(number >> shift) & 31] for shift in range(0, 130, 5))

    def marker(self) -> str:
        """64 random bits."""
        return secrets.token_hex(8)


class App(Struct, frozen=True):
    """Everything that a surface needs."""

    settings: Settings
    library: Library
    store: Store
    runs: Runs
    capabilities: Capabilities
    carrier: Embedded
    driver: Driver
    clock: Clock
    inbox: InboxAddress
    outbox: Outbox
    runs_of: Callable[[Principal], Runs]
    """The verbs for one caller, to whom the runs of everybody else do not exist."""
    telemetry: Telemetry = UNWATCHED

    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the process is to end: whoever waits for something gives an answer then."""

    async def put_down(self, seconds: float) -> None:
        """Begin no further work, and wait until what is at hand has ended or was put down, at most so long."""
        await self.carrier.put_down(seconds)

    @property
    def tokens(self) -> Tokens:
        """The credentials of this workspace."""
        return Tokens(self.store, self.clock.now)


def surroundings(settings: Settings, capabilities: Capabilities) -> Surroundings:
    """What definitions are checked against in this workspace."""
    known = settings.agents
    return Surroundings(
        agents=frozenset({settings.host_agent, *known.agents}),
        host_agent=settings.host_agent,
        policies=settings.policies,
        tools=None,
        capabilities=capabilities,
        default_mode=settings.default_mode,
        break_glass=settings.break_glass,
        disabled=frozenset(alias for alias, agent in known.agents.items() if not agent.enabled),
        holds=partial(can_hold, known),
    )


def _delegate(
    settings: Settings, runs: Runs, store: Store, clock: Clock, carrier: Embedded, telemetry: Telemetry
) -> Delegate:
    """Carries out steps of agents. The registry and what it needs are imported at the first such step."""

    async def carry_out(claim: Claim, snapshot: Snapshot, execution: Execution) -> None:
        sessions, registry = await anyio.to_thread.run_sync(_late)
        held = sessions(
            telemetry.workbench(registry(settings, os.environ)), runs, store, clock, lambda: carrier.stopping
        )
        await held.carry_out(claim, snapshot, execution)

    return telemetry.delegate(carry_out)


def _late() -> "tuple[type[Sessions], type[Registry]]":
    # In a thread: what the model layer imports takes a while, and callers are to be answered meanwhile.
    from procedo.agents.registry import Registry
    from procedo.sessions import Sessions

    return Sessions, Registry


def assemble(settings: Settings, store: Store, clock: Clock, ids: Ids, telemetry: Telemetry = UNWATCHED) -> App:
    """Put an application together over an open store; it runs no worker."""
    store = telemetry.store(store)
    capabilities = built_in(settings.capabilities, os.environ)
    around = surroundings(settings, capabilities)
    library = Library(settings.sops_dir, lambda: around)
    carrier = Embedded(store, clock, lease_s=settings.lease_s)
    transitions = Transitions(settings, carrier, clock.now, compile_definition)
    state_files = StateFiles(settings.data_dir / "state", store, decode_event, check_definition)

    def over(seen: Store) -> Runs:
        return Runs(seen, library, settings, transitions, state_files, clock, ids)

    runs = over(store)
    inbox = InboxAddress(settings.serving.public_url)
    delivery = telemetry.notifier(Delivery(settings.notices, Means(os.environ, settings.root, clock.now)))
    outbox = Outbox(settings, store, transitions, delivery, clock.now, inbox.of_gate)
    delegate = _delegate(settings, runs, store, clock, carrier, telemetry)
    return App(
        settings,
        library,
        store,
        runs,
        capabilities,
        carrier,
        Driver(runs, store, telemetry.capabilities(capabilities), delegate, tell=outbox.perform),
        clock,
        inbox,
        outbox,
        runs_of=lambda caller: over(OwnStore(store, caller)),
        telemetry=telemetry,
    )


def store_versions(settings: Settings) -> tuple[int | None, int]:
    """The schema version that lies there (None: none that can be read), and that of this program. Changes nothing."""
    return stored_version(settings.data_dir / STORE_FILE), SCHEMA_VERSION


@asynccontextmanager
async def open_app(
    workspace: Path,
    *,
    worker: bool = True,
    announce: bool = False,
    log_level: str = "warning",
    clock: Clock | None = None,
    ids: Ids | None = None,
) -> AsyncIterator[App]:
    """Open a workspace: its settings, its store, and (with `worker`) whoever performs its effects.

    With `announce` this is a server: its log is set up (from `log_level` on, unless the settings name one), metrics
    are kept, and the log tells which notices cannot be delivered. Spans and metrics are sent where that is configured.

    Raises `InvalidConfig` for a `procedo.toml` that cannot be used, `StoreError` when the record cannot be kept
    (there is no fallback to memory), and `Refused` when telemetry is configured and cannot be sent.
    """
    settings = load(workspace)
    clock = clock or SystemClock()
    async with AsyncExitStack() as stack:
        watched = observe(settings, os.environ, server=announce) if announce or worker else None
        if watched is not None and announce:
            log_to_stderr(settings.logging.format, settings.logging.level or log_level, watched.ids_of_span)
            stack.callback(say, SERVER_ENDED, {"workspace": str(settings.root)})
        store = await SqliteStore.open(settings.data_dir / STORE_FILE)
        stack.push_async_callback(store.close)
        app = assemble(settings, store, clock, ids or RandomIds(), watched or UNWATCHED)
        await app.carrier.install()
        if watched is not None:
            await stack.enter_async_context(watched.running(app.store, clock))
        if announce:
            app.outbox.announce()
        if not worker:
            yield app
            return
        failure: Exception | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(app.carrier.run_worker, app.telemetry.performer(app.driver.perform))
            try:
                yield app
            # What fails in the caller's block leaves as itself, and not inside the group's own error.
            except Exception as error:  # noqa: BLE001  # raised again below, unchanged
                failure = error
            group.cancel_scope.cancel()
        if failure is not None:
            raise failure
