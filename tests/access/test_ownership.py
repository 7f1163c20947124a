"""Runs that belong to one caller: for anybody else they do not exist."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from engine import sop
from mcp_host import ALL, workspace

from procedo.access.ownership import PASSED_ON, OwnRuns
from procedo.access.permitted import Permitted
from procedo.app import App, open_app
from procedo.core.access import EVERYTHING, Access, Role
from procedo.core.admission import Limits, Load, admit
from procedo.core.altered import altered
from procedo.core.model import Step
from procedo.core.principal import Principal, PrincipalKind, Source
from procedo.core.state import Status, Verdict
from procedo.errors import NotFound, Refused
from procedo.ports import Filter, Writer
from procedo.runs import Runs, Surface

pytestmark = pytest.mark.anyio

IDA = Principal(Source.HTTP, "ida", PrincipalKind.AGENT)
NOOR = Principal(Source.HTTP, "noor", PrincipalKind.AGENT)
PARENT = {
    "SOP.toml": '[sop]\nname = "parent"\ndescription = "p"\nexecution_mode = "auto"\n',
    "SOP.md": "## Steps\n\n1. **Fire** — Fire it.\n   - sop: kiln-firing\n",
}


@pytest.fixture
async def app(tmp_path: Path, anyio_backend: str) -> AsyncIterator[App]:
    async with open_app(workspace(tmp_path, {**ALL, "parent": PARENT})) as opened:
        yield opened


def at(principal: Principal) -> Surface:
    return Surface(principal)


# What the operators' doors alone may call; `OwnRuns` has none of it.
OPERATORS_ONLY = {
    "claim_job", "drop_login", "due_runs", "finish_job", "jobs_waiting", "login", "next_job_at", "owned",
    "owned_counts", "owner", "postpone_job", "prune", "put_login", "put_owner", "put_session", "put_telling",
    "put_token", "renew_job", "run_ids", "spent_since", "take_action", "token", "tokens", "touch", "used_in_tree",
}  # fmt: skip


def test_everything_that_a_store_can_do_is_bound_or_harmless_or_for_operators_alone() -> None:
    """A method that is added to the store has to be judged here before a caller can reach it."""
    every = {name for name, _ in inspect.getmembers(Writer, inspect.isfunction) if not name.startswith("_")}
    bound = {name for name, _ in inspect.getmembers(OwnRuns, inspect.isfunction) if not name.startswith("_")}
    assert every - (bound | PASSED_ON | OPERATORS_ONLY) == set()
    assert not OPERATORS_ONLY & (bound | PASSED_ON)


async def test_what_is_not_named_is_not_there(app: App) -> None:
    own = await app.store.read(lambda reader: OwnRuns(reader, IDA.key))
    for name in OPERATORS_ONLY:
        assert not hasattr(own, name)


@pytest.mark.requirement("roles")
def test_every_verb_has_a_role_or_belongs_to_the_driver() -> None:
    verbs = {name for name, _ in inspect.getmembers(Runs, inspect.iscoroutinefunction) if not name.startswith("_")}
    behind_roles = {name for name in vars(Permitted) if not name.startswith("_")}
    assert verbs - behind_roles == {"command", "start_child"}


async def test_the_drivers_verbs_do_not_work_behind_roles(app: App) -> None:
    run = await app.runs.start("plain", None, at(IDA))
    permitted = Permitted(app.runs, Access(IDA, EVERYTHING))
    with pytest.raises(AttributeError):
        await permitted.command(run.run.id, None)  # type: ignore[arg-type]  # never looked at


Call = Callable[[Runs, str], Awaitable[object]]
CALLS: dict[str, Call] = {
    "state": lambda runs, run: runs.state(run, at(NOOR)),
    "look": lambda runs, run: runs.look(run),
    "wait": lambda runs, run: runs.wait(run, at(NOOR), 0.0),
    "history": lambda runs, run: runs.history(run),
    "advance": lambda runs, run: runs.advance(run, "1.1", "completed", "x", at(NOOR)),
    "cancel": lambda runs, run: runs.cancel(run, "why not", at(NOOR)),
    "hold": lambda runs, run: runs.hold(run, "why not", at(NOOR)),
    "resume": lambda runs, run: runs.resume(run, at(NOOR)),
    "retry": lambda runs, run: runs.resume(run, at(NOOR), retry=1),
    "gate": lambda runs, run: runs.gate(f"{run}.g1"),
    "decide": lambda runs, run: runs.decide(f"{run}.g1", Verdict.APPROVE, at(NOOR)),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.requirement("own-runs")
async def test_anothers_run_is_as_absent_as_one_that_never_was(app: App, call: Call) -> None:
    theirs = await app.runs_of(IDA).start("kiln-firing", None, at(IDA))
    noors = app.runs_of(NOOR)
    with pytest.raises(NotFound) as foreign:
        await call(noors, theirs.run.id)
    with pytest.raises(NotFound) as unknown:
        await call(noors, "run-never-was")
    assert str(foreign.value).replace(theirs.run.id, "run-never-was") == str(unknown.value)
    assert await app.runs.look(theirs.run.id) == await app.runs.state(theirs.run.id, at(IDA))


async def test_the_owner_and_the_operators_reach_the_run(app: App) -> None:
    theirs = await app.runs_of(IDA).start("plain", None, at(IDA))
    advanced = await app.runs_of(IDA).advance(theirs.run.id, "1.1", "completed", "x", at(IDA))
    assert advanced.run.revision == 2
    assert (await app.runs.state(theirs.run.id, at(NOOR))).run.revision == 2


async def test_lists_counts_and_inboxes_hold_ones_own_runs(app: App) -> None:
    ida, noor = app.runs_of(IDA), app.runs_of(NOOR)
    mine = [(await ida.start("kiln-firing", None, at(IDA))).run.id for _ in range(1)]
    theirs = (await noor.start("letter", None, at(NOOR))).run.id
    operators = (await app.runs.start("plain", None, at(IDA))).run.id
    assert [summary.run_id for summary in await ida.list(Filter())] == mine
    assert [summary.run_id for summary in await noor.list(Filter(live=True))] == [theirs]
    assert [gate.run_id for gate in await ida.inbox(at(IDA))] == mine
    assert await noor.inbox(at(NOOR)) == ()
    assert {status: n for status, n in (await ida.counts()).items() if n} == {Status.WAITING_APPROVAL: 1}
    everything = {summary.run_id for summary in await app.runs.list(Filter())}
    assert everything == {*mine, theirs, operators}


async def test_a_short_code_finds_ones_own_gate_only(app: App) -> None:
    theirs = await app.runs_of(IDA).start("kiln-firing", None, at(IDA))
    (gate,) = theirs.run.open_gates
    assert (await app.runs_of(IDA).gate(gate.code))[0].gate.id == gate.id
    with pytest.raises(NotFound):
        await app.runs_of(NOOR).gate(gate.code)


async def test_a_sub_run_belongs_to_whom_its_parent_belongs_to(app: App) -> None:
    parent = await app.runs_of(IDA).start("parent", None, at(IDA))
    waiting = await app.runs_of(IDA).wait(parent.run.id, at(IDA), 240.0)
    (child,) = waiting.children
    assert (await app.runs_of(IDA).look(child.run.id)).run.parent is not None
    with pytest.raises(NotFound):
        await app.runs_of(NOOR).look(child.run.id)


async def test_an_idempotency_key_leads_nobody_to_anothers_run(app: App) -> None:
    mine = await app.runs_of(IDA).start("plain", None, at(IDA), idempotency_key="k")
    again = await app.runs_of(IDA).start("plain", None, at(IDA), idempotency_key="k")
    theirs = await app.runs_of(NOOR).start("plain", None, at(NOOR), idempotency_key="k")
    assert (again.run.id, again.replayed) == (mine.run.id, True)
    assert theirs.run.id != mine.run.id


@pytest.mark.requirement("own-runs")
async def test_a_full_limit_names_ones_own_runs_and_counts_those_of_others(app: App) -> None:
    ida, noor = app.runs_of(IDA), app.runs_of(NOOR)
    mine = (await ida.start("plain", None, at(IDA))).run.id
    theirs = [(await noor.start("plain", None, at(NOOR))).run.id for _ in range(3)]
    limit = "max_concurrent 4 of 'plain' is used by"
    with pytest.raises(Refused) as told:
        await ida.start("plain", None, at(IDA))
    assert f"{limit} {mine} and 3 runs of other callers." in told.value.message
    assert not any(run_id in str(told.value) for run_id in theirs)
    with pytest.raises(Refused) as told_noor:
        await noor.start("plain", None, at(NOOR))
    assert f"{limit} {', '.join(theirs)} and 1 run of other callers." in told_noor.value.message
    with pytest.raises(Refused) as operators:
        await app.runs.start("plain", None, at(IDA))
    assert f"{limit} {', '.join([mine, *theirs])}." in operators.value.message


@pytest.mark.requirement("own-runs")
async def test_a_run_that_waits_for_a_slot_tells_its_owner_nothing_of_others(app: App) -> None:
    started = [await app.runs_of(one).start("kiln-firing", None, at(one)) for one in (IDA, NOOR)]
    sam = at(Principal(Source.HTTP, "sam", PrincipalKind.HUMAN))
    gates = [snapshot.run.open_gates[0].id for snapshot in started]
    first, second = [(await app.runs.decide(gate, Verdict.APPROVE, sam)).run for gate in gates]
    assert (first.status, second.status) == (Status.RUNNING, Status.PENDING)
    assert second.slot_reason == "max_concurrent 1 of 'kiln-firing' is used by 1 run of other callers"


async def test_a_key_that_anothers_live_run_holds_is_refused_without_its_id() -> None:
    load = Load(key_holder="run-theirs", foreign=frozenset({"run-theirs"}))
    with pytest.raises(Refused) as told:
        admit(sop(Step(1, "Load kiln")), load, Limits(), datetime.now(UTC))
    assert (told.value.code, "run-theirs" in str(told.value)) == ("key_in_use", False)
    with pytest.raises(Refused, match="run-theirs"):
        admit(sop(Step(1, "Load kiln")), altered(load, foreign=frozenset()), Limits(), datetime.now(UTC))


NEEDS: dict[str, tuple[Role, Call]] = {
    **{name: (Role.VIEW, CALLS[name]) for name in ("state", "look", "wait", "history", "gate")},
    **{name: (Role.OPERATE, CALLS[name]) for name in ("advance", "cancel", "hold", "resume", "retry")},
    "decide": (Role.APPROVE, CALLS["decide"]),
    "start": (Role.OPERATE, lambda runs, _: runs.start("plain", None, at(NOOR))),
    "adopt": (Role.OPERATE, lambda runs, _: runs.adopt({}, at(NOOR))),
    "inbox": (Role.VIEW, lambda runs, _: runs.inbox(at(NOOR))),
    "list": (Role.VIEW, lambda runs, _: runs.list(Filter())),
    "counts": (Role.VIEW, lambda runs, _: runs.counts()),
}


@pytest.mark.parametrize("name", NEEDS)
@pytest.mark.requirement("roles")
async def test_a_verb_is_refused_without_its_role_and_changes_nothing(app: App, name: str) -> None:
    role, call = NEEDS[name]
    run = await app.runs.start("kiln-firing", None, at(IDA))
    others = frozenset[Role]() if role is Role.VIEW else EVERYTHING - {role}
    with pytest.raises(Refused) as refusal:
        await call(Permitted(app.runs, Access(NOOR, others)), run.run.id)
    assert refusal.value.code == "not_permitted"
    assert (await app.runs.look(run.run.id)).run.revision == run.run.revision
    assert len(await app.runs.list(Filter())) == 1


async def test_with_the_role_the_verb_is_the_same_as_without_the_guard(app: App) -> None:
    permitted = Permitted(app.runs, Access(NOOR, frozenset({Role.OPERATE})))
    run = await permitted.start("plain", None, at(NOOR))
    assert (await permitted.advance(run.run.id, "1.1", "completed", "x", at(NOOR))).run.revision == 2
    assert (await permitted.cancel(run.run.id, "done", at(NOOR))).run.status is Status.CANCELLED
