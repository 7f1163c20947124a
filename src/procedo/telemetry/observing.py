"""Puts the watchers of a server together, and wraps what they look at. `UNWATCHED` wraps nothing.

The composition root asks one of the two for every part that is looked at, so nothing else knows of telemetry.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import anyio

from procedo.config.settings import Settings
from procedo.core.altered import altered
from procedo.core.state import Execution
from procedo.errors import StoreError
from procedo.ports import (
    Capabilities,
    Claim,
    Clock,
    Notifier,
    Store,
)
from procedo.telemetry import instruments, lines
from procedo.telemetry.counting import Counting, sampled
from procedo.telemetry.happenings import Watcher
from procedo.telemetry.logbook import Logbook, say
from procedo.telemetry.meters import Meters
from procedo.telemetry.spans import JOB, NO_SPANS, SESSION, Spans, Value
from procedo.telemetry.switch import check_installed, missing, wanted
from procedo.telemetry.watchedparts import WatchedCapabilities, WatchedNotifier
from procedo.telemetry.watchedstore import WatchedStore

if TYPE_CHECKING:
    from procedo.agents.ports import Workbench
    from procedo.telemetry.exporting import Exporting

__all__ = ["UNWATCHED", "Telemetry", "Watched", "installed_version", "observe"]

_log: Final = logging.getLogger("procedo.telemetry")
_SAMPLE_S: Final = 15.0

Perform: TypeAlias = Callable[[Claim], Awaitable[None]]
CarryOut: TypeAlias = Callable[[Claim, Any, Execution], Any]


class Telemetry(Protocol):
    """What the composition root wraps its parts with."""

    def store(self, store: Store) -> Store:
        """The store."""

    def capabilities(self, capabilities: Capabilities) -> Capabilities:
        """The capabilities that the server itself calls."""

    def notifier(self, notifier: Notifier) -> Notifier:
        """Whoever delivers notices."""

    def performer(self, perform: Perform) -> Perform:
        """Whoever performs claimed effects."""

    def delegate(self, carry_out: CarryOut) -> CarryOut:
        """Whoever carries out executions of agents."""

    def workbench(self, workbench: "Workbench") -> "Workbench":
        """The agents' workbench."""

    async def page(self, store: Store, clock: Clock) -> str:
        """The numbers as they are now, for Prometheus. Raises `StoreError`."""


class _Unwatched:
    def store(self, store: Store) -> Store:
        return store

    def capabilities(self, capabilities: Capabilities) -> Capabilities:
        return capabilities

    def notifier(self, notifier: Notifier) -> Notifier:
        return notifier

    def performer(self, perform: Perform) -> Perform:
        return perform

    def delegate(self, carry_out: CarryOut) -> CarryOut:
        return carry_out

    def workbench(self, workbench: "Workbench") -> "Workbench":
        return workbench

    async def page(self, store: Store, clock: Clock) -> str:
        samples = await store.read(lambda reader: sampled(reader, clock.now()))
        return Meters(samples=samples).page()


UNWATCHED: Final[Telemetry] = _Unwatched()


def observe(settings: Settings, environ: Mapping[str, str], *, server: bool) -> "Watched | None":
    """Who watches this process; None where nobody does.

    A `server` writes log lines and keeps the numbers; it raises `Refused` when what is configured cannot be sent. A
    command does neither, but what it carries out itself has spans where it can send them: no decision of a person
    fails for that.
    """
    asked, meters = wanted(settings.telemetry, environ), Meters()
    if asked is not None and not server:
        asked = altered(asked, metrics=None) if asked.traces is not None else None
    if asked is None:
        return Watched(meters) if server else None
    if server:
        check_installed()
    elif missing() is not None:
        return None
    from procedo.telemetry.exporting import Exporting

    sending = Exporting(asked, meters, installed_version())
    return Watched(meters, sending.tracing or NO_SPANS, sending, settings.telemetry.interval_s, logs=server)


def installed_version() -> str:
    """The version of this package."""
    try:
        return version("procedo")
    except PackageNotFoundError:
        # A source tree that was never installed.
        return "0+source"


@dataclass(frozen=True, slots=True)
class Watched:
    """Implements `Telemetry`. `sending` None: nothing leaves this process; `logs` False: it has no log of its own."""

    meters: Meters
    spans: Spans = NO_SPANS
    sending: "Exporting | None" = None
    interval_s: float = _SAMPLE_S
    logs: bool = True
    _watchers: tuple[Watcher, ...] = field(init=False)

    def __post_init__(self) -> None:
        tracing: tuple[Watcher, ...] = () if self.spans is NO_SPANS else (self.spans,)
        writing: tuple[Watcher, ...] = (Logbook(),) if self.logs else ()
        object.__setattr__(self, "_watchers", (*tracing, Counting(self.meters), *writing))

    def store(self, store: Store) -> Store:
        """See `Telemetry.store`."""
        return WatchedStore(store, self._watchers)

    def capabilities(self, capabilities: Capabilities) -> Capabilities:
        """See `Telemetry.capabilities`."""
        return WatchedCapabilities(capabilities, self.meters, self.spans)

    def notifier(self, notifier: Notifier) -> Notifier:
        """See `Telemetry.notifier`."""
        return WatchedNotifier(notifier, self.spans)

    def performer(self, perform: Perform) -> Perform:
        """See `Telemetry.performer`."""

        async def watched(claim: Claim) -> None:
            job, done = claim.job, False
            execution = job.subject if job.kind in _OF_EXECUTIONS else None
            attributes: dict[str, Value | None] = {
                "procedo.job.kind": job.kind,
                "procedo.job.attempt": claim.attempts,
                "procedo.run.id": job.run_id,
                "procedo.execution.id": execution,
            }
            if self.logs and claim.attempts > 1:
                say(
                    lines.JOB_RETAKEN,
                    {"run": job.run_id, "execution": execution, "kind": job.kind, "attempt": claim.attempts},
                )
            try:
                with self.spans.open(JOB, job.kind, attributes, job=job.id):
                    await perform(claim)
                done = True
            finally:
                self.meters.add(instruments.JOBS, 1, job.kind, "done" if done else "put_off")

        return watched

    def delegate(self, carry_out: CarryOut) -> CarryOut:
        """See `Telemetry.delegate`."""

        async def watched(claim: Claim, snapshot: Any, execution: Execution) -> None:
            run = snapshot.run
            attributes = {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": execution.agent,
                "gen_ai.conversation.id": f"{run.id}:{execution.id}",
                "procedo.run.id": run.id,
                "procedo.execution.id": execution.id,
                "procedo.sop": run.sop,
            }
            with self.spans.open(SESSION, execution.agent, attributes):
                await carry_out(claim, snapshot, execution)

        return watched

    def workbench(self, workbench: "Workbench") -> "Workbench":
        """See `Telemetry.workbench`."""
        if self.spans is NO_SPANS:
            return workbench
        from procedo.telemetry.workbench import TracedWorkbench

        return TracedWorkbench(workbench, self.spans)

    def ids_of_span(self) -> Mapping[str, str]:
        """The ids of the span of this task, for log lines; nothing where no spans are made."""
        if self.sending is None or self.sending.tracing is None:
            return {}
        return self.sending.tracing.ids()

    async def page(self, store: Store, clock: Clock) -> str:
        """See `Telemetry.page`."""
        await self._sample(store, clock)
        return self.meters.page()

    async def _sample(self, store: Store, clock: Clock) -> None:
        self.meters.samples = await store.read(lambda reader: sampled(reader, clock.now()))

    @asynccontextmanager
    async def running(self, store: Store, clock: Clock) -> AsyncIterator[None]:
        """While the block runs the numbers of the store are sent, too; at its end what is left is told and sent."""
        sampling = None if self.sending is None else asyncio.create_task(self._sampling(store, clock))
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                if isinstance(store, WatchedStore):
                    await store.settled()
                if sampling is not None:
                    sampling.cancel()
                    with suppress(asyncio.CancelledError):
                        await sampling
                if self.sending is not None:
                    await self.sending.close()

    async def _sampling(self, store: Store, clock: Clock) -> None:
        while True:
            try:
                await self._sample(store, clock)
            except StoreError as error:
                if error.code == "store_closed":
                    return
                _log.warning("the store gives no numbers at the moment: %s", error)
            await clock.sleep(min(self.interval_s, _SAMPLE_S))


_OF_EXECUTIONS: Final = ("perform", "verify")
