"""Who acted in the runs that a run came from is remembered by it, in sub-runs and in runs that take up failed ones."""

from pathlib import Path

import pytest
from carried import carried
from host import HOST
from service import Shop, person

from procedo.core.altered import altered
from procedo.core.principal import Source
from procedo.core.state import Verdict
from procedo.errors import Refused

pytestmark = pytest.mark.anyio

CONFIG = """
[sop]
max_concurrent_total = 20

[sop.approval.policies.outside]
distinct_from = ["delegation"]
"""
PARENT = "1. **Plan** — Plan it.\n2. **Do** — Do it.\n   - sop: child"
CHILD = "1. **Act** — Act.\n   - requires_confirmation: true\n   - policy: outside"
FRAGILE = "1. **Try** — Try it.\n2. **Act** — Act.\n   - requires_confirmation: true"
IDA, NOOR = person("ida"), person("noor")
ELSEWHERE = altered(IDA, principal=altered(IDA.principal, source=Source.WEB))


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    made = Shop(tmp_path, CONFIG)
    made.sop("parent", PARENT)
    made.sop("child", CHILD)
    made.sop("fragile", FRAGILE)
    return made


@pytest.mark.requirement("separation")
async def test_who_executed_in_the_parent_does_not_decide_in_its_sub_run_at_any_door(shop: Shop) -> None:
    async with shop.opened() as app:
        parent = await app.runs.start("parent", None, HOST)
        await app.runs.advance(parent.run.id, "1.1", "completed", "planned", IDA)
        await carried(app, shop.clock)
        (waiting,) = await app.runs.inbox(NOOR)
        assert waiting.run_id != parent.run.id
        for door in (IDA, ELSEWHERE):
            with pytest.raises(Refused, match="in this run's delegation chain"):
                await app.runs.decide(waiting.gate.id, Verdict.APPROVE, door)
            assert waiting.gate.id not in [one.gate.id for one in await app.runs.inbox(door, mine=True)]
    async with shop.opened() as app:
        after = await app.runs.decide(waiting.gate.id, Verdict.APPROVE, NOOR)
    assert [execution.id for execution in after.run.open_executions] == ["1.1"]


async def test_who_executed_a_failed_run_does_not_decide_in_the_run_that_takes_it_up(shop: Shop) -> None:
    async with shop.opened() as app:
        failed = await app.runs.start("fragile", None, HOST)
        await app.runs.advance(failed.run.id, "1.1", "failed", "on purpose", IDA)
        taken_up = await app.runs.resume(failed.run.id, NOOR, retry=1)
        assert taken_up.run.id != failed.run.id
        parked = await app.runs.advance(taken_up.run.id, "1.1", "completed", "fine", HOST)
        (gate,) = parked.run.open_gates
        with pytest.raises(Refused, match="the executor never decides"):
            await app.runs.decide(gate.id, Verdict.APPROVE, IDA)
        after = await app.runs.decide(gate.id, Verdict.APPROVE, NOOR)
    assert [execution.id for execution in after.run.open_executions] == ["2.1"]
