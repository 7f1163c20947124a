"""What every carrier does with the jobs it is given: each at least once, by one worker at a time."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import anyio
import pytest
from engine import IDA, NOW
from handclock import HandClock
from stored import apply, begin, started

from procedo.core import messages as m
from procedo.core.altered import altered
from procedo.errors import Refused, StoreError
from procedo.ports import Carrier, Claim, Job, Store, Writer
from procedo.stores.embedded import Embedded, delay_s

pytestmark = pytest.mark.anyio

LEASE_S = 9.0
JOB = Job("run-1:1.1", "perform", "run-1", "1.1")
Perform = Callable[[Claim], Awaitable[None]]


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


# Another carrier joins all these tests by a name here and a line in `made`.
CARRIERS = ["embedded"]


@pytest.fixture(params=CARRIERS)
def made(request: pytest.FixtureRequest, store: Store, clock: HandClock) -> Callable[[], Carrier]:
    return {"embedded": lambda: Embedded(store, clock, lease_s=LEASE_S, concurrency=2)}[request.param]


@asynccontextmanager
async def working(carrier: Carrier, perform: Perform) -> AsyncIterator[None]:
    """A worker that works while the block runs."""
    await carrier.install()
    async with anyio.create_task_group() as group:
        group.start_soon(carrier.run_worker, perform)
        yield
        group.cancel_scope.cancel()


class Worker:
    """Performs jobs, tells which, and holds them until they are let go."""

    def __init__(self, *, holding: bool = False) -> None:
        self.claims: list[Claim] = []
        self.done: list[str] = []
        self._let = anyio.Event()
        self._moved = anyio.Event()
        if not holding:
            self._let.set()

    async def perform(self, claim: Claim) -> None:
        self.claims.append(claim)
        self._move()
        await self._let.wait()
        self.done.append(claim.job.id)
        self._move()

    def let_go(self) -> None:
        self._let.set()

    def _move(self) -> None:
        self._moved.set()
        self._moved = anyio.Event()

    async def until(self, *, claims: int = 0, done: int = 0) -> None:
        with anyio.fail_after(240):
            while len(self.claims) < claims or len(self.done) < done:
                await self._moved.wait()


async def emit(store: Store, carrier: Carrier, *jobs: Job) -> None:
    await store.write(lambda writer: carrier.emit(writer, jobs))


async def first_job_at(store: Store, at: datetime | None, now: datetime = NOW) -> None:
    """Until the first job that is left to do can be claimed at that time."""
    with anyio.fail_after(240):
        while await store.read(lambda reader: reader.next_job_at(now)) != at:
            await store.changed(5)


async def settled(store: Store) -> None:
    """Until no job is left to do."""
    await first_job_at(store, None)


async def test_a_job_is_performed_once_and_never_taken_again(store: Store, made: Callable[[], Carrier]) -> None:
    carrier, worker = made(), Worker()
    job = altered(JOB, payload={"a": [1]})
    async with working(carrier, worker.perform):
        await emit(store, carrier, job)
        await worker.until(done=1)
        await settled(store)
        await emit(store, carrier, job)
        await emit(store, carrier, altered(JOB, id="another"))
        await worker.until(done=2)
        await settled(store)
    assert [claim.job for claim in worker.claims] == [job, altered(JOB, id="another")]
    assert [claim.fence for claim in worker.claims] == [1, 1]


async def test_a_job_whose_transaction_failed_does_not_exist(store: Store, made: Callable[[], Carrier]) -> None:
    carrier, worker = made(), Worker()

    def fail(writer: Writer) -> None:
        carrier.emit(writer, [JOB])
        raise LookupError

    with pytest.raises(LookupError):
        await store.write(fail)
    async with working(carrier, worker.perform):
        await emit(store, carrier, altered(JOB, id="good"))
        await worker.until(done=1)
    assert worker.done == ["good"]


async def test_a_job_waits_until_it_is_due(store: Store, made: Callable[[], Carrier], clock: HandClock) -> None:
    carrier, worker = made(), Worker()
    late = NOW + timedelta(seconds=60)
    async with working(carrier, worker.perform):
        await emit(store, carrier, altered(JOB, id="late", due_at=late))
        await clock.until_sleeping(60)
        await emit(store, carrier, altered(JOB, id="now"))
        await worker.until(done=1)
        await first_job_at(store, late)
        await clock.move(59)
        await clock.until_sleeping(1)
        assert worker.done == ["now"]
        await clock.move(1)
        await worker.until(done=2)
    assert worker.done == ["now", "late"]


async def test_a_worker_takes_no_more_than_it_has_room_for(store: Store, made: Callable[[], Carrier]) -> None:
    carrier, worker, other = made(), Worker(holding=True), Worker()
    async with working(carrier, worker.perform):
        await emit(store, carrier, *(altered(JOB, id=f"job-{n}") for n in range(3)))
        await worker.until(claims=2)
        async with working(made(), other.perform):
            await other.until(done=1)
        assert [claim.job.id for claim in worker.claims] == ["job-0", "job-1"]
        assert other.done == ["job-2"]
        worker.let_go()
        await worker.until(done=2)


async def test_two_workers_never_hold_the_same_job(store: Store, made: Callable[[], Carrier]) -> None:
    one, two = Worker(), Worker()
    first, second = made(), made()
    async with working(first, one.perform), working(second, two.perform):
        await emit(store, first, *(altered(JOB, id=f"job-{n}") for n in range(30)))
        await settled(store)
    assert sorted(one.done + two.done) == sorted(f"job-{n}" for n in range(30))


async def test_a_claim_is_renewed_as_long_as_the_job_runs(
    store: Store, made: Callable[[], Carrier], clock: HandClock
) -> None:
    carrier, worker, other = made(), Worker(holding=True), Worker()
    async with working(carrier, worker.perform):
        await emit(store, carrier, JOB)
        await worker.until(claims=1)
        async with working(made(), other.perform):
            for _ in range(12):
                # The other worker sleeps, too: until the claim that it has seen would end.
                await clock.until_sleeping(LEASE_S / 3, asked=LEASE_S / 3)
                await clock.move(LEASE_S / 3)
                await renewed(store, clock)
        assert other.claims == []
        worker.let_go()
        await worker.until(done=1)


async def renewed(store: Store, clock: HandClock) -> None:
    """Until the one job there is has been renewed at the present time."""
    await first_job_at(store, clock.now() + timedelta(seconds=LEASE_S), clock.now())


async def test_a_job_of_a_worker_that_died_is_taken_over_with_a_higher_fence(
    store: Store, made: Callable[[], Carrier], clock: HandClock
) -> None:
    other, begun = Worker(), clock.now()
    await emit(store, made(), JOB)
    old = await store.write(lambda writer: writer.claim_job("dead", begun, begun + timedelta(seconds=LEASE_S)))
    assert old is not None
    async with working(made(), other.perform):
        await clock.until_sleeping(LEASE_S)
        assert other.claims == []
        await clock.move(LEASE_S)
        await other.until(done=1)
        await settled(store)
    assert [claim.fence for claim in (old, *other.claims)] == [1, 2]
    new = other.claims[0]
    later = clock.now() + timedelta(seconds=1)
    assert await store.write(lambda writer: writer.renew_job(old, clock.now(), later)) is False
    assert await store.write(lambda writer: writer.finish_job(old)) is False
    assert await store.write(lambda writer: writer.postpone_job(old, later)) is False
    assert await store.write(lambda writer: writer.renew_job(new, clock.now(), later)) is False


async def test_a_worker_that_is_stopped_gives_its_job_to_others_without_waiting_for_the_lease(
    store: Store, made: Callable[[], Carrier], clock: HandClock
) -> None:
    stopped, other = Worker(holding=True), Worker()
    async with working(made(), stopped.perform):
        await emit(store, made(), JOB)
        await stopped.until(claims=1)
    async with working(made(), other.perform):
        await clock.until_sleeping(0.5)
        await clock.move(0.5)
        await other.until(done=1)
        await settled(store)
    assert [claim.fence for claim in (*stopped.claims, *other.claims)] == [1, 2]
    assert await store.write(lambda writer: writer.finish_job(stopped.claims[0])) is False, "what it tells is too late"


async def test_a_worker_that_lost_its_claim_stops_the_job(
    store: Store, made: Callable[[], Carrier], clock: HandClock, caplog: pytest.LogCaptureFixture
) -> None:
    slow = Worker(holding=True)
    async with working(made(), slow.perform):
        await emit(store, made(), JOB)
        await slow.until(claims=1)
        late = clock.now() + timedelta(seconds=LEASE_S)
        thief = await store.write(lambda writer: writer.claim_job("thief", late, late + timedelta(hours=1)))
        assert thief is not None
        await clock.until_sleeping(LEASE_S / 3)
        with caplog.at_level(logging.WARNING, "procedo.carrier"):
            await clock.move(LEASE_S / 3)
            with anyio.fail_after(240):
                while "its claim is lost" not in caplog.text:
                    await store.changed(0.05)
        slow.let_go()
        await anyio.wait_all_tasks_blocked()
        assert slow.done == []
        assert await store.write(lambda writer: writer.finish_job(thief)) is True


@pytest.mark.parametrize(
    ("error", "says"),
    [(Refused("deferred", "No slot is free."), "No slot is free."), (ZeroDivisionError("oops"), "Traceback")],
)
async def test_a_job_that_fails_is_tried_again_later_and_the_worker_goes_on(
    store: Store,
    made: Callable[[], Carrier],
    clock: HandClock,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    says: str,
) -> None:
    carrier, worker = made(), Worker()
    failing = [True, True, False]

    async def perform(claim: Claim) -> None:
        await worker.perform(claim)
        if claim.job.id == JOB.id and failing.pop(0):
            raise error

    async with working(carrier, perform):
        with caplog.at_level(logging.WARNING, "procedo.carrier"):
            await emit(store, carrier, JOB)
            await worker.until(done=1)
            await clock.until_sleeping(delay_s(1))
        await emit(store, carrier, altered(JOB, id="another"))
        await worker.until(done=2)
        for attempts in (1, 2):
            await clock.until_sleeping(delay_s(attempts))
            await clock.move(delay_s(attempts))
            await worker.until(done=2 + attempts)
        await settled(store)
    assert worker.done == [JOB.id, "another", JOB.id, JOB.id]
    assert [claim.attempts for claim in worker.claims if claim.job.id == JOB.id] == [1, 2, 3]
    assert says in caplog.text
    assert JOB.id in caplog.text


def test_the_rest_after_a_failure_grows_up_to_five_minutes() -> None:
    assert [delay_s(n) for n in (1, 2, 3, 4)] == [0.5, 1.0, 2.0, 4.0]
    assert delay_s(11) == delay_s(10_000) == 300.0


async def test_a_worker_of_a_closed_store_ends(store: Store, made: Callable[[], Carrier]) -> None:
    carrier = made()
    await store.close()
    with pytest.raises(BaseExceptionGroup) as caught, anyio.fail_after(240):
        await carrier.run_worker(Worker().perform)
    assert caught.group_contains(StoreError)


async def test_jobs_are_pruned_with_their_run(store: Store, made: Callable[[], Carrier]) -> None:
    carrier, worker = made(), Worker()
    await started(store, "run-1", "run-2")
    await emit(store, carrier, altered(JOB, id="a"), altered(JOB, id="b", run_id="run-2"))
    await store.write(lambda writer: apply(writer, "run-1", m.Cancel("enough", IDA)))
    await store.write(lambda writer: writer.prune(NOW + timedelta(days=1)))
    await store.write(lambda writer: begin(writer, "run-1"))
    await emit(store, carrier, altered(JOB, id="a"))
    async with working(carrier, worker.perform):
        await worker.until(done=2)
    assert worker.done == ["b", "a"]


async def test_the_jobs_that_wait_are_those_that_are_due_and_held_by_nobody(store: Store) -> None:
    later = NOW + timedelta(hours=1)
    jobs = (JOB, altered(JOB, id="second"), altered(JOB, id="tick", kind="tick", due_at=later))
    await store.write(lambda writer: writer.put_jobs(jobs))
    assert dict(await store.read(lambda reader: reader.jobs_waiting(NOW))) == {"perform": 2}
    claim = await store.write(lambda writer: writer.claim_job("me", NOW, NOW + timedelta(seconds=LEASE_S)))
    assert claim is not None
    assert dict(await store.read(lambda reader: reader.jobs_waiting(NOW))) == {"perform": 1}
    assert dict(await store.read(lambda reader: reader.jobs_waiting(later))) == {"perform": 2, "tick": 1}
    await store.write(lambda writer: writer.finish_job(claim))
    assert dict(await store.read(lambda reader: reader.jobs_waiting(later))) == {"perform": 1, "tick": 1}
