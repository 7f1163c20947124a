"""What somebody does to the record behind our back shows, whatever it is."""

# ruff: noqa: S608  # the statements are made of names in this file

import sqlite3
from functools import partial
from pathlib import Path

import pytest
from engine import BOT, IDA, NOW, condition, plain, sop
from stored import advance, apply, begin, started
from wholeness import whole

from procedo.audit import Verified, verify
from procedo.core import messages as m
from procedo.core.model import FailureRule, Kind, OnFailure, Sop, Step
from procedo.core.state import Phase, Verdict
from procedo.ports import Store
from procedo.stores.sqlite import SqliteStore

pytestmark = pytest.mark.anyio

EVENTS = "SELECT events FROM transitions WHERE run = 1 AND revision = {}"


def tampered(file: Path, *statements: str) -> None:
    """Change the file as somebody would who knows SQL, and takes the guards away first."""
    connection = sqlite3.connect(file, isolation_level=None)
    for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(
    ("statements", "says"),
    [
        (["UPDATE transitions SET acting = 'human:cli:noor' WHERE revision = 2"], "does not fit its hash"),
        (["UPDATE transitions SET root = 'human:cli:noor' WHERE revision = 2"], "does not fit its hash"),
        (["UPDATE transitions SET at = '2020-01-01T00:00:00.000000Z' WHERE revision = 2"], "does not fit its hash"),
        ([f"UPDATE transitions SET events = ({EVENTS.format(3)}) WHERE revision = 2"], "does not fit its hash"),
        (["UPDATE transitions SET hash = zeroblob(32) WHERE revision = 2"], "does not fit its hash"),
        (["DELETE FROM transitions WHERE revision = 2"], "is missing"),
        (["DELETE FROM transitions WHERE revision = 1"], "is missing"),
        (["DELETE FROM transitions WHERE revision = 4"], "its record ends with"),
        (["DELETE FROM transitions"], "its record ends with"),
        (
            [
                "UPDATE transitions SET revision = 99 WHERE revision = 2",
                "UPDATE transitions SET revision = 2 WHERE revision = 3",
                "UPDATE transitions SET revision = 3 WHERE revision = 99",
            ],
            "is missing",
        ),
        (
            [
                "INSERT INTO transitions SELECT run, 5, seq + 5, at, acting, delegating, root, format, events, hash "
                "FROM transitions WHERE revision = 4"
            ],
            "is missing",
        ),
        (["UPDATE transitions SET events = x'00' WHERE revision = 2"], "damaged"),
        (["UPDATE runs SET head_hash = zeroblob(32)"], "last record's hash"),
        (
            ["UPDATE executions SET data = replace(data, 'some-client', 'other') WHERE id = '1.1'"],
            "its executions differ",
        ),
        (["DELETE FROM executions WHERE id = '2.1'"], "its executions"),
        (["UPDATE steps SET visits = 7 WHERE step = 1"], "its steps differ"),
        (["UPDATE steps SET output = '7' WHERE step = 1"], "its steps differ"),
        (["UPDATE runs SET body = replace(body, 'enough', 'other')"], "the run itself differ"),
        (["UPDATE origins SET data = replace(data, ':\"marker\"', ':\"other\"')"], "the run itself differ"),
    ],
)
async def test_a_change_behind_our_back_shows(file: Path, statements: list[str], says: str) -> None:
    store = await SqliteStore.open(file)
    await started(store, "run-1", "run-2")
    for number in (1, 2):
        await store.write(partial(advance, execution_id=f"{number}.1", output=number))
    await store.write(lambda writer: apply(writer, "run-1", m.Cancel("enough", IDA)))
    before = await verify(store, "run-1")
    assert (before.broken, before.records > 0) == ((), True)
    await store.close()
    tampered(file, *(one if "run = 1" in one else with_run(one) for one in statements))
    store = await SqliteStore.open(file)
    after = await verify(store, "run-1")
    assert len(after.broken) == 1
    assert says in after.broken[0]
    assert (await verify(store, "run-2")).broken == ()
    await store.close()


def with_run(statement: str) -> str:
    """The same change, in the first run only."""
    return f"{statement} {'AND' if 'WHERE' in statement else 'WHERE'} run = 1"


async def test_a_run_that_does_not_exist_has_no_record(store: Store) -> None:
    assert (await verify(store, "run-9")).records == 0


# --- the record makes the run --------------------------------------------------------------------


def reported(execution_id: str, output: object = None, status: Phase = Phase.COMPLETED) -> m.Report:
    return m.Report(execution_id, status, output, BOT)


def decided(gate: int, verdict: Verdict = Verdict.APPROVE, value: object = None) -> m.Decide:
    return m.Decide(f"run-1.g{gate}", verdict, IDA, value, "seen")


RETRIED = sop(Step(1, "Try", on_failure=FailureRule(OnFailure.RETRY, 1, 30.0)), Step(2, "Then"))
FORKED = sop(
    Step(1, "Split", next=(2, 3)),
    Step(2, "Left", next=(4,)),
    Step(3, "Right", next=(4,)),
    Step(4, "Join", depends_on=(2, 3)),
)
EACH = sop(Step(1, "Each", for_each="{{inputs.items}}", max_parallel=2), Step(2, "Then"))
CHECKED = sop(Step(1, "Draft"), Step(2, "Look", kind=Kind.CHECKPOINT), Step(3, "Go"))
SKIPPED = sop(Step(1, "Go"), Step(2, "Never", precondition=condition("x", "x", 1)), Step(3, "End"))

STORIES: dict[str, tuple[Sop, list[m.Command]]] = {
    "to its end": (sop(*plain(3)), [reported("1.1", {"a": 1}), reported("2.1"), reported("3.1", [True])]),
    "held, released and cancelled": (
        sop(*plain(2)),
        [m.Hold(IDA, "lunch"), reported("1.1"), m.Release(IDA), m.Cancel("enough", IDA)],
    ),
    "failed, and tried again later": (RETRIED, [reported("1.1", "it broke", Phase.FAILED)]),
    "failed for good": (sop(*plain(1)), [reported("1.1", "it broke", Phase.FAILED)]),
    "skipped": (SKIPPED, [reported("1.1", None, Phase.SKIPPED), reported("3.1")]),
    "forked and joined": (FORKED, [reported("1.1", 1), reported("2.1", 2), reported("3.1", 3), reported("4.1", 4)]),
    "for each": (
        EACH,
        [reported("1.1", "x"), reported("1.2", None, Phase.SKIPPED), reported("1.3", "z"), reported("2.1")],
    ),
    "gated and denied": (sop(*plain(1, requires_confirmation=True)), [decided(1, Verdict.DENY)]),
    "a checkpoint passed": (CHECKED, [reported("1.1", {"text": "x"}), decided(1), reported("3.1")]),
}


@pytest.mark.parametrize("name", STORIES)
async def test_the_events_make_the_stored_run_after_each_transition(store: Store, name: str) -> None:
    made, commands = STORIES[name]
    await store.write(partial(begin, made=made, inputs={"items": ["a", "b", "c"]}))
    run, _ = await store.read(whole)
    for command in commands:
        saved = await store.write(partial(apply, run_id="run-1", command=command, made=made))
        run, _ = await store.read(whole)
        assert run.revision == saved.revision
    assert run.revision == len(commands) + 1
    assert await verify(store, "run-1") == Verified(run.seq, ())
    assert run.started_at == NOW
