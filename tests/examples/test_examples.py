"""The procedures in sops/ load without a problem, and each way through each of them is walked to its end."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from readme_transcript import server
from repository import ROOT
from walker import Walker, declared, walked
from walks import WALKS, Failed, Late, Walk

from procedo.app import App, RandomIds, assemble
from procedo.config import load
from procedo.core.state import Status
from procedo.stores.memory import MemoryStore

pytestmark = pytest.mark.anyio

EVERY_WALK = [pytest.param(name, walk, id=f"{name}: {walk.says}") for name, walks in WALKS.items() for walk in walks]


class MovedClock:
    """A time that passes only when a test says so."""

    def __init__(self) -> None:
        self.time = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    async def sleep(self, seconds: float) -> None:
        await anyio.lowlevel.checkpoint()

    def advance_to(self, moment: datetime) -> None:
        self.time = max(self.time, moment)


@dataclass
class Shop:
    app: App
    clock: MovedClock

    async def walk(self, name: str, walk: Walk) -> Walker:
        walker = Walker(self.app.runs, self.clock, walk)
        walker.ended = await walker.to_the_end(name)
        return walker


@asynccontextmanager
async def shop(data: Path) -> AsyncIterator[Shop]:
    """This repository as a workspace, its store in memory."""
    clock = MovedClock()
    settings = replace(load(ROOT), data_dir=data)
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
    assert {entry.name: [str(problem) for problem in entry.problems] for entry in entries} == {name: [] for name in WALKS}
    owners = {entry.name: entry.sop.extensions.get("x-owner") for entry in entries if entry.sop is not None}
    assert all(owner for name, owner in owners.items() if name != "dependency-update"), owners


@pytest.mark.requirement("C36")
@pytest.mark.parametrize(("name", "walk"), EVERY_WALK)
async def test_every_way_through_ends_as_it_should(name: str, walk: Walk, tmp_path: Path) -> None:
    async with shop(tmp_path) as opened:
        walker = await opened.walk(name, walk)
        run = walker.ended.run
        history = await opened.app.runs.history(run.id)
    assert run.end is not None
    assert (run.end.status, run.end.reason) == (walk.ends, run.end.reason if walk.reason else "")
    assert walk.reason in run.end.reason
    assert run.end.output == walk.output
    assert " ".join(execution.id for execution in history.executions) == walk.path
    assert walker.everything_was_used()


@pytest.mark.requirement("examples-branches")
@pytest.mark.parametrize("name", WALKS)
async def test_every_branch_of_an_example_is_walked(name: str, tmp_path: Path) -> None:
    taken = set()
    async with shop(tmp_path) as opened:
        sop = opened.app.library.get(name).sop
        assert sop is not None
        for walk in WALKS[name]:
            walker = await opened.walk(name, walk)
            taken |= walked(sop, await opened.app.runs.history(walker.ended.run.id))
    assert sorted(declared(sop) - taken) == []
    assert sorted(taken - declared(sop)) == []
