"""Who may start: decided in the store's transaction, so it holds for every process at the file."""

from pathlib import Path

import pytest
from host import HOST
from service import Shop, finished, person

from procedo.app import App
from procedo.core.state import Status, Verdict
from procedo.errors import Refused
from procedo.surfaces.catalogue import describe_view

pytestmark = pytest.mark.anyio

ONE = "1. **Glaze** — Glaze the ware."
GATED = "1. **Fire** — Fire the kiln.\n   - requires_confirmation: true"


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


async def started_in_turn(shop: Shop, app: App, name: str) -> list[str]:
    """Two runs, a second apart, so that it is known which is the older one."""
    ids = []
    for _ in range(2):
        ids.append((await app.runs.start(name, None, HOST)).run.id)
        shop.clock.pass_by(1)
    return ids


@pytest.mark.requirement("C107")
async def test_a_full_slot_refuses_and_names_its_holder_until_that_has_ended(shop: Shop) -> None:
    shop.sop("glazing", ONE)
    async with shop.opened() as app, shop.opened() as other:
        first = await app.runs.start("glazing", None, HOST)
        with pytest.raises(Refused, match=f"max_concurrent 1 of 'glazing' is used by {first.run.id}") as refused:
            await other.runs.start("glazing", None, HOST)
        await app.runs.advance(first.run.id, "1.1", "completed", None, HOST)
        second = await other.runs.start("glazing", None, HOST)
    assert refused.value.code == "deferred"
    assert second.run.status is Status.RUNNING


@pytest.mark.requirement("C30", "C107")
async def test_the_refusal_names_the_limit_that_refused_and_not_another(shop: Shop) -> None:
    shop.configure("[sop]\nmax_concurrent_total = 2\n")
    shop.sop("glazing", ONE, "max_concurrent = 6")
    async with shop.opened() as app:
        holders = await started_in_turn(shop, app, "glazing")
        with pytest.raises(Refused) as refused:
            await app.runs.start("glazing", None, HOST)
        described = describe_view(app.library.get("glazing"), app.settings)
    assert f"total limit 2 is used by {', '.join(holders)}" in refused.value.message
    assert "max_concurrent" not in refused.value.message
    assert described["max_concurrent"] == {"configured": 6, "effective": 2}


@pytest.mark.requirement("C108")
@pytest.mark.parametrize(
    ("policy", "code"), [("parallel", "deferred"), ("hold", "deferred"), ("drop", "dropped"), ("coalesce", None)]
)
async def test_each_admission_policy_answers_a_full_slot_in_its_way(shop: Shop, policy: str, code: str | None) -> None:
    shop.sop("glazing", ONE, f'admission_policy = "{policy}"')
    async with shop.opened() as app:
        first = await app.runs.start("glazing", None, HOST)
        if code is None:
            joined = await app.runs.start("glazing", None, HOST)
            assert (joined.run.id, joined.coalesced) == (first.run.id, True)
        else:
            with pytest.raises(Refused) as refused:
                await app.runs.start("glazing", None, HOST)
            assert refused.value.code == code
        assert (await app.runs.counts())[Status.RUNNING] == 1


@pytest.mark.requirement("C108")
async def test_only_parallel_starts_beside_a_parked_run(shop: Shop) -> None:
    shop.sop("firing", GATED)
    shop.sop("held", GATED, 'admission_policy = "hold"')
    async with shop.opened() as app:
        await app.runs.start("firing", None, HOST)
        assert (await app.runs.start("firing", None, HOST)).coalesced is False
        parked = await app.runs.start("held", None, HOST)
        with pytest.raises(Refused, match=parked.run.id):
            await app.runs.start("held", None, HOST)


@pytest.mark.requirement("C31")
async def test_a_cooldown_holds_in_another_process_and_ends(shop: Shop) -> None:
    shop.sop("glazing", ONE, "cooldown_secs = 60")
    async with shop.opened() as app:
        assert (await finished(app, "glazing", "done")).run.status is Status.COMPLETED
    shop.clock.pass_by(15)
    async with shop.opened() as other:
        with pytest.raises(Refused, match="45 s left"):
            await other.runs.start("glazing", None, HOST)
        shop.clock.pass_by(45)
        assert (await other.runs.start("glazing", None, HOST)).run.status is Status.RUNNING


@pytest.mark.requirement("C31")
async def test_a_clock_set_back_makes_a_cooldown_no_longer_than_it_is(shop: Shop) -> None:
    shop.sop("glazing", ONE, "cooldown_secs = 60")
    async with shop.opened() as app:
        shop.clock.pass_by(86_400)
        await finished(app, "glazing", "done")
        shop.clock.time = shop.clock.time.replace(year=2020)
        with pytest.raises(Refused, match=r"\b60 s left"):
            await app.runs.start("glazing", None, HOST)


@pytest.mark.requirement("C31")
async def test_failed_and_cancelled_runs_start_no_cooldown(shop: Shop) -> None:
    shop.sop("glazing", ONE, "cooldown_secs = 60")
    async with shop.opened() as app:
        failed = await app.runs.start("glazing", None, HOST)
        await app.runs.advance(failed.run.id, "1.1", "failed", "the glaze ran out", HOST)
        cancelled = await app.runs.start("glazing", None, HOST)
        await app.runs.cancel(cancelled.run.id, "enough", person("ida"))
        assert (await app.runs.start("glazing", None, HOST)).run.status is Status.RUNNING


@pytest.mark.requirement("C110")
async def test_parked_runs_wait_after_a_restart_hold_no_slot_and_take_one_when_they_go_on(shop: Shop) -> None:
    shop.sop("firing", GATED)
    async with shop.opened() as app:
        parked = await started_in_turn(shop, app, "firing")
    async with shop.opened() as app:
        gates = await app.runs.inbox(HOST)
        assert [gate.run_id for gate in gates] == parked
        first = await app.runs.decide(gates[0].gate.id, Verdict.APPROVE, person("ida"))
        assert first.run.status is Status.RUNNING
        second = await app.runs.decide(gates[1].gate.id, Verdict.APPROVE, person("ida"))
        assert second.run.status is Status.PENDING
        assert first.run.id in second.run.slot_reason
