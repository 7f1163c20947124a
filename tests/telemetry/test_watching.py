"""Commits are told when they are committed, whoever is cancelled meanwhile and whatever a watcher does."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from engine import NOW
from stored import advance, begin, started

from procedo.core.altered import altered
from procedo.core.notice import Occasion, Telling
from procedo.core.session import CallRow, CallState, Outcome, SessionRow, SessionState, TurnRow
from procedo.errors import StoreError
from procedo.ports import Store, Writer
from procedo.stores.memory import MemoryStore
from procedo.stores.sqlite import SqliteStore
from procedo.telemetry.counting import Counting
from procedo.telemetry.happenings import Commit, Move, Written
from procedo.telemetry.instruments import MODEL_REQUESTS, NOTICES, SESSIONS, TOOL_CALLS
from procedo.telemetry.lines import QUIET, lines_of
from procedo.telemetry.logbook import FIELDS, Logbook
from procedo.telemetry.meters import Meters
from procedo.telemetry.watchedstore import WatchedStore, tell


class Heard:
    """A watcher that remembers."""

    def __init__(self) -> None:
        self.kinds: list[list[str]] = []
        self.moves: list[Move] = []

    def committed(self, commit: Commit) -> None:
        self.moves += commit.moves
        self.kinds += [[type(event).__name__ for event in move.events] for move in commit.moves]


class Faulty:
    def committed(self, commit: Commit) -> None:
        raise ValueError(f"{len(commit.moves)} moves are of no use")


@pytest.fixture(params=["memory", "sqlite"])
async def inner(request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str) -> AsyncIterator[Store]:
    store: Store = MemoryStore() if request.param == "memory" else await SqliteStore.open(tmp_path / "procedo.db")
    yield store
    await store.close()


@pytest.mark.anyio
async def test_a_commit_is_told_once_and_what_was_rolled_back_never(inner: Store) -> None:
    heard = Heard()
    store = WatchedStore(inner, [heard])
    await store.write(begin)
    assert [kinds[0] for kinds in heard.kinds] == ["RunStarted"]

    def torn(writer: Writer) -> None:
        advance(writer, "1.1")
        raise StoreError("torn", "It was torn.")

    with pytest.raises(StoreError, match="It was torn"):
        await store.write(torn)
    assert len(heard.kinds) == 1
    await store.write(lambda writer: advance(writer, "1.1"))
    assert [kinds[0] for kinds in heard.kinds] == ["RunStarted", "ExecutionCompleted"]


@pytest.mark.anyio
async def test_what_is_left_out_where_nobody_debugs_are_lines_for_debugging_alone(inner: Store) -> None:
    heard = Heard()
    store = WatchedStore(inner, [heard])
    await store.write(begin)
    await store.write(lambda writer: advance(writer, "1.1"))
    move = heard.moves[1]
    assert type(move.events[0]) in QUIET
    every, some = list(lines_of(move)), list(lines_of(move, QUIET))
    assert [line.event for line, _ in every] == ["step_completed", "step_opened"]
    assert [line.event for line, _ in some] == ["step_opened"]
    assert {line.level for line, fields in every if (line, fields) not in some} == {logging.DEBUG}


@pytest.mark.anyio
async def test_a_watcher_that_fails_hurts_neither_the_writer_nor_the_others(
    inner: Store, caplog: pytest.LogCaptureFixture
) -> None:
    heard = Heard()
    store = WatchedStore(inner, [Faulty(), heard])
    with caplog.at_level(logging.ERROR, "procedo.telemetry"):
        await started(store, "run-1")
    assert heard.kinds != []
    assert "could not be told by Faulty" in caplog.text


@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.anyio
async def test_a_commit_whose_writer_was_cancelled_is_told_when_it_came_about(tmp_path: Path, begun: bool) -> None:
    heard, inner = Heard(), await SqliteStore.open(tmp_path / "procedo.db")
    store = WatchedStore(inner, [heard])
    reached, go_on = threading.Event(), threading.Event()

    def slow(writer: Writer) -> None:
        reached.set()
        assert go_on.wait(60)
        begin(writer)

    # The writing thread is at this transaction, or has another one before it.
    def occupying(_: Writer) -> None:
        reached.set()
        assert go_on.wait(60)

    other = None if begun else asyncio.create_task(inner.write(occupying))
    if other is not None:
        await asyncio.to_thread(reached.wait, 60)
    writing = asyncio.create_task(store.write(slow))
    await asyncio.to_thread(reached.wait, 60)
    await asyncio.sleep(0)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    go_on.set()
    await store.settled()
    assert [kinds[0] for kinds in heard.kinds] == (["RunStarted"] if begun else [])
    assert (await inner.read(lambda reader: reader.run("run-1")) is not None) is begun
    if other is not None:
        await other
    await inner.close()


def test_notices_that_fail_are_counted_and_told_by_route(caplog: pytest.LogCaptureFixture) -> None:
    commit, meters = Commit(0), Meters()
    good = Telling("run-1", "run-1.g1", "desk", Occasion.OPENED, NOW, 1)
    bad = altered(good, error="the host answered 500", attempts=2)
    commit.tellings += [good, bad, altered(bad, given_up=True)]
    with caplog.at_level(logging.INFO, "procedo.events"):
        tell([Counting(meters), Logbook()], commit)
    outcomes = ("delivered", "failed", "given_up")
    assert [meters.value(NOTICES, "desk", outcome) for outcome in outcomes] == [1, 1, 1]
    told = [getattr(record, FIELDS) for record in caplog.records]
    about = {"run": "run-1", "gate": "run-1.g1", "route": "desk", "occasion": "opened", "attempt": 2}
    assert told == [{**about, "given_up": False}, {**about, "given_up": True}]
    assert "500" not in caplog.text


def test_a_session_that_ends_badly_is_a_warning_and_its_lost_requests_are_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    commit, meters = Commit(0), Meters()
    row = SessionRow("run-1", "2.1", "reviewer", "host", "human:cli:ida", 1, "local", 1, NOW, NOW)
    ended = altered(row, state=SessionState.EXHAUSTED, reason="the pin is 4711", input_tokens=7)
    lost = TurnRow(1, "digest", "small", NOW, lost=True)
    call = CallRow(1, 0, "c", "built_in:shell", "shell", "s", {"a": 4711}, "d", NOW)
    call = altered(call, state=CallState.DONE, outcome=Outcome.DENIED)
    commit.sessions += [Written(row, (lost,), (call,)), Written(ended, (), ())]
    with caplog.at_level(logging.INFO, "procedo.events"):
        tell([Counting(meters), Logbook()], commit)
    assert meters.value(MODEL_REQUESTS, "reviewer", "small", "lost") == 1
    assert meters.value(TOOL_CALLS, "reviewer", "denied") == 1
    assert meters.value(SESSIONS, "reviewer", "exhausted") == 1
    (record,) = caplog.records
    assert (record.levelno, getattr(record, FIELDS)["state"]) == (logging.WARNING, "exhausted")
    assert "4711" not in str(getattr(record, FIELDS))
