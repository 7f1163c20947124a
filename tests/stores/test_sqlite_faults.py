"""A disk that fails at the worst moments. Either all of a transition is there, or nothing of it."""

import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from engine import IDA, plain, sop
from stored import advance, apply, begin, started
from wholeness import whole

from procedo.core import messages as m
from procedo.core.state import Verdict
from procedo.errors import StoreError
from procedo.ports import Writer
from procedo.stores.sqlite import SqliteStore

pytestmark = pytest.mark.anyio

GATED = sop(*plain(2, requires_confirmation=True))


class Disk:
    """Fails when a statement begins with certain words: before it, or after it took effect."""

    def __init__(self) -> None:
        self.words: str | None = None
        self.after = False
        self.error: Callable[[], BaseException] = lambda: sqlite3.OperationalError("disk I/O error")
        self.failed = 0

    def connect(self, path: Path, **options: Any) -> sqlite3.Connection:
        disk = self

        class Connection(sqlite3.Connection):
            def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
                if disk.words is None or not sql.startswith(disk.words):
                    return super().execute(sql, *parameters)
                disk.words = None
                disk.failed += 1
                if disk.after:
                    super().execute(sql, *parameters)
                raise disk.error()

            def executemany(self, sql: str, parameters: Any, /) -> sqlite3.Cursor:
                if disk.words is not None and sql.startswith(disk.words):
                    return self.execute(sql, parameters[0])
                return super().executemany(sql, parameters)

        made: sqlite3.Connection = sqlite3.connect(path, factory=Connection, **options)
        return made


PLACES = [
    "BEGIN",
    "UPDATE runs",
    "INSERT INTO transitions",
    "INSERT INTO executions",
    "INSERT INTO steps",
    "INSERT INTO gates",
    "COMMIT",
]
# A denial ends the run: it opens nothing.
UNTOUCHED = {(Verdict.DENY, "INSERT INTO executions"), (Verdict.DENY, "INSERT INTO steps")}


@pytest.mark.requirement("C7")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("verdict", [Verdict.APPROVE, Verdict.DENY])
async def test_a_decision_that_fails_anywhere_is_not_there_at_all(file: Path, place: str, verdict: Verdict) -> None:
    disk = Disk()
    store = await SqliteStore.open(file, connect=disk.connect)
    await started(store, "run-1", made=GATED)
    before = await store.read(whole)
    decision = partial(apply, run_id="run-1", command=m.Decide("run-1.g1", verdict, IDA, comment="mine"), made=GATED)
    disk.words = place if (verdict, place) not in UNTOUCHED else "COMMIT"
    with pytest.raises(StoreError) as caught:
        await store.write(decision)
    assert disk.failed == 1
    assert "disk I/O error" in caught.value.message
    assert await store.read(whole) == before
    await store.close()
    again = await SqliteStore.open(file)
    assert await again.read(whole) == before
    decided = await again.write(decision)
    assert decided.gates["run-1.g1"].verdict is verdict
    assert (await again.read(whole))[0].revision == 2
    await again.close()


async def test_a_transition_that_was_committed_before_the_reply_got_lost_is_there_once(file: Path) -> None:
    disk = Disk()
    store = await SqliteStore.open(file, connect=disk.connect)
    await started(store, "run-1")
    disk.words, disk.after = "COMMIT", True
    with pytest.raises(StoreError):
        await store.write(partial(advance, execution_id="1.1", output="x"))
    run, records = await store.read(whole)
    assert run.revision == 2
    repeated = await store.write(partial(advance, execution_id="1.1", output="x"))
    assert repeated.revision == 2
    assert (await store.read(whole))[1] == records
    await store.close()


async def test_what_another_process_did_after_a_failure_is_seen(file: Path) -> None:
    """What this process remembers of a run must not outlive a transaction that was rolled back."""
    disk = Disk()
    store = await SqliteStore.open(file, connect=disk.connect)
    await started(store, "run-1")
    disk.words = "COMMIT"
    with pytest.raises(StoreError):
        await store.write(partial(advance, execution_id="1.1", output="mine"))
    other = await SqliteStore.open(file)
    await other.write(partial(advance, execution_id="1.1", output="theirs"))
    await other.close()
    run = await store.read(lambda reader: reader.run("run-1"))
    assert run is not None
    assert run.last_output == "theirs"
    assert (await store.write(partial(advance, execution_id="2.1"))).revision == 3
    await store.close()


async def test_a_full_disk_is_told_and_work_goes_on_when_there_is_room(file: Path) -> None:
    store = await SqliteStore.open(file)
    await started(store, "run-1")
    before = await store.read(whole)
    connection = store._connections[store._writing]

    def limit(pages: int) -> int:
        return int(connection.execute(f"PRAGMA max_page_count = {pages}").fetchone()[0])

    full = await store._writing.run(lambda: limit(1))
    large = {"text": "x" * 50_000}
    with pytest.raises(StoreError) as caught:
        await store.write(partial(advance, execution_id="1.1", output=large))
    assert (caught.value.code, "Free some space" in caught.value.hint) == ("sqlite_full", True)
    assert full > 1
    assert await store.read(whole) == before
    await store._writing.run(lambda: limit(1_000_000))
    await store.write(partial(advance, execution_id="1.1", output=large))
    await store.close()


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, LookupError])
async def test_whatever_breaks_a_transaction_it_is_rolled_back(file: Path, error: type[BaseException]) -> None:
    store = await SqliteStore.open(file)
    await started(store, "run-1")
    before = await store.read(whole)

    def work(writer: Writer) -> None:
        advance(writer, "1.1")
        raise error

    with pytest.raises(error):
        await store.write(work)
    assert await store.read(whole) == before
    await store.close()


async def test_a_name_that_no_file_can_hold_is_refused(file: Path) -> None:
    store = await SqliteStore.open(file)
    with pytest.raises(StoreError) as caught:
        await store.write(partial(begin, key="half \ud800"))
    assert caught.value.code == "no_text"
    assert await store.read(lambda reader: reader.run_ids()) == ()
    await store.write(partial(begin, key="whole \U0001f600"))
    await store.close()


async def test_a_caller_that_is_cancelled_leaves_a_whole_store(file: Path) -> None:
    store = await SqliteStore.open(file)
    await started(store, "run-1")
    with anyio.CancelScope() as scope:
        scope.cancel()
        await store.write(partial(advance, execution_id="1.1"))
    run, _ = await store.read(whole)
    assert run.revision in (1, 2)
    await store.close()
