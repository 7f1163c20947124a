"""What every store does, so that the engine room need not know which one it has."""

import hashlib
import json
from collections.abc import Callable, Coroutine
from datetime import timedelta
from functools import partial
from operator import methodcaller
from typing import Any

import anyio
import pytest
from engine import BOT, IDA, NOW, condition, plain, sop
from msgspec.structs import asdict
from stored import LINE, WHO, Book, advance, apply, begin, folded, load, started

from procedo.core import messages as m
from procedo.core.admission import Load
from procedo.core.altered import altered
from procedo.core.model import Kind, Mode, Step
from procedo.core.state import (
    Arrival,
    Execution,
    Fan,
    Held,
    Parent,
    Pause,
    Pending,
    Performer,
    Phase,
    Run,
    Status,
    StepState,
    Verdict,
)
from procedo.errors import Conflict, StoreError
from procedo.ports import Definition, Filter, Job, Reader, Store, StoredKey, Writer

pytestmark = pytest.mark.anyio

GATED = sop(altered(plain(1)[0], requires_confirmation=True), Step(2, "Step 2"))
LATER = NOW + timedelta(hours=1)


async def run_of(store: Store, run_id: str = "run-1") -> Run:
    run = await store.read(lambda reader: reader.run(run_id))
    assert run is not None
    return run


# --- one run -------------------------------------------------------------------------------------


async def test_a_new_run_is_found_with_what_is_open_in_it(store: Store) -> None:
    saved = await store.write(lambda writer: begin(writer, inputs={"b": [1, None], "a": "é\ud800"}))
    found = await run_of(store)
    assert found == altered(saved, steps={})
    assert (found.revision, found.seq, len(found.head_hash)) == (1, saved.seq, 64)
    assert [execution.id for execution in found.open_executions] == ["1.1"]
    assert await store.read(lambda reader: reader.run("run-2")) is None


async def test_a_closed_execution_and_the_steps_come_only_when_they_are_asked_for(store: Store) -> None:
    await started(store, "run-1")
    saved = await store.write(lambda writer: advance(writer, "1.1", output={"ok": True}))
    found = await run_of(store)
    assert list(found.executions) == ["2.1"]
    assert found.steps == {}
    more = await store.read(lambda reader: reader.with_executions(found, ["1.1", "9.9"]))
    assert set(more.executions) == {"1.1", "2.1"}
    assert more.executions["1.1"] == saved.executions["1.1"]
    steps = await store.read(lambda reader: reader.with_steps(found, [1, 3]).steps)
    assert steps == {1: saved.steps[1], 3: StepState()}
    assert steps[1].output == {"ok": True}


@pytest.mark.requirement("C111")
async def test_a_run_goes_to_its_end_and_stays_there(store: Store) -> None:
    await started(store, "run-1")
    for number in (1, 2, 3):
        last = await store.write(partial(advance, execution_id=f"{number}.1", output={"step": number}))
    found = await run_of(store)
    assert found == altered(last, steps={}, executions={})
    assert (found.status, found.last_output) == (Status.COMPLETED, {"step": 3})
    executions = await store.read(lambda reader: reader.executions("run-1"))
    assert [(e.id, e.phase, e.closing and e.closing.output) for e in executions] == [
        (f"{n}.1", Phase.COMPLETED, {"step": n}) for n in (1, 2, 3)
    ]
    changed = altered(found, revision=found.revision + 1, seq=found.seq + 1)
    with pytest.raises(Conflict) as caught:
        await store.write(lambda writer: writer.save(found, changed, [m.RunHeld(BOT)], WHO, NOW))
    assert caught.value.code == "run_ended"
    assert await run_of(store) == found


async def test_a_large_output_comes_back_from_wherever_it_is_kept(store: Store) -> None:
    large = {"text": "x" * 5_000}
    await started(store, "run-1")
    await store.write(lambda writer: advance(writer, "1.1", output=large))
    found = await run_of(store)
    assert found.last_output == large
    steps = await store.read(lambda reader: reader.with_steps(found, [1]).steps)
    assert steps[1].output == large
    await store.write(lambda writer: apply(writer, "run-1", m.Hold(IDA, "lunch")))
    assert (await run_of(store)).last_output == large
    await store.write(lambda writer: apply(writer, "run-1", m.Release(IDA)))
    await store.write(lambda writer: advance(writer, "2.1", output=0))
    assert (await run_of(store)).last_output == 0


async def test_a_change_of_type_alone_is_a_change(store: Store) -> None:
    """`1`, `1.0` and `True` are equal in Python; they are not the same output."""
    loop = sop(Step(1, "Again", next=(1,)))
    await started(store, "run-1", made=loop)
    for number, output in enumerate((1, True, 1.0), 1):
        await store.write(partial(advance, execution_id=f"1.{number}", output=output, made=loop))
        found = await run_of(store)
        steps = (await store.read(methodcaller("with_steps", found, [1]))).steps
        assert (repr(found.last_output), repr(steps[1].output)) == (repr(output), repr(output))


def full(run: Run) -> Run:
    """A run with something in every place where something can be."""
    arrival = Arrival(2, ("1.1",), 3, "why", 4, "guidance")
    return altered(
        run,
        revision=1,
        seq=9,
        key="k",
        parent=Parent("run-0", "7.1", 2),
        retry_of="run-9",
        pins={"other": "e" * 64},
        executors=frozenset({"a", "b"}),
        executions={"2.1": Execution("2.1", arrival, Performer.CHILD, "host", NOW, Phase.HALTED, LATER, [1], 7, True)},
        gate_count=5,
        pending=(Pending(arrival, (3, 4), LATER), Pending(Arrival(3))),
        held=(Held(arrival, True),),
        slot_reason="max_concurrent",
        slot_since=NOW,
        fans={2: Fan(arrival, ({"a": 1}, None, 0), 2, {0: "2.1", 1: "2.2"}, {0: {"x": None}, 1: None})},
        steps={2: StepState(3, 2, "2.9", {"own": 1}, 5, 6)},
        last_output=["x"],
        pause=Pause("ida", NOW, "lunch"),
    )


async def test_nothing_of_a_run_is_lost(store: Store) -> None:
    made = m.RunStarted("run-1", "kiln", "d" * 64, "2.0.0", Mode.AUTO, "me", IDA, "mark", {"in": [1]})
    run = full(folded(None, [made], NOW))
    saved = await store.write(lambda writer: writer.save(None, run, [made, *[m.RunHeld(BOT)] * 8], WHO, NOW))
    found = await store.read(lambda reader: reader.with_steps(reader.run("run-1") or run, [2]))
    assert found == saved
    assert altered(found, head_hash="") == run


async def test_items_of_a_for_each_are_kept_and_go_with_it(store: Store) -> None:
    made = sop(Step(1, "Each", for_each="{{inputs.items}}", max_parallel=2))
    book = Book(store, made)
    await book.begin({"items": ["a", "b", "c"]})
    run = await run_of(store)
    assert run.fans[1].items == ("a", "b", "c")
    for execution_id in [e.id for e in run.open_executions]:
        await book.report(execution_id, {"did": execution_id})
    run = await run_of(store)
    assert run.fans[1].done == {0: "1.1", 1: "1.2"}
    assert run.fans[1].outputs == {0: {"did": "1.1"}, 1: {"did": "1.2"}}
    assert run.fans[1].following == 3
    for execution in run.open_executions:
        await book.report(execution.id, None)
    run = await run_of(store)
    assert run.fans == {}
    assert run.last_output == [{"did": "1.1"}, {"did": "1.2"}, None]


async def test_a_for_each_that_begins_again_forgets_its_earlier_items(store: Store) -> None:
    await started(store, "run-1")
    run = await run_of(store)
    first = Fan(Arrival(1), ("a", "b"), 2, {0: "1.1", 1: "1.2"}, {0: 1, 1: 2})
    second = Fan(Arrival(1, attempt=2), ("c",), 1)
    for fan in (first, second):
        after = altered(run, fans={1: fan}, revision=run.revision + 1, seq=run.seq + 1)
        await store.write(methodcaller("save", run, after, [m.RunHeld(BOT)], WHO, NOW))
        run = await run_of(store)
        assert run.fans == {1: fan}


# --- revisions -----------------------------------------------------------------------------------


@pytest.mark.requirement("C111")
async def test_two_changes_of_one_revision_have_one_winner(store: Store) -> None:
    await started(store, "run-1")
    seen = await store.read(lambda reader: load(reader, LINE, "run-1"))

    def late(writer: Writer) -> Run:
        events = [m.RunHeld(IDA)]
        return writer.save(seen, folded(seen, events, NOW), events, WHO, NOW)

    won = await store.write(lambda writer: advance(writer, "1.1"))
    with pytest.raises(Conflict) as caught:
        await store.write(late)
    assert caught.value.code == "stale_revision"
    assert "revision 2" in caught.value.message
    assert (await run_of(store)).head_hash == won.head_hash


@pytest.mark.parametrize(
    ("change", "error", "code"),
    [
        (lambda run: altered(run, revision=run.revision + 1), Conflict, "stale_revision"),
        (lambda run: altered(run, seq=run.seq + 1), StoreError, "wrong_count"),
        (lambda run: altered(run, marker="other"), StoreError, "origin_changed"),
        (lambda run: altered(run, inputs={"other": 1}), StoreError, "origin_changed"),
        (lambda run: altered(run, executions={}), StoreError, "lost"),
    ],
)
async def test_a_change_that_is_not_whole_is_refused(
    store: Store, change: Callable[[Run], Run], error: type[Exception], code: str
) -> None:
    await started(store, "run-1")
    before = await run_of(store)
    events = [m.RunHeld(IDA)]
    right = folded(before, events, NOW)
    with pytest.raises(error) as caught:
        await store.write(lambda writer: writer.save(before, change(right), events, WHO, NOW))
    assert getattr(caught.value, "code", "") == code
    assert await run_of(store) == before
    await store.write(lambda writer: writer.save(before, right, events, WHO, NOW))


async def test_a_run_is_made_once(store: Store) -> None:
    await started(store, "run-1")
    with pytest.raises(Conflict):
        await store.write(lambda writer: begin(writer, "run-1"))
    assert await store.read(lambda reader: reader.run_ids()) == ("run-1",)


async def test_a_transition_without_an_event_is_refused(store: Store) -> None:
    await started(store, "run-1")
    before = await run_of(store)
    with pytest.raises(StoreError):
        await store.write(lambda writer: writer.save(before, altered(before, revision=2), [], WHO, NOW))


async def test_two_transitions_of_one_transaction_both_count(store: Store) -> None:
    def twice(writer: Writer) -> Run:
        begin(writer)
        advance(writer, "1.1")
        return advance(writer, "2.1")

    saved = await store.write(twice)
    assert (await run_of(store)).head_hash == saved.head_hash
    assert saved.revision == 3


# --- transactions --------------------------------------------------------------------------------


async def test_a_transaction_that_raises_leaves_nothing_behind(store: Store) -> None:
    await started(store, "run-1")
    before = await store.read(everything)

    def half(writer: Writer) -> None:
        advance(writer, "1.1")
        begin(writer, "run-2")
        writer.put_definition(Definition("d", "kiln", {"SOP.md": "# Kiln"}))
        writer.put_key(StoredKey("start", "k", "d", "run-2"))
        raise LookupError("in the middle")

    with pytest.raises(LookupError, match="in the middle"):
        await store.write(half)
    assert await store.read(everything) == before
    await store.write(lambda writer: advance(writer, "1.1"))
    assert (await run_of(store)).revision == 2


def everything(reader: Reader) -> tuple[Any, ...]:
    runs = reader.run_ids()
    parts = [(reader.run(i), reader.executions(i), reader.gates(i), reader.records(i)) for i in runs]
    return (runs, parts, reader.definition("d"), reader.key("start", "k"), reader.counts())


async def test_a_closed_store_says_so(store: Store) -> None:
    await store.close()
    await store.close()
    for call in (store.write, store.read):
        with pytest.raises(StoreError) as caught:
            await call(lambda reader: reader.run_ids())
        assert caught.value.code == "store_closed"
    with pytest.raises(StoreError):
        await store.changed(0)


# --- gates ---------------------------------------------------------------------------------------


async def test_a_gate_is_found_by_its_id_and_by_its_code_in_any_case(store: Store) -> None:
    await started(store, "run-1", made=GATED)
    (gate,) = (await run_of(store)).open_gates
    for reference in (gate.id, gate.code, gate.code.lower(), gate.code.upper()):
        (found,) = await store.read(methodcaller("find_gate", reference))
        assert (found.run_id, found.sop, found.digest, found.gate) == ("run-1", GATED.name, GATED.digest, gate)
    assert await store.read(lambda reader: reader.find_gate("nothing")) == ()


async def test_a_decided_gate_leaves_the_open_ones_and_is_still_found(store: Store) -> None:
    book = Book(store, GATED)
    await book.begin()
    (gate,) = (await run_of(store)).open_gates
    await book.do(m.Decide(gate.id, Verdict.APPROVE, IDA, comment="fine"))
    run = await run_of(store)
    assert run.gates == {}
    assert await store.read(lambda reader: reader.open_gates()) == ()
    (found,) = await store.read(lambda reader: reader.find_gate(gate.id))
    assert (found.gate.verdict, found.gate.decided_by, found.gate.comment) == (Verdict.APPROVE, IDA, "fine")
    assert (await store.read(lambda reader: reader.with_gate(run, gate.id))).gates == {gate.id: found.gate}
    assert await store.read(lambda reader: reader.gates("run-1")) == (found.gate,)
    assert await store.read(lambda reader: reader.with_gate(run, "run-2.g1")) == run


async def test_open_gates_come_with_the_longest_waiting_first(store: Store) -> None:
    for run_id, hours in (("run-1", 2), ("run-2", 3), ("run-3", 1), ("run-4", 4)):
        await started(store, run_id, made=GATED, now=NOW + timedelta(hours=hours))
    await store.write(lambda writer: apply(writer, "run-4", m.Cancel("enough", IDA), GATED))
    found = await store.read(lambda reader: reader.open_gates())
    assert [one.run_id for one in found] == ["run-3", "run-1", "run-2"]
    (withdrawn,) = await store.read(lambda reader: reader.find_gate("run-4.g1"))
    assert not withdrawn.gate.open


# --- across runs ---------------------------------------------------------------------------------


async def test_runs_are_listed_with_the_most_recently_active_first(store: Store) -> None:
    other = altered(LINE, name="other")
    await started(store, "run-1", now=NOW)
    await started(store, "run-2", now=NOW + timedelta(hours=1), made=other)
    await started(store, "run-3", now=NOW + timedelta(hours=2))
    late = NOW + timedelta(hours=3)
    await store.write(lambda writer: apply(writer, "run-1", m.Cancel("enough", IDA), now=late))

    async def ids(wanted: Filter) -> list[str]:
        return [one.run_id for one in await store.read(lambda reader: reader.runs(wanted))]

    assert await ids(Filter()) == ["run-1", "run-3", "run-2"]
    assert await ids(Filter(limit=2)) == ["run-1", "run-3"]
    assert await ids(Filter(live=True)) == ["run-3", "run-2"]
    assert await ids(Filter(live=False)) == ["run-1"]
    assert await ids(Filter(sop="other")) == ["run-2"]
    assert await ids(Filter(status=Status.CANCELLED)) == ["run-1"]
    assert await ids(Filter(status=Status.CANCELLED, live=True)) == []
    assert await store.read(lambda reader: reader.run_ids()) == ("run-1", "run-2", "run-3")
    (summary,) = await store.read(lambda reader: reader.runs(Filter(live=False)))
    assert (summary.sop, summary.reason, summary.ended_at, summary.active_at) == (LINE.name, "enough", late, late)
    counts = await store.read(lambda reader: reader.counts())
    assert {status: count for status, count in counts.items() if count} == {Status.RUNNING: 2, Status.CANCELLED: 1}
    assert set(counts) == set(Status)
    assert (await store.read(lambda reader: reader.counts("other")))[Status.RUNNING] == 1


async def test_a_run_in_a_list_tells_its_key_and_who_started_it(store: Store) -> None:
    await started(store, "run-1")
    await store.write(lambda writer: begin(writer, "run-2", key="kiln 4"))
    run = await store.read(lambda reader: reader.run("run-1"))
    listed = {one.run_id: one for one in await store.read(lambda reader: reader.runs(Filter()))}
    assert run is not None
    assert run.starter.subject
    assert {name: (one.key, one.starter) for name, one in listed.items()} == {
        "run-1": (None, run.starter),
        "run-2": ("kiln 4", run.starter),
    }


async def test_admission_sees_who_executes_who_is_parked_and_when_one_completed(store: Store) -> None:
    other = altered(LINE, name="other", digest="e" * 64)
    await started(store, "run-1", "run-2")
    await started(store, "run-3", made=GATED)
    await started(store, "run-4", made=other)
    await store.write(lambda writer: begin(writer, "run-5", key="k"))
    await store.write(lambda writer: apply(writer, "run-2", m.Cancel("enough", IDA)))
    for number in (1, 2, 3):
        await store.write(partial(advance, execution_id=f"{number}.1", now=LATER))
    expected = Load(
        executing=("run-5",),
        executing_total=("run-4", "run-5"),
        parked=("run-3",),
        last_completed_at=LATER,
        key_holder="run-5",
        window_starts=4,
    )
    start = NOW - timedelta(seconds=1)
    assert await store.read(lambda reader: reader.load(LINE.name, "k", start)) == expected
    nothing = altered(expected, key_holder=None, window_starts=0)
    assert await store.read(lambda reader: reader.load(LINE.name, "other", NOW)) == nothing
    assert await store.read(lambda reader: reader.load(LINE.name, None, None)) == nothing
    assert await store.read(lambda reader: reader.load("nothing", "k", start)) == Load(
        executing_total=("run-4", "run-5")
    )


async def test_a_key_is_free_again_when_its_run_has_ended(store: Store) -> None:
    await store.write(lambda writer: begin(writer, "run-1", key="k"))
    assert (await store.read(lambda reader: reader.load(LINE.name, "k", None))).key_holder == "run-1"
    await store.write(lambda writer: apply(writer, "run-1", m.Cancel("enough", IDA)))
    assert (await store.read(lambda reader: reader.load(LINE.name, "k", None))).key_holder is None


async def test_runs_that_wait_for_a_slot_come_with_the_longest_waiting_first(store: Store) -> None:
    for run_id, hours in (("run-1", 2), ("run-2", 1)):
        at = NOW + timedelta(hours=hours)
        await started(store, run_id, made=GATED, now=at)
        decide = m.Decide(f"{run_id}.g1", Verdict.APPROVE, IDA)
        await store.write(partial(apply, run_id=run_id, command=decide, made=GATED, now=at, slot="none is free"))
    assert await store.read(lambda reader: reader.slot_waiters()) == ("run-2", "run-1")
    assert (await run_of(store)).slot_reason == "none is free"
    await store.write(lambda writer: apply(writer, "run-2", m.Tick(), GATED))
    assert await store.read(lambda reader: reader.slot_waiters()) == ("run-1",)


async def test_runs_that_time_changes_come_with_the_longest_due_first(store: Store) -> None:
    for run_id, seconds in (("run-1", 20.0), ("run-2", 10.0), ("run-3", 30.0)):
        await started(store, run_id, made=sop(*plain(1, timeout_s=seconds)))
    await started(store, "run-4")
    now = NOW + timedelta(seconds=20)
    assert await store.read(lambda reader: reader.due_runs(now)) == ("run-2", "run-1")
    assert await store.read(lambda reader: reader.due_runs(NOW)) == ()
    await store.write(lambda writer: apply(writer, "run-2", m.Cancel("enough", IDA)))
    assert await store.read(lambda reader: reader.due_runs(now)) == ("run-1",)


async def test_children_are_found_by_their_parent(store: Store) -> None:
    await started(store, "run-1")

    def child(writer: Writer) -> Run:
        made = m.RunStarted("run-2", "kiln", "d", "1", Mode.AUTO, "host", BOT, "", {}, parent=Parent("run-1", "1.1", 1))
        return writer.save(None, folded(None, [made], NOW), [made], WHO, NOW)

    await store.write(child)
    (found,) = await store.read(lambda reader: reader.children("run-1"))
    assert (found.run_id, found.parent_run) == ("run-2", "run-1")
    assert await store.read(lambda reader: reader.children("run-2")) == ()


# --- beside the runs -----------------------------------------------------------------------------


async def test_a_definition_is_kept_as_it_was_first(store: Store) -> None:
    first = Definition("d1", "kiln", {"SOP.toml": "x = 1", "SOP.md": "# Kiln\r\n\x00é"})
    await store.write(lambda writer: writer.put_definition(first))
    await store.write(lambda writer: writer.put_definition(altered(first, name="other", files={})))
    assert await store.read(lambda reader: reader.definition("d1")) == first
    assert await store.read(lambda reader: reader.definition("d2")) is None


async def test_an_idempotency_key_stands_for_one_run(store: Store) -> None:
    key = StoredKey("start:kiln", "k", "d1", "run-1")
    await store.write(lambda writer: writer.put_key(key))
    await store.write(lambda writer: writer.put_key(key))
    with pytest.raises(Conflict) as caught:
        await store.write(lambda writer: writer.put_key(altered(key, digest="d2")))
    assert "run-1" in caught.value.message
    assert await store.read(lambda reader: reader.key("start:kiln", "k")) == key
    assert await store.read(lambda reader: reader.key("start:other", "k")) is None


# --- the record ----------------------------------------------------------------------------------


async def test_each_event_is_one_record_with_who_when_and_what(store: Store) -> None:
    await started(store, "run-1")
    who = altered(WHO, acting="agent:host:x", delegating="human:cli:ida", root="human:cli:noor")
    before = await store.read(lambda reader: load(reader, LINE, "run-1"))
    events: list[m.Event] = [m.RunHeld(IDA, "lunch"), m.RunReleased(IDA)]
    saved = await store.write(lambda writer: writer.save(before, folded(before, events, LATER), events, who, LATER))
    records = await store.read(lambda reader: reader.records("run-1"))
    assert [one.seq for one in records] == list(range(1, saved.seq + 1))
    assert [one.kind for one in records[:2]] == ["RunStarted", "StepVisited"]
    held = records[-2]
    assert (held.run_id, held.kind, held.revision, held.at) == ("run-1", "RunHeld", 2, LATER)
    assert held.data == {"by": {"kind": "human", "source": "cli", "subject": "ida"}, "reason": "lunch"}
    assert (held.acting, held.delegating, held.root) == ("agent:host:x", "human:cli:ida", "human:cli:noor")
    opened = next(one for one in records if one.kind == "ExecutionOpened")
    assert (opened.execution_id, opened.acting, opened.root) == ("1.1", WHO.acting, WHO.root)
    assert held.execution_id is None
    assert records[-1].hash == saved.head_hash


async def test_records_can_be_read_from_any_number_on(store: Store) -> None:
    await started(store, "run-1")
    await store.write(lambda writer: advance(writer, "1.1"))
    every = await store.read(lambda reader: reader.records("run-1"))
    for after in range(len(every) + 1):
        for limit in (None, 0, 1, 2):
            found = await store.read(methodcaller("records", "run-1", after, limit))
            assert found == every[after:][:limit]
    assert await store.read(lambda reader: reader.records("run-2")) == ()


async def test_anybody_can_recompute_the_chain_from_the_records(store: Store) -> None:
    """The hash is part of the format: a change here means that exported records no longer verify."""
    await started(store, "run-1", made=GATED)
    saved = await store.write(lambda writer: apply(writer, "run-1", m.Cancel("gen\u00fcg", IDA), GATED))
    before = bytes(32)
    for record in await store.read(lambda reader: reader.records("run-1")):
        line = asdict(record)
        del line["hash"], line["execution_id"]
        line["at"] = record.at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        written = json.dumps(line, sort_keys=True, separators=(",", ":"))
        before = hashlib.sha256(before + written.encode("ascii")).digest()
        assert record.hash == before.hex()
    assert saved.head_hash == before.hex()


# --- pruning -------------------------------------------------------------------------------------


async def test_pruning_takes_whole_runs_that_ended_before_and_nothing_else(store: Store) -> None:
    def prepare(writer: Writer) -> None:
        for number, digest in (("1", "d1"), ("2", "d2"), ("3", "d3")):
            begin(writer, f"run-{number}", altered(GATED, digest=digest))
            writer.put_definition(Definition(digest, "kiln", {"SOP.md": digest}))
            writer.put_key(StoredKey("start", number, "d", f"run-{number}"))

    await store.write(prepare)
    for run_id, at in (("run-1", NOW), ("run-2", LATER)):
        await store.write(partial(apply, run_id=run_id, command=m.Cancel("enough", IDA), made=GATED, now=at))
    kept = await store.read(lambda reader: reader.records("run-2"))
    assert await store.write(lambda writer: writer.prune(LATER)) == 1
    assert await store.read(lambda reader: reader.run_ids()) == ("run-2", "run-3")
    for look in ("executions", "gates", "records"):
        assert await store.read(methodcaller(look, "run-1")) == ()
    assert await store.read(lambda reader: (reader.key("start", "1"), reader.definition("d1"))) == (None, None)
    assert await store.read(lambda reader: reader.find_gate("run-1.g1")) == ()
    assert await store.read(lambda reader: reader.records("run-2")) == kept
    assert await store.read(lambda reader: reader.definition("d2")) is not None
    assert await store.read(lambda reader: reader.key("start", "3")) is not None
    assert await store.write(lambda writer: writer.prune(LATER)) == 0
    await started(store, "run-1")
    assert (await run_of(store)).revision == 1


# --- changes -------------------------------------------------------------------------------------


async def test_a_commit_wakes_whoever_waits(store: Store) -> None:
    woken = []

    async def wait(name: str) -> None:
        woken.append((name, await store.changed(240)))

    with anyio.fail_after(240):
        async with anyio.create_task_group() as group:
            group.start_soon(wait, "a")
            group.start_soon(wait, "b")
            await anyio.wait_all_tasks_blocked()
            assert woken == []
            await started(store, "run-1")
    assert sorted(woken) == [("a", True), ("b", True)]


async def test_who_waits_for_jobs_is_woken_by_a_job_and_by_no_other_commit(store: Store) -> None:
    await store.read(lambda reader: reader.run_ids())
    job = Job("j", "timer", "run-1", "1.1", NOW)

    async def put() -> None:
        await store.write(lambda writer: writer.put_jobs([job]))

    async def give_back() -> None:
        claim = await store.write(lambda writer: writer.claim_job("me", NOW, LATER))
        assert claim is not None
        await store.write(lambda writer: writer.postpone_job(claim, NOW))

    async def elsewhere(work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(work)

    await elsewhere(lambda: started(store, "run-1"))
    assert await store.changed(0, jobs=True) is False
    for work in (put, give_back):
        await elsewhere(work)
        assert await store.changed(240, jobs=True) is True
        assert await store.changed(0, jobs=True) is False


async def test_a_job_wakes_whoever_waits_for_one(store: Store) -> None:
    woken = []

    async def wait() -> None:
        woken.append(await store.changed(240, jobs=True))

    with anyio.fail_after(240):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            await started(store, "run-1")
            await anyio.wait_all_tasks_blocked()
            assert woken == []
            await store.write(lambda writer: writer.put_jobs([Job("j", "timer", "run-1", "1.1", NOW)]))
    assert woken == [True]


async def test_without_a_commit_a_wait_ends_in_time(store: Store) -> None:
    await started(store, "run-1")
    assert await store.changed(0.01) is False
    assert await store.changed(0) is False


async def test_a_commit_between_a_read_and_the_wait_is_not_missed(store: Store) -> None:
    await store.read(lambda reader: reader.run_ids())
    async with anyio.create_task_group() as group:
        group.start_soon(started, store, "run-1")
    with anyio.fail_after(240):
        assert await store.changed(240) is True
    assert await store.changed(0) is False


async def test_a_failed_transaction_wakes_nobody(store: Store) -> None:
    await store.read(lambda reader: reader.run_ids())

    def fail(writer: Writer) -> None:
        begin(writer)
        raise LookupError

    async def attempt() -> None:
        with pytest.raises(LookupError):
            await store.write(fail)

    async with anyio.create_task_group() as group:
        group.start_soon(attempt)
    assert await store.changed(0.01) is False


async def test_a_checkpoint_waits_as_a_checkpoint(store: Store) -> None:
    made = sop(Step(1, "Look", kind=Kind.CHECKPOINT), Step(2, "Go", precondition=condition("x", "x", 1)))
    await started(store, "run-1", made=made)
    (summary,) = await store.read(lambda reader: reader.runs(Filter()))
    assert (summary.status, summary.open_gates) == (Status.PAUSED_CHECKPOINT, 1)
