"""A side effect happens once; where that cannot be known, a person says what happens."""

from datetime import timedelta
from pathlib import Path

import anyio
import pytest
from host import HOST
from service import Shop, person

from procedo.app import App
from procedo.core import messages as m
from procedo.core.state import GateKind, Verdict
from procedo.ports import Claim
from procedo.runs import Snapshot

pytestmark = pytest.mark.anyio

CONFIG = '[capabilities.shell]\nenabled = true\nallowed_commands = ["sh"]\n'
STEPS = """1. **Post** — Post the notice.
   - kind: capability
   - capability: shell.exec
   - with: {"argv": ["sh", "-c", "echo posted >> notices"]}
2. **Look** — Look at the notice."""


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    made = Shop(tmp_path, CONFIG)
    made.sop("notice", STEPS)
    return made


def notices(shop: Shop) -> int:
    path = shop.root / "notices"
    return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0


async def at_rest(app: App, run_id: str) -> Snapshot:
    with anyio.fail_after(240):
        return await app.runs.wait(run_id, HOST, 240)


async def claimed(app: App, shop: Shop) -> Claim:
    """What a worker does before an effect."""
    now = shop.clock.now()
    claim = await app.store.write(lambda writer: writer.claim_job("lost", now, now + timedelta(seconds=10)))
    assert claim is not None
    return claim


async def interrupted(app: App, shop: Shop) -> str:
    """A run whose effect was recorded as started by a process that is gone."""
    run_id = (await app.runs.start("notice", None, HOST)).run.id
    claim = await claimed(app, shop)
    await app.runs.command(run_id, m.Begin("1.1", claim.fence, repeatable=False))
    shop.clock.pass_by(11)
    return run_id


@pytest.mark.requirement("C112")
async def test_a_finished_effect_is_not_repeated_when_its_job_is_delivered_again(shop: Shop) -> None:
    async with shop.opened() as app:
        run_id = (await app.runs.start("notice", None, HOST)).run.id
        claim = await claimed(app, shop)
        await app.driver.perform(claim)
        done = await app.runs.look(run_id)
        assert ([e.id for e in done.run.open_executions], notices(shop)) == (["2.1"], 1)
    # The process died before it could mark the job as done: another one gets it again.
    shop.clock.pass_by(11)
    async with shop.opened() as app:
        again = await claimed(app, shop)
        assert (again.job.id, again.fence > claim.fence) == (claim.job.id, True)
        await app.driver.perform(again)
        after = await app.runs.look(run_id)
    assert notices(shop) == 1
    assert (after.run.revision, after.run.open_executions) == (done.run.revision, done.run.open_executions)


@pytest.mark.requirement("C112")
@pytest.mark.parametrize(
    ("verdict", "posted", "opens"), [(Verdict.REPEAT, 1, ["2.1"]), (Verdict.SKIP, 0, ["2.1"]), (Verdict.FAIL, 0, [])]
)
async def test_an_interrupted_effect_waits_for_a_person_who_says_what_happens(
    shop: Shop, verdict: Verdict, posted: int, opens: list[str]
) -> None:
    async with shop.opened() as app:
        run_id = await interrupted(app, shop)
    async with shop.opened(worker=True) as app:
        asked = await at_rest(app, run_id)
        (gate,) = asked.run.open_gates
        assert (gate.kind, notices(shop)) == (GateKind.INTERRUPTED, 0)
        assert "may or may not have happened" in gate.prompt
        await app.runs.decide(gate.id, verdict, person("ida"))
        after = await at_rest(app, run_id)
    assert ([e.id for e in after.run.open_executions], notices(shop)) == (opens, posted)
