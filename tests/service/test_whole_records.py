"""What is kept: all of a transition or nothing of it, each end once, and no litter beside it."""

from pathlib import Path

import pytest
from host import HOST
from service import CLOSED, Shop, broken, finished, person

from procedo.core.state import Status, Verdict
from procedo.errors import StoreError

pytestmark = pytest.mark.anyio

LETTER = """1. **Draft** — Write the letter.
2. **Judge** — Read it.
   - kind: checkpoint
   - edit: body
3. **Send** — Send it.
   - requires_confirmation: true"""
DRAFT = {"title": "T", "body": "old"}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    made = Shop(tmp_path)
    made.sop("letter", LETTER, "max_concurrent = 4")
    return made


async def kinds(shop: Shop, run_id: str) -> list[str]:
    async with shop.opened() as app:
        return [record.kind for record in (await app.runs.history(run_id)).records]


@pytest.mark.requirement("C7", "C43")
@pytest.mark.parametrize("verdict", [Verdict.APPROVE, Verdict.AMEND, Verdict.DENY])
@pytest.mark.parametrize(("table", "operation"), [("transitions", "INSERT"), ("gates", "UPDATE"), ("runs", "UPDATE")])
async def test_a_decision_whose_record_cannot_be_written_does_not_happen(
    shop: Shop, verdict: Verdict, table: str, operation: str
) -> None:
    async with shop.opened() as app:
        parked = await finished(app, "letter", DRAFT)
        (gate,) = parked.run.open_gates
        value = "new" if verdict is Verdict.AMEND else None
        with broken(shop, table, operation), pytest.raises(StoreError, match=CLOSED):
            await app.runs.decide(gate.id, verdict, person("ida"), value=value)
        before = parked.run
    assert "GateResolved" not in await kinds(shop, before.id)
    async with shop.opened() as app:
        after = (await app.runs.look(before.id)).run
        assert (after.status, after.revision, after.open_gates) == (before.status, before.revision, before.open_gates)
        decided = await app.runs.decide(gate.id, verdict, person("ida"), value=value)
        assert decided.run.revision == before.revision + 1
    assert (await kinds(shop, before.id)).count("GateResolved") == 1


@pytest.mark.requirement("C43", "C109")
@pytest.mark.parametrize(("table", "operation"), [("transitions", "INSERT"), ("gates", "INSERT"), ("runs", "UPDATE")])
async def test_a_report_whose_run_cannot_be_parked_leaves_nothing_and_parks_it_later(
    shop: Shop, table: str, operation: str
) -> None:
    async with shop.opened() as app:
        started = await app.runs.start("letter", None, HOST)
        run_id = started.run.id
        with broken(shop, table, operation), pytest.raises(StoreError, match=CLOSED):
            await app.runs.advance(run_id, "1.1", "completed", DRAFT, HOST)
        assert await app.runs.inbox(HOST) == ()
        assert (await app.runs.look(run_id)).run.revision == started.run.revision
        parked = await app.runs.advance(run_id, "1.1", "completed", DRAFT, HOST)
        assert parked.replayed is False
        assert [gate.run_id for gate in await app.runs.inbox(HOST)] == [run_id]
    assert (await kinds(shop, run_id)).count("GateOpened") == 1


@pytest.mark.requirement("C43")
async def test_every_transition_has_its_record_with_who_and_when(shop: Shop) -> None:
    async with shop.opened() as app:
        parked = await finished(app, "letter", DRAFT)
        (gate,) = parked.run.open_gates
        await app.runs.decide(gate.id, Verdict.DENY, person("ida"), comment="too long")
        history = await app.runs.history(parked.run.id)
    revisions = [record.revision for record in history.records]
    assert sorted(set(revisions)) == list(range(1, history.snapshot.run.revision + 1))
    assert [record.seq for record in history.records] == list(range(1, len(history.records) + 1))
    acting = {record.kind: record.acting for record in history.records}
    assert (acting["RunStarted"], acting["GateResolved"]) == ("agent:host:agent", "human:cli:ida")
    assert {record.at for record in history.records} == {shop.clock.now()}


@pytest.mark.requirement("C23")
async def test_each_end_is_counted_once_however_often_it_is_read(shop: Shop) -> None:
    async with shop.opened() as app:
        completed = await finished(app, "letter", DRAFT)
        for _ in range(2):
            (gate,) = completed.run.open_gates
            completed = await app.runs.decide(gate.id, Verdict.APPROVE, person("ida"))
        await app.runs.advance(completed.run.id, "3.1", "completed", "sent", HOST)
        cancelled = await app.runs.start("letter", None, HOST)
        await app.runs.cancel(cancelled.run.id, "enough", person("ida"))
        failed = await app.runs.start("letter", None, HOST)
        await app.runs.advance(failed.run.id, "1.1", "failed", "no ink", HOST)
        await app.runs.advance(failed.run.id, "1.1", "failed", "no ink", HOST)
        counted = [await app.runs.counts(), await app.runs.counts()]
    async with shop.opened() as app:
        counted.append(await app.runs.counts())
    once = {Status.COMPLETED: 1, Status.CANCELLED: 1, Status.FAILED: 1}
    assert [{status: number for status, number in counts.items() if number} for counts in counted] == [once] * 3


@pytest.mark.requirement("C26")
async def test_twenty_finished_runs_leave_the_store_and_nothing_else(shop: Shop) -> None:
    async with shop.opened() as app:
        for _ in range(20):
            snapshot = await finished(app, "letter", DRAFT)
            assert len(list((shop.root / ".procedo").rglob("*.json"))) == 1
            for _ in range(2):
                (gate,) = snapshot.run.open_gates
                snapshot = await app.runs.decide(gate.id, Verdict.APPROVE, person("ida"))
            ended = await app.runs.advance(snapshot.run.id, "3.1", "completed", "sent", HOST)
            assert ended.run.status is Status.COMPLETED
    assert {path.name for path in (shop.root / ".procedo").rglob("*") if path.is_file()} == {"procedo.db"}
    assert {path.name for path in shop.root.iterdir()} == {".procedo", "procedo.toml", "sops"}
