"""Whatever write fails inside an answer at a gate: gate, votes, record and run stay as they were, and answerable."""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from carried import carried
from faulty_disk import FaultyDisk
from host import HOST
from service import Shop, broken, finished, person
from wholeness import whole

from procedo.app import App, RandomIds, assemble
from procedo.config import load
from procedo.core import messages as m
from procedo.core.state import Run, Status, Verdict
from procedo.errors import StoreError
from procedo.runs import Snapshot
from procedo.stores.sqlite import SqliteStore

pytestmark = pytest.mark.anyio

CONFIG = """
[sop.approval]
break_glass = ["ada"]
request_route = "ops"

[sop.approval.groups.editors]
members = ["ida", "noor"]

[sop.approval.policies.one]
timeout = "1h"
on_timeout = "deny"

[sop.approval.policies.pair]
required_group = "editors"
quorum = 2

[notices.ops]
type = "command"
argv = ["true"]
"""
LETTER = """1. **Draft** — Write the letter.
2. **Judge** — Read it.
   - kind: checkpoint
   - edit: body
   - policy: {policy}
3. **Send** — Send it."""
PAY = "1. **Pay** — Pay it.\n   - requires_confirmation: true\n   - policy: {policy}\n2. **Tell** — Tell."
DRAFT = {"title": "T", "body": "old"}
IDA, NOOR, ADA = person("ida"), person("noor"), person("ada")


@dataclass
class Scene:
    """An application on a disk that may fail, with a run that waits at a gate."""

    shop: Shop
    app: App
    disk: FaultyDisk
    run_id: str

    @property
    async def gate_id(self) -> str:
        (gate,) = [gate for gate in (await self.app.runs.history(self.run_id)).gates if gate.live]
        return gate.id

    async def decide(self, verdict: Verdict, who: Any = IDA, **more: Any) -> Snapshot:
        return await self.app.runs.decide(await self.gate_id, verdict, who, **more)


@asynccontextmanager
async def scene(folder: Path, sop: str, policy: str) -> AsyncIterator[Scene]:
    shop = Shop(folder, CONFIG)
    shop.sop("letter", LETTER.format(policy=policy))
    shop.sop("pay", PAY.format(policy=policy))
    disk = FaultyDisk()
    settings = load(folder)
    store = await SqliteStore.open(shop.file, connect=disk.connect)
    try:
        app = assemble(settings, store, shop.clock, RandomIds())
        snapshot = await finished(app, sop, *([DRAFT] if sop == "letter" else []))
        await carried(app, shop.clock)
        yield Scene(shop, app, disk, snapshot.run.id)
    finally:
        disk.nth = 0
        await store.close()


Act = Callable[[Scene], Awaitable[Any]]


async def _second_vote(at: Scene) -> Any:
    return await at.decide(Verdict.APPROVE, NOOR)


async def _expiry(at: Scene) -> Any:
    return await at.app.runs.command(at.run_id, m.Tick())


@dataclass
class Case:
    """What is tried, in which scene, after what, and what is there when it worked."""

    name: str
    act: Act
    kinds: list[str]
    sop: str = "pay"
    policy: str = "human"
    before: Act | None = None
    passing: float = 0.0


async def _ida_votes(at: Scene) -> Any:
    return await at.decide(Verdict.APPROVE)


CASES = [
    Case("approve", lambda at: at.decide(Verdict.APPROVE), ["GateResolved", "ExecutionOpened"]),
    Case("deny", lambda at: at.decide(Verdict.DENY, comment="no"), ["GateResolved", "RunCancelled"]),
    Case(
        "amend",
        lambda at: at.decide(Verdict.AMEND, value="new"),
        ["GateResolved", "ExecutionOpened", "ExecutionCompleted", "Routed", "StepVisited", "ExecutionOpened"],
        sop="letter",
    ),
    Case(
        "release a checkpoint",
        lambda at: at.decide(Verdict.APPROVE),
        ["GateResolved", "ExecutionOpened", "ExecutionCompleted", "Routed", "StepVisited", "ExecutionOpened"],
        sop="letter",
    ),
    Case(
        "revise",
        lambda at: at.decide(Verdict.REVISE, comment="shorter"),
        ["RevisionAsked", "ExecutionOpened"],
        sop="letter",
    ),
    Case("vote", _ida_votes, ["VoteCast"], policy="pair"),
    Case("complete a quorum", _second_vote, ["GateResolved", "ExecutionOpened"], policy="pair", before=_ida_votes),
    Case("retract", lambda at: at.decide(Verdict.RETRACT), ["VoteRetracted"], policy="pair", before=_ida_votes),
    Case(
        "break the glass",
        lambda at: at.decide(Verdict.APPROVE, ADA, comment="fire", break_glass=True),
        ["GlassBroken", "GateResolved", "ExecutionOpened"],
        policy="pair",
    ),
    Case("expire", _expiry, ["GateResolved", "RunCancelled"], policy="one", passing=3600),
    Case("pause", lambda at: at.app.runs.hold(at.run_id, "lunch", IDA), ["RunHeld"]),
    Case("cancel", lambda at: at.app.runs.cancel(at.run_id, "enough", IDA), ["RunCancelled"]),
]


async def everything(at: Scene) -> tuple[Run, Any, Any]:
    """The run with its record, its gates, and the jobs that are to be done, as another process finds them."""
    other = await SqliteStore.open(at.shop.file)
    try:
        run, records = await other.read(lambda reader: whole(reader, at.run_id))
        gates = await other.read(lambda reader: reader.gates(at.run_id))
    finally:
        await other.close()
    with closing(sqlite3.connect(at.shop.file)) as connection:
        jobs = connection.execute("SELECT id, kind, done FROM jobs ORDER BY job").fetchall()
    return run, (records, gates), jobs


async def refused(attempt: Awaitable[Any]) -> str:
    """What the store said, or nothing when the attempt went well."""
    try:
        await attempt
    except StoreError as error:
        return error.message
    return ""


@pytest.mark.requirement("C7", "C76")
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
async def test_an_answer_whose_writes_fail_anywhere_is_not_there_at_all_and_can_be_given_again(
    tmp_path: Path, case: Case
) -> None:
    async with scene(tmp_path, case.sop, case.policy) as at:
        if case.before is not None:
            await case.before(at)
        at.shop.clock.pass_by(case.passing)
        before = await everything(at)
        failed: list[str] = []
        for nth in range(1, 100):
            at.disk.nth = nth
            told = await refused(case.act(at))
            if not told:
                break
            assert "disk I/O error" in told
            failed.append(at.disk.failed)
            assert await everything(at) == before, at.disk.failed
        assert at.disk.nth > 0, "a write was failed, and nobody was told"
        at.disk.nth = 0
        assert {"BEGIN IMMEDIATE", "INSERT INTO transitions", "UPDATE runs SET", "COMMIT"} <= set(failed)
        run, (records, _), _ = await everything(at)
        assert run.revision == before[0].revision + 1
        assert [record.kind for record in records[len(before[1][0]) :]] == case.kinds


@pytest.mark.requirement("C76")
async def test_an_expiry_that_cannot_be_written_leaves_the_gate_and_happens_later(tmp_path: Path) -> None:
    async with scene(tmp_path, "pay", "one") as at:
        at.shop.clock.pass_by(3600)
        with broken(at.shop, "transitions"):
            with pytest.raises(StoreError):
                await at.decide(Verdict.APPROVE)
            run, (records, gates), _ = await everything(at)
            assert (run.status, gates[0].verdict) == (Status.WAITING_APPROVAL, None)
            assert "GateResolved" not in [record.kind for record in records]
        await carried(at.app, at.shop.clock)
        run, (records, gates), _ = await everything(at)
        assert (run.status, gates[0].verdict, gates[0].expired) == (Status.CANCELLED, Verdict.DENY, True)


@pytest.mark.requirement("C84")
async def test_votes_that_cannot_be_read_are_an_error_and_no_tally_of_zero(tmp_path: Path) -> None:
    async with scene(tmp_path, "pay", "pair") as at:
        await _ida_votes(at)
        gate_id, run_id, shop = await at.gate_id, at.run_id, at.shop
    with closing(sqlite3.connect(shop.file, isolation_level=None)) as connection:
        (data,) = connection.execute("SELECT data FROM gates WHERE id = ?", (gate_id,)).fetchone()
        spoiled = data.replace('"verdict":"approve"', '"verdict":"perhaps"')
        assert spoiled != data
        connection.execute("UPDATE gates SET data = ? WHERE id = ?", (spoiled, gate_id))
    async with shop.opened() as app:
        with pytest.raises(StoreError):
            await app.runs.decide(gate_id, Verdict.APPROVE, NOOR)
        with pytest.raises(StoreError):
            await app.runs.look(run_id)
    with closing(sqlite3.connect(shop.file, isolation_level=None)) as connection:
        connection.execute("UPDATE gates SET data = ? WHERE id = ?", (data, gate_id))
    async with shop.opened() as app:
        after = await app.runs.decide(gate_id, Verdict.APPROVE, NOOR)
        assert [execution.id for execution in after.run.open_executions] == ["1.1"]


@pytest.mark.requirement("C11")
async def test_a_yes_without_a_free_slot_is_kept_and_the_run_goes_on_by_itself_when_one_frees(tmp_path: Path) -> None:
    shop = Shop(tmp_path, "")
    shop.sop("pay", PAY.format(policy="human"), "max_concurrent = 1")
    shop.sop("write", "1. **Write** — Write.", "max_concurrent = 1")
    shop.configure("[sop]\nmax_concurrent_total = 1\n")
    async with shop.opened(worker=True) as app:
        parked = await app.runs.start("pay", None, HOST)
        running = await app.runs.start("write", None, HOST)
        assert running.run.status is Status.RUNNING
        with pytest.raises(Exception, match=running.run.id):
            await app.runs.start("write", None, HOST)
        (gate,) = parked.run.open_gates
        approved = await app.runs.decide(gate.id, Verdict.APPROVE, IDA)
        assert (approved.run.open_gates, approved.run.open_executions) == ((), ())
        assert running.run.id in approved.run.slot_reason
    async with shop.opened(worker=True) as app:
        waiting = await app.runs.state(parked.run.id, HOST)
        assert running.run.id in waiting.run.slot_reason
        await app.runs.advance(running.run.id, "1.1", "completed", "done", HOST)
        with anyio.fail_after(240):
            goes_on = await app.runs.wait(parked.run.id, HOST, 240)
        assert [execution.id for execution in goes_on.run.open_executions] == ["1.1"]
        history = await app.runs.history(parked.run.id)
        assert [record.kind for record in history.records].count("GateResolved") == 1
