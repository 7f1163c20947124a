"""A run keeps the procedure it began with, and is decided by today's policies."""

import shutil
from pathlib import Path

import pytest
from host import HOST
from service import Shop, finished, person

from procedo.core import messages as m
from procedo.core.state import Status, Verdict
from procedo.errors import NotFound, Refused

pytestmark = pytest.mark.anyio

POLICY = """
[sop.approval.groups.inspectors]
members = ["ida"]

[sop.approval.policies.two-eyes]
required_group = "inspectors"
"""
RELEASE = """1. **Inspect** — Inspect the batch.
2. **Release** — Release it.
   - requires_confirmation: true
   - policy: two-eyes"""


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path, POLICY)


def offered(snapshot: object) -> list[str]:
    actions = getattr(snapshot, "actions", ())
    return [action.step.title for action in actions if isinstance(action, m.ExecuteStep)]


@pytest.mark.requirement("C53")
async def test_an_edit_reaches_new_runs_only_and_both_versions_are_shown(shop: Shop) -> None:
    steps = "1. **Mix** — Mix it.\n2. **{}** — Go on."
    shop.sop("glazing", steps.format("Dip"), "max_concurrent = 2")
    async with shop.opened() as app:
        old = await app.runs.start("glazing", None, HOST)
        shop.sop("glazing", steps.format("Spray"), "max_concurrent = 2")
        new = await app.runs.start("glazing", None, HOST)
        ids = (old.run.id, new.run.id)
        assert [offered(await app.runs.advance(i, "1.1", "completed", None, HOST)) for i in ids] == [["Dip"], ["Spray"]]
    async with shop.opened() as app:
        assert [offered(await app.runs.state(i, HOST)) for i in ids] == [["Dip"], ["Spray"]]
        assert (await app.runs.look(old.run.id)).run.digest == old.run.digest != new.run.digest


@pytest.mark.requirement("C6", "C80")
async def test_a_waiting_run_is_decided_by_its_policy_after_its_folder_is_gone(shop: Shop) -> None:
    folder = shop.sop("vaccine-release", RELEASE)
    async with shop.opened() as app:
        parked = await finished(app, "vaccine-release", "fine")
        (gate,) = parked.run.open_gates
    shutil.rmtree(folder)
    async with shop.opened() as app:
        with pytest.raises(NotFound):
            await app.runs.start("vaccine-release", None, HOST)
        for verdict in (Verdict.APPROVE, Verdict.DENY):
            with pytest.raises(Refused, match="not a member of group 'inspectors'"):
                await app.runs.decide(gate.id, verdict, person("noor"))
        assert (await app.runs.look(parked.run.id)).run.status is Status.WAITING_APPROVAL
    shop.configure("")
    async with shop.opened() as app:
        with pytest.raises(Refused, match="policy missing"):
            await app.runs.decide(gate.id, Verdict.APPROVE, person("ida"))
        assert (await app.runs.look(parked.run.id)).run.status is Status.WAITING_APPROVAL
    shop.configure(POLICY)
    async with shop.opened() as app:
        assert offered(await app.runs.decide(gate.id, Verdict.APPROVE, person("ida"))) == ["Release"]
        ended = await app.runs.advance(parked.run.id, "2.1", "completed", "out", HOST)
    assert ended.run.status is Status.COMPLETED


@pytest.mark.requirement("C81")
async def test_a_policy_left_blank_is_the_default_policy(shop: Shop) -> None:
    shop.sop("firing", "1. **Fire** — Fire it.\n   - requires_confirmation: true\n   - policy:\n")
    async with shop.opened() as app:
        assert app.library.get("firing").problems == ()
        parked = await app.runs.start("firing", None, HOST)
        (gate,) = parked.run.open_gates
        assert gate.policy == "human"
        assert offered(await app.runs.decide(gate.id, Verdict.APPROVE, person("noor"))) == ["Fire"]
