"""An agent beyond the limits of whoever started a run, or moved it on, is never put to work in it."""

from collections.abc import Mapping

import pytest
from session_bench import ASKABLE, Bench, Hands, Talk, answer, call, config, said, step

from procedo.access.permitted import Permitted
from procedo.core.access import EVERYTHING, Access
from procedo.core.reach import Reach
from procedo.core.state import Status

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("reach")]

READ = call("file_read", path="a")
BEYOND = "'reviewer' is beyond the limits of whoever started the run or moved it on"
REFUSED: Mapping[str, tuple[Reach, ...]] = {
    "none": (Reach(agents=()),),
    "another": (Reach(agents=("writer",)),),
    "one of two": (Reach(agents=("*",)), Reach(agents=("writer*",))),
}


@pytest.mark.parametrize("reach", REFUSED.values(), ids=REFUSED)
async def test_an_agent_beyond_the_limits_is_refused_and_nothing_runs(bench: Bench, reach: tuple[Reach, ...]) -> None:
    talk, hands = Talk([said(READ), said("never")]), Hands({"file_read": answer})
    async with bench.opened(talk, hands) as desk:
        permitted = Permitted(desk.app.runs, Access(ASKABLE.principal, EVERYTHING, reach))
        desk.run_id = (await permitted.start("review", None, ASKABLE)).run.id
        assert (await desk.work()).run.status is Status.FAILED
        assert BEYOND in await desk.failure()
    assert (talk.heard, desk.place.contracts) == ([], [])


async def test_an_agent_within_the_limits_works(bench: Bench) -> None:
    talk = Talk([said("fine")])
    async with bench.opened(talk, {}) as desk:
        permitted = Permitted(desk.app.runs, Access(ASKABLE.principal, EVERYTHING, (Reach(agents=("review*",)),)))
        desk.run_id = (await permitted.start("review", None, ASKABLE)).run.id
        assert (await desk.work()).run.status is Status.COMPLETED
    assert len(talk.heard) == 1


async def test_limits_hold_in_another_process_that_knows_nothing_of_the_token(bench: Bench) -> None:
    async with bench.opened() as desk:
        permitted = Permitted(desk.app.runs, Access(ASKABLE.principal, EVERYTHING, (Reach(agents=("writer",)),)))
        run_id = (await permitted.start("review", None, ASKABLE)).run.id
    talk = Talk([said("never")])
    async with bench.opened(talk, {}, run_id=run_id) as later:
        assert (await later.work()).run.status is Status.FAILED
        assert BEYOND in await later.failure()
    assert talk.heard == []


async def test_every_reason_is_told_beside_the_limits(bench: Bench) -> None:
    bench.configure(config(agent="enabled = false"))
    async with bench.opened() as desk:
        permitted = Permitted(desk.app.runs, Access(ASKABLE.principal, EVERYTHING, (Reach(agents=()),)))
        desk.run_id = (await permitted.start("review", None, ASKABLE)).run.id
        await desk.work()
        reason = await desk.failure()
    assert BEYOND in reason
    assert "the agent 'reviewer' is disabled" in reason


@pytest.mark.parametrize("limited", [True, False])
async def test_who_moves_a_run_on_decides_which_agents_may_follow(bench: Bench, *, limited: bool) -> None:
    bench.procedure(f"1. **Mine** — Do it.\n2{step()[1:]}")
    talk = Talk([said("fine")])
    async with bench.opened(talk, {}) as desk:
        await desk.start()
        reach = (Reach(agents=("writer",)),) if limited else ()
        permitted = Permitted(desk.app.runs, Access(ASKABLE.principal, EVERYTHING, reach))
        await permitted.advance(desk.run_id, "1.1", "completed", "mine", ASKABLE)
        run = (await desk.work()).run
    assert run.status is (Status.FAILED if limited else Status.COMPLETED)
    assert len(talk.heard) == (0 if limited else 1)


async def test_a_sub_run_keeps_the_limits(bench: Bench) -> None:
    bench.procedure(step(), name="inner")
    bench.procedure("1. **Below** — Do it.\n   - sop: inner\n", name="outer")
    talk = Talk([said("never")])
    async with bench.opened(talk, {}) as desk:
        permitted = Permitted(desk.app.runs, Access(ASKABLE.principal, EVERYTHING, (Reach(agents=()),)))
        desk.run_id = (await permitted.start("outer", None, ASKABLE)).run.id
        assert (await desk.work()).run.status is Status.FAILED
    assert talk.heard == []
