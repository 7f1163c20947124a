"""Limits of a caller: procedures beyond them and their runs do not exist, by no verb."""

import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp_host import ALL, workspace

from procedo.access.permitted import Permitted
from procedo.access.reached import ReachedRuns, reached, within
from procedo.access.seen import PASSED_ON
from procedo.app import App, open_app
from procedo.core.access import EVERYTHING, Access
from procedo.core.principal import Principal, PrincipalKind, Source
from procedo.core.reach import Reach
from procedo.core.state import Status, Verdict
from procedo.errors import Conflict, NotFound, Refused
from procedo.ports import Filter, Writer
from procedo.runs import Runs, Snapshot, Surface

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("reach")]

IDA = Principal(Source.CLI, "ida", PrincipalKind.HUMAN)
AT = Surface(IDA)
PLAIN_ALONE = (Reach(sops=("pl*",)),)
OUTER = {
    "SOP.toml": '[sop]\nname = "outer"\ndescription = "p"\nexecution_mode = "auto"\nmax_concurrent = 9\n',
    "SOP.md": "## Steps\n\n1. **Below** — Do it.\n   - sop: plain\n",
}


@pytest.fixture
async def app(tmp_path: Path, anyio_backend: str) -> AsyncIterator[App]:
    async with open_app(workspace(tmp_path, {**ALL, "outer": OUTER})) as opened:
        yield opened


def limited(app: App, reach: tuple[Reach, ...] = PLAIN_ALONE) -> Runs:
    return Permitted(app.runs, Access(IDA, EVERYTHING, reach))


# What the operators' doors alone may call; `ReachedRuns` has none of it.
OPERATORS_ONLY = {
    "claim_job", "drop_login", "due_runs", "finish_job", "jobs_waiting", "login", "next_job_at", "owned",
    "owned_counts", "owner",
    "postpone_job", "prune", "put_login", "put_owner", "put_session", "put_telling", "put_token", "renew_job",
    "spent_since", "take_action", "token", "tokens", "touch", "used_in_tree",
}  # fmt: skip


def test_everything_that_a_store_can_do_is_bound_or_harmless_or_for_operators_alone() -> None:
    every = {name for name, _ in inspect.getmembers(Writer, inspect.isfunction) if not name.startswith("_")}
    bound = {name for name, _ in inspect.getmembers(ReachedRuns, inspect.isfunction) if not name.startswith("_")}
    assert every - (bound | PASSED_ON | OPERATORS_ONLY) == set()
    assert not OPERATORS_ONLY & (bound | PASSED_ON)


Call = Callable[[Runs, str], Awaitable[object]]
CALLS: dict[str, Call] = {
    "state": lambda runs, run: runs.state(run, AT),
    "look": lambda runs, run: runs.look(run),
    "wait": lambda runs, run: runs.wait(run, AT, 0.0),
    "history": lambda runs, run: runs.history(run),
    "timeline": lambda runs, run: runs.timeline(run),
    "transcript": lambda runs, run: runs.transcript(run, "1.1"),
    "advance": lambda runs, run: runs.advance(run, "1.1", "completed", "x", AT),
    "cancel": lambda runs, run: runs.cancel(run, "why not", AT),
    "hold": lambda runs, run: runs.hold(run, "why not", AT),
    "resume": lambda runs, run: runs.resume(run, AT),
    "retry": lambda runs, run: runs.resume(run, AT, retry=1),
    "gate": lambda runs, run: runs.gate(f"{run}.g1"),
    "decide": lambda runs, run: runs.decide(f"{run}.g1", Verdict.APPROVE, AT),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_a_run_beyond_the_limits_is_as_absent_as_one_that_never_was(app: App, call: Call) -> None:
    beyond = await app.runs.start("kiln-firing", None, AT)
    with pytest.raises(NotFound) as foreign:
        await call(limited(app), beyond.run.id)
    with pytest.raises(NotFound) as unknown:
        await call(limited(app), "run-never-was")
    assert str(foreign.value).replace(beyond.run.id, "run-never-was") == str(unknown.value)
    now = (await app.runs.look(beyond.run.id)).run
    assert (now.revision, now.status) == (beyond.run.revision, Status.WAITING_APPROVAL)


async def test_a_run_within_the_limits_is_there_for_every_verb(app: App) -> None:
    runs = limited(app)
    run = (await runs.start("plain", None, AT)).run
    assert run.reach == PLAIN_ALONE
    assert (await runs.advance(run.id, "1.1", "completed", "x", AT)).run.revision == 2
    assert [record.seq for record in await runs.timeline(run.id, after=1, limit=2)] == [2, 3]
    assert (await runs.cancel(run.id, "enough", AT)).run.status is Status.CANCELLED


async def test_a_procedure_beyond_the_limits_is_as_unknown_as_any_word(app: App) -> None:
    runs = limited(app)
    for name in ("kiln-firing", "kiln-firin", "nonsense"):
        with pytest.raises(NotFound) as refusal:
            await runs.start(name, None, AT)
        assert str(refusal.value).endswith("Known are: plain.")
        assert refusal.value.near == ()
        with pytest.raises(NotFound) as listing:
            await runs.list(Filter(sop=name))
        assert listing.value.near == ()
    with pytest.raises(NotFound) as near:
        await runs.start("plian", None, AT)
    assert near.value.near == ("plain",)
    assert sum((await app.runs.counts()).values()) == 0


async def test_lists_counts_and_inboxes_hold_what_is_within_the_limits(app: App) -> None:
    mine = [(await app.runs.start("plain", None, AT)).run.id for _ in range(3)]
    await app.runs.start("kiln-firing", None, AT)
    await app.runs.start("letter", None, AT)
    runs = limited(app)
    assert {one.run_id for one in await runs.list(Filter())} == set(mine)
    assert len(await runs.list(Filter(limit=2))) == 2
    assert {status: n for status, n in (await runs.counts()).items() if n} == {Status.RUNNING: 3}
    assert await runs.inbox(AT) == ()
    assert len(await app.runs.inbox(AT)) == 1, "there is one, for others"
    assert [entry.name for entry in reached(app.library, PLAIN_ALONE).entries()] == ["plain"]


async def test_few_runs_within_the_limits_are_found_behind_many_that_are_not(app: App) -> None:
    mine = (await app.runs.start("plain", None, AT)).run.id
    for _ in range(7):
        run = (await app.runs.start("letter", None, AT)).run
        await app.runs.cancel(run.id, "enough", AT)
    assert [one.run_id for one in await limited(app).list(Filter(limit=1))] == [mine]


async def test_a_sub_run_of_what_does_not_exist_does_not_exist(app: App) -> None:
    outer = await app.runs.start("outer", None, AT)
    outer = await app.runs.wait(outer.run.id, AT, 240.0)
    (child,) = outer.children
    assert child.run.sop == "plain"
    with pytest.raises(NotFound):
        await limited(app).look(child.run.id)
    assert await limited(app).list(Filter()) == ()


async def test_a_sub_run_beyond_the_limits_is_left_out_of_its_parent(app: App) -> None:
    outer = await app.runs.start("outer", None, AT)
    outer = await app.runs.wait(outer.run.id, AT, 240.0)
    assert len(outer.children) == 1
    seen = await limited(app, (Reach(sops=("outer",)),)).look(outer.run.id)
    assert (seen.run.id, seen.children) == (outer.run.id, ())


async def test_a_procedure_whose_sub_procedures_are_beyond_the_limits_is_not_started(app: App) -> None:
    with pytest.raises(NotFound) as refusal:
        await limited(app, (Reach(sops=("outer",)),)).start("outer", None, AT)
    assert "Step 1 runs the procedure 'plain', which this caller does not reach" in str(refusal.value)
    started = await limited(app, (Reach(sops=("outer", "plain")),)).start("outer", None, AT)
    (child,) = (await app.runs.wait(started.run.id, AT, 240.0)).children
    assert child.run.reach == started.run.reach == (Reach(sops=("outer", "plain")),)


async def test_a_run_that_somebody_limited_took_over_starts_no_sub_procedure_beyond(app: App) -> None:
    waiting = {**OUTER, "SOP.md": "## Steps\n\n1. **First** — Do it.\n2. **Below** — Do it.\n   - sop: plain\n"}
    for name, text in waiting.items():
        (app.library.root / "outer" / name).write_text(text)
    run = (await app.runs.start("outer", None, AT)).run
    await limited(app, (Reach(sops=("outer",)),)).advance(run.id, "1.1", "completed", "x", AT)
    failed = (await app.runs.wait(run.id, AT, 240.0)).run
    assert failed.status is Status.FAILED
    assert failed.end is not None
    assert "'plain' is beyond the limits" in failed.end.reason


MOVES: dict[str, Call] = {
    "advance": lambda runs, run: runs.advance(run, "1.1", "completed", "x", AT),
    "resume": lambda runs, run: runs.resume(run, AT),
    "decide": lambda runs, run: runs.decide(f"{run}.g1", Verdict.APPROVE, AT),
}


@pytest.mark.parametrize("move", MOVES)
async def test_whoever_moves_a_run_on_narrows_it_once_and_for_ever(app: App, move: str) -> None:
    name = "kiln-firing" if move == "decide" else "plain"
    run = (await app.runs.start(name, None, AT)).run
    if move == "resume":
        await app.runs.hold(run.id, "lunch", AT)
    narrow = (Reach(agents=("reviewer",)),)
    await MOVES[move](limited(app, narrow), run.id)
    assert (await app.runs.look(run.id)).run.reach == narrow
    records = await app.runs.timeline(run.id)
    assert [record.kind for record in records].count("ReachNarrowed") == 1
    await limited(app, narrow).hold(run.id, "more", AT)
    await limited(app, narrow).resume(run.id, AT)
    assert (await app.runs.look(run.id)).run.reach == narrow, "the same limits are taken over once"
    await app.runs.hold(run.id, "more", AT)
    await app.runs.resume(run.id, AT)
    assert (await app.runs.look(run.id)).run.reach == narrow, "somebody without limits widens nothing"


async def test_what_was_refused_and_looking_and_ending_narrow_nothing(app: App) -> None:
    run = (await app.runs.start("plain", None, AT)).run
    runs = limited(app)
    with pytest.raises(Refused):
        await runs.advance(run.id, "9.9", "completed", "x", AT)
    await runs.state(run.id, AT)
    await runs.hold(run.id, "lunch", AT)
    assert (await app.runs.look(run.id)).run.reach == ()
    assert (await runs.cancel(run.id, "enough", AT)).run.reach == ()


async def test_a_successor_keeps_the_limits_and_takes_those_of_whoever_retries(app: App) -> None:
    first, second = (Reach(agents=("reviewer",)),), (Reach(agents=("writer",)),)
    run = (await limited(app, first).start("plain", None, AT)).run
    await app.runs.advance(run.id, "1.1", "failed", "no", AT)
    successor = await limited(app, second).resume(run.id, AT, retry=1)
    assert successor.run.retry_of == run.id
    assert successor.run.reach == (*first, *second)


async def test_what_a_limited_caller_gave_a_sub_run_narrows_the_run_above_when_it_comes_there(app: App) -> None:
    outer = (await app.runs.start("outer", None, AT)).run.id
    (child,) = (await app.runs.wait(outer, AT, 240.0)).children
    narrow = (Reach(sops=("outer", "plain"), agents=()),)
    await limited(app, narrow).advance(child.run.id, "1.1", "completed", 1, AT)
    assert (await app.runs.look(outer)).run.reach == ()
    await app.runs.advance(child.run.id, "2.1", "completed", 2, AT)
    await app.runs.advance(child.run.id, "3.1", "completed", 3, AT)
    ended = (await app.runs.wait(outer, AT, 240.0)).run
    assert (ended.status, ended.reach) == (Status.COMPLETED, narrow)


async def test_a_key_that_was_used_beyond_the_limits_gives_no_run_away(app: App) -> None:
    beyond = await app.runs.start("letter", None, AT, idempotency_key="k")
    with pytest.raises(Conflict) as refusal:
        await limited(app).start("plain", None, AT, idempotency_key="k")
    assert beyond.run.id not in str(refusal.value)


def _content(parked: Snapshot) -> Any:
    (file,) = parked.state_files.values()
    return json.loads(Path(file).read_text())


async def test_nobody_limited_adopts_a_state_file(app: App) -> None:
    run = (await app.runs.start("letter", None, AT)).run
    parked = await app.runs.advance(run.id, "1.1", "completed", {"body": "x"}, AT)
    content = _content(parked)
    with pytest.raises(Refused) as refusal:
        await limited(app, (Reach(sops=("letter",)),)).adopt(content, AT)
    assert refusal.value.code == "not_permitted"
    assert (await Permitted(app.runs, Access(IDA, EVERYTHING)).adopt(content, AT)).run.id == run.id


async def test_the_limits_travel_with_a_state_file(app: App, tmp_path: Path) -> None:
    narrow = (Reach(sops=("letter",), agents=()),)
    run = (await limited(app, narrow).start("letter", None, AT)).run
    parked = await app.runs.advance(run.id, "1.1", "completed", {"body": "x"}, AT)
    content = _content(parked)
    (tmp_path / "other").mkdir()
    async with open_app(workspace(tmp_path / "other")) as other:
        assert (await other.runs.adopt(content, AT)).run.reach == narrow


async def test_a_store_within_limits_takes_no_run_that_it_could_not_show(app: App) -> None:
    whole = within(app.runs, ())
    assert whole is app.runs
    run = (await app.runs.start("letter", None, AT)).run

    def work(writer: Writer) -> None:
        ReachedRuns(writer, PLAIN_ALONE).save(run, run, [], None, app.clock.now())  # type: ignore[arg-type]  # not looked at

    with pytest.raises(Refused) as refusal:
        await app.store.write(work)
    assert refusal.value.code == "beyond_reach"
