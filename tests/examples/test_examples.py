"""The procedures in sops/ load without a problem, and each way through each of them is walked to its end."""

import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from commands import Workspace
from mcp import Client
from moved_clock import MovedClock
from readme_transcript import server
from repository import ROOT
from walker import Walker, declared, walked
from walks import WALKS, Walk

from procedo.app import App, RandomIds, assemble
from procedo.config import load
from procedo.core.altered import altered
from procedo.runs import History
from procedo.stores.memory import MemoryStore

pytestmark = pytest.mark.anyio

EVERY_WALK = [pytest.param(name, walk, id=f"{name}: {walk.says}") for name, walks in WALKS.items() for walk in walks]


@dataclass
class Shop:
    app: App
    clock: MovedClock

    async def walk(self, name: str, walk: Walk) -> History:
        """Walk to the end; whatever the walk has to say must have been asked for."""
        walker = Walker(self.app.runs, self.clock, walk)
        ended = await walker.to_the_end(name)
        assert walker.everything_was_used(), (walker.reports, walker.decisions)
        return await self.app.runs.history(ended.run.id)


@asynccontextmanager
async def shop(data: Path) -> AsyncIterator[Shop]:
    """This repository as a workspace, its store in memory."""
    clock = MovedClock()
    settings = altered(load(ROOT), data_dir=data)
    app = assemble(settings, MemoryStore(), clock, RandomIds())
    async with anyio.create_task_group() as group:
        group.start_soon(app.carrier.run_worker, app.driver.perform)
        yield Shop(app, clock)
        group.cancel_scope.cancel()
    await app.store.close()


@pytest.mark.requirement("C36")
async def test_every_example_loads_without_a_problem(tmp_path: Path) -> None:
    async with shop(tmp_path) as opened:
        entries = opened.app.library.entries()
    assert {entry.name: [str(problem) for problem in entry.problems] for entry in entries} == {
        name: [] for name in WALKS
    }
    owners = {entry.name: entry.sop.extensions.get("x-owner") for entry in entries if entry.sop is not None}
    assert all(owner for name, owner in owners.items() if name != "dependency-update"), owners


@pytest.mark.requirement("C36")
@pytest.mark.parametrize(("name", "walk"), EVERY_WALK)
async def test_every_way_through_ends_as_it_should(name: str, walk: Walk, tmp_path: Path) -> None:
    async with shop(tmp_path) as opened:
        history = await opened.walk(name, walk)
    end = history.snapshot.run.end
    assert end is not None
    assert (end.status, end.output) == (walk.ends, walk.output)
    assert (walk.reason in end.reason) if walk.reason else end.reason == ""
    assert " ".join(execution.id for execution in history.executions) == walk.path


@pytest.mark.requirement("examples-branches")
@pytest.mark.parametrize("name", WALKS)
async def test_every_branch_of_an_example_is_walked(name: str, tmp_path: Path) -> None:
    taken = set()
    async with shop(tmp_path) as opened:
        sop = opened.app.library.get(name).sop
        assert sop is not None
        for walk in WALKS[name]:
            taken |= walked(sop, await opened.walk(name, walk))
        promised = declared(sop, opened.app.settings.default_mode)
    assert sorted(promised - taken) == []
    assert sorted(taken - promised) == []


async def called(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


@pytest.mark.requirement("C36", "C103")
async def test_a_complaint_over_stdio_sends_what_a_person_amended_at_a_terminal(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "sops", tmp_path / "sops")
    (walk,) = [walk for walk in WALKS["customer-complaint"] if walk.says == "sent as amended"]
    drafted, amended = walk.reports[2][0]["body"], walk.decisions[3][0].value
    async with Client(server(tmp_path)) as client:
        view = await called(client, "sop_start", name="customer-complaint", inputs=walk.inputs)
        run_id = view["run_id"]
        for execution in ("1.1", "2.1"):
            (report,) = walk.reports[int(execution[0])]
            told = {"run_id": run_id, "execution_id": execution, "status": "completed", "output": report}
            view = await called(client, "sop_advance", **told)
        (action,) = view["actions"]
        assert (action["action"], action["context"]["content"]["body"]) == ("checkpoint_wait", drafted)

        screen = Workspace(tmp_path).person("approve", action["context"]["code"], "--amend", amended)
        assert screen.code == 0, screen.text

        view = await called(client, "sop_resume", run_id=run_id)
        (action,) = view["actions"]
        assert (action["action"], action["execution_id"]) == ("execute_step", "4.1")
        assert amended in action["step"]["body"]
        assert drafted not in json.dumps(action["step"])
        (report,) = walk.reports[4]
        view = await called(client, "sop_advance", run_id=run_id, execution_id="4.1", status="completed", output=report)
    assert (view["status"], view["output"]) == ("completed", walk.output)
