"""What became of notices is kept with the run, the latest moment of each gate and route."""

from datetime import timedelta

import pytest
from engine import NOW
from stored import started

from procedo.core.altered import altered
from procedo.core.notice import Occasion, Telling
from procedo.ports import Store

pytestmark = pytest.mark.anyio

TOLD = Telling("run-1", "run-1.g1", "ops", Occasion.OPENED, NOW, 1)
FAILED = altered(TOLD, route="boss", attempts=3, error="no answer")


async def test_a_later_moment_takes_the_place_of_the_one_before(store: Store) -> None:
    await started(store, "run-1")
    later = altered(TOLD, occasion=Occasion.RESOLVED, at=NOW + timedelta(hours=1))
    for one in (TOLD, FAILED, later):
        await store.write(lambda writer, one=one: writer.put_telling(one))  # type: ignore[misc]  # the default binds
    assert await store.read(lambda reader: reader.tellings("run-1")) == (FAILED, later)
    assert await store.read(lambda reader: reader.tellings("run-2")) == ()


async def test_what_failed_is_found_across_runs_until_it_is_delivered(store: Store) -> None:
    await started(store, "run-1")
    await started(store, "run-2")
    other = Telling("run-2", "run-2.g1", "ops", Occasion.OPENED, NOW - timedelta(hours=1), 100, "gone", given_up=True)
    for one in (TOLD, FAILED, other):
        await store.write(lambda writer, one=one: writer.put_telling(one))  # type: ignore[misc]  # the default binds
    assert await store.read(lambda reader: reader.tellings()) == (other, FAILED)
    await store.write(lambda writer: writer.put_telling(altered(FAILED, error="")))
    assert await store.read(lambda reader: reader.tellings()) == (other,)


async def test_nothing_is_kept_for_a_run_that_does_not_exist(store: Store) -> None:
    await store.write(lambda writer: writer.put_telling(FAILED))
    assert await store.read(lambda reader: reader.tellings()) == ()


async def test_a_transaction_that_fails_keeps_no_telling(store: Store) -> None:
    await started(store, "run-1")

    def fail(writer: object) -> None:
        writer.put_telling(FAILED)  # type: ignore[attr-defined]  # a writer
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await store.write(fail)
    assert await store.read(lambda reader: reader.tellings("run-1")) == ()
