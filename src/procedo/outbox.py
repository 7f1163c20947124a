"""Tells people about gates: one claimed notice at a time, and keeps what became of it.

A notice is a job that was written in the transition's own transaction, so it exists exactly when its gate does. It
is made from the gate as it is at delivery; one that was overtaken is left out. The gate itself waits for none.
"""

import logging
import shlex
from collections.abc import Callable
from datetime import datetime
from typing import Final

from msgspec import Struct

from procedo.config import Settings
from procedo.core.altered import altered
from procedo.core.model import Sop
from procedo.core.notice import Occasion, Telling
from procedo.core.state import Gate, Run
from procedo.errors import NotFound, Refused
from procedo.notices.message import Place, notice
from procedo.ports import Claim, Notifier, Reader, Store, Undelivered
from procedo.transition import Transitions

__all__ = ["MOST_ATTEMPTS", "Outbox"]

_log: Final = logging.getLogger("procedo.notices")

MOST_ATTEMPTS: Final = 100
"""After so many it is given up; with the carrier's pauses that is after about eight hours."""


class _Found(Struct, frozen=True):
    """What a notice is about, as it is now."""

    sop: Sop
    run: Run
    gate: Gate


class Outbox:
    """Delivers notices. `link` gives the address of a gate's page, when an inbox page is served."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        transitions: Transitions,
        notifier: Notifier,
        now: Callable[[], datetime],
        link: Callable[[str], str | None],
    ) -> None:
        self._settings = settings
        self._store = store
        self._transitions = transitions
        self._notifier = notifier
        self._now = now
        self._link = link

    def objections(self) -> dict[str, str]:
        """Routes over which nothing can be delivered as things stand, and why."""
        return dict(self._notifier.objections())

    def announce(self) -> None:
        """Tell the log about the routes over which nothing can be delivered."""
        for route, why in self.objections().items():
            _log.warning("notice %r cannot be delivered as things stand: %s", route, why)

    async def perform(self, claim: Claim) -> None:
        """Deliver one notice. Raises `Refused` (`not_delivered`) when it should be tried again later."""
        job = claim.job
        occasion, route = Occasion(job.payload["occasion"]), str(job.payload["route"])
        found = await self._store.read(lambda reader: self._find(reader, job.run_id, job.subject))
        if occasion is not Occasion.RESOLVED and not self._stands(found.gate, job.payload["revision"]):
            return
        telling = Telling(job.run_id, job.subject, route, occasion, self._now(), claim.attempts)
        wanted = self._settings.notices.routes.get(route)
        message = notice(
            job.id,
            route,
            occasion,
            telling.at,
            sop=found.sop,
            run=found.run,
            gate=found.gate,
            policy=self._transitions.policy(found.gate.policy),
            place=self._place(found.gate),
            content=wanted is not None and wanted.content,
        )
        try:
            await self._notifier.deliver(message)
        except Undelivered as error:
            await self._failed(telling, str(error))
        else:
            await self._store.write(lambda writer: writer.put_telling(telling))

    def _find(self, reader: Reader, run_id: str, gate_id: str) -> _Found:
        sop, run = self._transitions.load(reader, run_id)
        run = reader.with_gate(run, gate_id)
        if gate_id not in run.gates:
            raise NotFound("unknown_gate", f"There is no gate {gate_id}.")
        return _Found(sop, run, run.gates[gate_id])

    @staticmethod
    def _stands(gate: Gate, revision: int) -> bool:
        """True while the question that the notice is about can be answered."""
        return gate.open and gate.revision == revision

    def _place(self, gate: Gate) -> Place:
        words = ["procedo", "approve", gate.code, "--workspace", str(self._settings.root)]
        return Place(shlex.join(words), self._link(gate.id))

    async def _failed(self, telling: Telling, why: str) -> None:
        given_up = telling.attempts >= MOST_ATTEMPTS
        kept = altered(telling, error=why, given_up=given_up)
        await self._store.write(lambda writer: writer.put_telling(kept))
        if given_up:
            _log.error("notice %s of gate %s is given up: %s", telling.route, telling.gate_id, why)
            return
        message = f"Notice {telling.route!r} of gate {telling.gate_id} failed: {why}."
        raise Refused("not_delivered", message, "It is tried again; the gate waits as before.")
