"""The carrier that keeps its jobs in the store itself: emitted with the transition, claimed under a lease.

A worker claims jobs while it has room, renews each claim at a third of its length, and stops a job whose
claim it could not renew: by then somebody else may have it. What a stopped job still reports carries an old
fence, and is refused.
"""

import logging
import uuid
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

import anyio

from procedo.errors import ProcedoError, StoreError
from procedo.ports import Claim, Clock, Job, Store, Writer

__all__ = ["Embedded", "delay_s"]

_log: Final = logging.getLogger("procedo.carrier")

_IDLE_S: Final = 5.0
"""How long a worker waits at most before it looks again, in seconds."""
_GLANCE_S: Final = 0.1
_FIRST_DELAY_S: Final = 0.5
_LONGEST_DELAY_S: Final = 300.0


def delay_s(attempts: int) -> float:
    """How long a job rests after so many failed attempts, in seconds: doubled each time, up to five minutes."""
    return float(min(_FIRST_DELAY_S * 2 ** min(attempts - 1, 16), _LONGEST_DELAY_S))


class Embedded:
    """A `Carrier` in the store's own file.

    `lease_s` is how long a claim lasts without renewal, in seconds; `concurrency` how many jobs run at once. Most of
    them wait for somebody else, and a session that waits for its model must not hold up a deadline.
    """

    def __init__(self, store: Store, clock: Clock, *, lease_s: float = 10.0, concurrency: int = 32) -> None:
        self._store = store
        self._clock = clock
        self._lease = timedelta(seconds=lease_s)
        self._concurrency = concurrency
        self._owner = uuid.uuid4().hex
        self._at_work = 0
        self._stopping = False

    @property
    def stopping(self) -> bool:
        """True once nothing further is to be begun here: a long job puts its work down between two steps."""
        return self._stopping

    async def put_down(self, seconds: float) -> None:
        """Claim nothing more, and wait until what is at hand has ended or was put down, at most so many seconds."""
        self._stopping = True
        with anyio.move_on_after(seconds):
            while self._at_work:
                await self._store.changed(_GLANCE_S)

    async def install(self) -> None:
        """See `Carrier.install`. The jobs' table is part of the store's schema."""

    def emit(self, writer: Writer, jobs: Sequence[Job]) -> None:
        """See `Carrier.emit`."""
        writer.put_jobs(jobs)

    async def run_worker(self, perform: Callable[[Claim], Awaitable[None]]) -> None:
        """See `Carrier.run_worker`. Ends by being cancelled, or with the `StoreError` of a store that was closed."""
        room = anyio.Semaphore(self._concurrency)
        async with anyio.create_task_group() as group:
            while True:
                await room.acquire()
                group.start_soon(self._carry, await self._next_claim(), perform, room)

    async def drained(self, seconds: float) -> None:
        """Wait until this worker has nothing at hand and nothing is due, at most so many seconds."""
        with anyio.move_on_after(seconds):
            while self._at_work or await self._is_due():
                await self._store.changed(_GLANCE_S)

    async def _is_due(self) -> bool:
        now = self._clock.now()
        due = await self._due(now)
        return due is not None and due <= now

    # --- claiming --------------------------------------------------------------------------------

    async def _next_claim(self) -> Claim:
        while True:
            if self._stopping:
                await anyio.sleep_forever()
            try:
                now = self._clock.now()
                due = await self._due(now)
                if due is None or due > now:
                    await self._changed_or_due(now, due)
                    continue
                claim = await self._claimed(now)
                if claim is not None:
                    return claim
            except StoreError as error:
                if error.code == "store_closed":
                    raise
                _log.warning("no job can be claimed at the moment: %s", error)
                await self._clock.sleep(_FIRST_DELAY_S)

    async def _due(self, now: datetime) -> datetime | None:
        return await self._store.read(lambda reader: reader.next_job_at(now))

    async def _claimed(self, now: datetime) -> Claim | None:
        claim = None
        self._at_work += 1
        try:
            claim = await self._store.write(lambda writer: writer.claim_job(self._owner, now, now + self._lease))
        finally:
            if claim is None:
                self._at_work -= 1
        return claim

    async def _changed_or_due(self, now: datetime, due: datetime | None) -> None:
        if due is None:
            await self._store.changed(_IDLE_S, jobs=True)
            return
        wait_s = (due - now).total_seconds()
        async with anyio.create_task_group() as group:

            async def until_due() -> None:
                await self._clock.sleep(wait_s)
                group.cancel_scope.cancel()

            group.start_soon(until_due)
            await self._store.changed(min(wait_s, _IDLE_S), jobs=True)
            group.cancel_scope.cancel()

    # --- one job ---------------------------------------------------------------------------------

    async def _carry(self, claim: Claim, perform: Callable[[Claim], Awaitable[None]], room: anyio.Semaphore) -> None:
        settled = False
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._keep, claim, group.cancel_scope)
                await self._settle(claim, done=await self._performed(claim, perform))
                settled = True
                group.cancel_scope.cancel()
        finally:
            if not settled:
                # It was stopped in the middle, and nothing works on it here any more: others need not wait.
                with anyio.CancelScope(shield=True):
                    await self._settle(claim, done=False, stopped=True)
            self._at_work -= 1
            room.release()

    async def _performed(self, claim: Claim, perform: Callable[[Claim], Awaitable[None]]) -> bool:
        job = claim.job
        try:
            await perform(claim)
        except ProcedoError as error:
            # What this process puts down because it ends is no trouble, and nobody is told.
            level = logging.DEBUG if self._stopping else logging.WARNING
            _log.log(level, "job %s (%s) is tried again, attempt %d: %s", job.id, job.kind, claim.attempts, error)
        except Exception:  # noqa: BLE001  # a fault in one job must not end the worker of all the others
            _log.exception("job %s (%s) met a fault and is tried again, attempt %d", job.id, job.kind, claim.attempts)
        else:
            return True
        return False

    async def _settle(self, claim: Claim, *, done: bool, stopped: bool = False) -> None:
        def work(writer: Writer) -> bool:
            if done:
                return writer.finish_job(claim)
            # What is put down because this process ends is for another one, at once.
            rest_s = 0.0 if self._stopping else delay_s(claim.attempts)
            return writer.postpone_job(claim, self._clock.now() + timedelta(seconds=rest_s))

        try:
            # What was stopped while it was settled may be settled already.
            if not await self._store.write(work) and not stopped:
                _log.warning("job %s was done by a worker that had lost its claim", claim.job.id)
        except StoreError as error:
            # The claim runs out by itself, and the job is done again: it is delivered at least once.
            _log.warning("job %s could not be settled: %s", claim.job.id, error)

    async def _keep(self, claim: Claim, scope: anyio.CancelScope) -> None:
        """Renew the claim as long as the job runs; cancel the job when that is no longer possible."""
        until = claim.until
        while True:
            await self._clock.sleep(self._lease.total_seconds() / 3)
            longer = self._clock.now() + self._lease
            renewed = await self._renewed(claim, until, longer)
            if renewed:
                until = longer
            elif renewed is False or self._clock.now() >= until:
                _log.warning("job %s is stopped: its claim is lost", claim.job.id)
                scope.cancel()
                return

    async def _renewed(self, claim: Claim, until: datetime, longer: datetime) -> bool | None:
        """Whether the claim lasts longer now; None when the store could not be asked before it ended."""
        now = self._clock.now()
        try:
            with anyio.move_on_after(max((until - now).total_seconds(), 0.0)):
                return await self._store.write(lambda writer: writer.renew_job(claim, now, longer))
        except StoreError as error:
            _log.warning("the claim of job %s could not be renewed: %s", claim.job.id, error)
        return None
