"""Rows of sessions: the same rules in every store."""

from collections.abc import AsyncIterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from engine import BOT, NOW, Desk, plain, sop

from procedo.core.altered import altered
from procedo.core.session import CallRow, Message, SessionRow, SessionState, Transcript, TurnRow
from procedo.errors import Conflict
from procedo.ports import Attribution, Store, Writer
from procedo.stores.memory import MemoryStore
from procedo.stores.sqlite import SqliteStore

pytestmark = pytest.mark.anyio

ROW = SessionRow("run-1", "1.1", "reviewer", "host", "agent:host:x", 1, "local", 1, NOW, NOW)
TURN = TurnRow(1, "d", "gpt", NOW, answered=True, input_tokens=10, output_tokens=2, cost_usd="0.25")
CALL = CallRow(1, 0, "c1", "built_in:file_read", "file_read", "s", {"path": "a"}, "digest", NOW)
MESSAGE = Message(1, "request", {"parts": ["hello"]}, "2.68.0", NOW)


@pytest.fixture(params=["sqlite", "memory"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    made: Store = await SqliteStore.open(tmp_path / "s.db") if request.param == "sqlite" else MemoryStore()
    run = altered(Desk(sop(*plain(1))).start().state, revision=1)
    events = Desk(sop(*plain(1))).start().events
    await made.write(lambda w: w.save(None, run, events, Attribution(BOT.key, BOT.key, BOT.key), NOW))
    yield made
    await made.close()


async def put(
    store: Store, row: SessionRow, *, calls: tuple[CallRow, ...] = (), turns: tuple[TurnRow, ...] = ()
) -> None:
    await store.write(lambda w: w.put_session(row, (), turns, calls))


async def test_a_session_is_read_back_as_it_was_written(store: Store) -> None:
    await store.write(lambda w: w.put_session(ROW, (MESSAGE,), (TURN,), (CALL,)))
    assert await store.read(lambda r: r.session("run-1", "1.1")) == Transcript(ROW, (MESSAGE,), (TURN,), (CALL,))
    assert await store.read(lambda r: r.sessions("run-1")) == (ROW,)
    assert await store.read(lambda r: r.session("run-1", "1.2")) is None


async def test_a_row_that_is_known_is_replaced(store: Store) -> None:
    await put(store, ROW, calls=(CALL,))
    done = altered(CALL, text="done")
    ended = altered(ROW, state=SessionState.COMPLETED)
    await put(store, ended, calls=(done, altered(CALL, index=1)))
    found = await store.read(lambda r: r.session("run-1", "1.1"))
    assert found == Transcript(ended, calls=(done, altered(CALL, index=1)))


async def test_a_lost_claim_writes_nothing(store: Store) -> None:
    await put(store, altered(ROW, fence=2))
    with pytest.raises(Conflict, match="taken over"):
        await put(store, ROW, calls=(CALL,))
    found = await store.read(lambda r: r.session("run-1", "1.1"))
    assert found == Transcript(altered(ROW, fence=2))


async def test_costs_are_summed_for_an_agent_and_unknown_ones_counted(store: Store) -> None:
    unknown = altered(TURN, turn=2, cost_usd=None)
    later = altered(TURN, turn=3, at=NOW + timedelta(hours=1))
    await put(store, ROW, turns=(TURN, unknown, later))
    assert await store.read(lambda r: r.spent_since("reviewer", NOW)) == (Decimal("0.50"), 1)
    assert await store.read(lambda r: r.spent_since("reviewer", NOW + timedelta(minutes=1))) == (Decimal("0.25"), 0)
    assert await store.read(lambda r: r.spent_since("writer", NOW)) == (Decimal(0), 0)


async def test_an_action_is_counted_once_and_up_to_the_limit(store: Store) -> None:
    hour_ago = NOW - timedelta(hours=1)

    async def take(call: str, agent: str = "reviewer") -> bool:
        def work(writer: Writer) -> bool:
            return writer.take_action(agent, call, 2, hour_ago, NOW)

        return await store.write(work)

    assert [await take("a"), await take("a"), await take("b"), await take("c")] == [True, True, True, False]
    assert await take("d", "writer")
