"""However an agent comes to its step, its contract is the same, part by part."""

import dataclasses
import os
from typing import Any

import pytest
from commands import Workspace
from mortal_store import Died, MortalStore
from session_bench import ASKABLE, HEADLESS, Bench, Desk, Hands, answer, config, script, step

from procedo.agents.contract import Contract
from procedo.core.model import Json
from procedo.core.state import Status, Verdict
from procedo.stores.memory import MemoryStore

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("contract-parity")]

# What may differ between ways, and why. A part of the contract that is not named here fails the test:
# whoever adds one says whether a way may change it, and shows it in `everything`.
MAY_DIFFER: dict[str, dict[str, str]] = {
    "tools": {},
    "security": {},
    "mcp": {},
    "provider": {},
    "runtime": {},
    "approvals": {"route": "where people are asked is told by the door of the start"},
    "seed": {},
    "actor": {
        "root": "who started the run",
        "run": "each run is another one",
        "depth": "a sub-run is one deeper",
        "lineage": "the runs above",
    },
    "runner": {},
    "controls": {},
}
WAYS = ("live", "resumed after a kill", "started at the command line", "in a sub-run")


def everything(bench: Bench) -> None:
    """An agent that has something in every part."""
    bench.configure(
        config(
            ask=["file_write"],
            auto=["file_read"],
            risk='forbidden_paths = ["secret"]\nshell_env_passthrough = ["LANG"]\n',
            runtime="max_tokens_per_step = 1000\nparallel_tools = true\noutput_retries = 1\n"
            'tool_call_dedup_exempt = ["file_read"]\nmax_actions_per_hour = 7\n'
            "[[runtime_profiles.short.tool_filter_groups]]\n"
            'mode = "dynamic"\ntools = ["*__x"]\nkeywords = ["y"]\n',
        )
    )
    write = '{ tool = "file_write", args = { path = "out.md", content = "b" } }'
    bench.script(script(f"calls = [{write}]", 'output = { verdict = "fine" }'))
    bench.procedure(step('output: {"type":"object"}'))
    bench.procedure("1. **Below** — Do it.\n   - sop: review\n", name="outer")


async def answered(desk: Desk, run_id: str) -> None:
    """Approve the one question, wherever in the run it stands, and go on to the end."""
    await desk.work()
    (gate,) = (await desk.app.runs.history(run_id)).gates
    await desk.decide(Verdict.APPROVE, gate)
    assert (await desk.work()).run.status is Status.COMPLETED


async def recorded(desk: Desk, run_id: str) -> Json:
    """The contract of the run's one session, without the run's own random marker."""
    session = (await desk.transcript("1.1", run_id)).session
    marker = (await desk.app.runs.look(run_id)).run.marker
    contract: dict[str, Any] = dict(session.contract)
    contract["seed"] = {**contract["seed"], "context": contract["seed"]["context"].replace(marker, "MARK")}
    return contract


async def by(way: str, bench: Bench) -> Json:
    if way == "started at the command line":
        return await _by_command(bench)
    store = MemoryStore()
    if way == "resumed after a kill":
        return await _resumed(bench, store)
    async with bench.opened(store=MortalStore(store)) as desk:
        await desk.start(name="outer" if way == "in a sub-run" else "review")
        await desk.work()
        run_id = desk.run_id
        if way == "in a sub-run":
            (child,) = await store.read(lambda reader: reader.children(run_id))
            run_id = child.run_id
        await answered(desk, run_id)
        return await recorded(desk, run_id)


async def _resumed(bench: Bench, store: MemoryStore) -> Json:
    mortal = MortalStore(store)

    async def dies(**_: object) -> str:
        mortal.dead = True
        raise Died

    try:
        async with bench.opened(None, Hands({"file_write": dies}), store=mortal) as desk:
            run_id = (await desk.start()).run.id
            await desk.work()
            await desk.decide(Verdict.APPROVE)
            await desk.work()
    except* Died:
        pass
    assert mortal.dead
    bench.clock.pass_by(60)
    async with bench.opened(None, Hands({"file_write": answer}), store=MortalStore(store), run_id=run_id) as desk:
        assert (await desk.work()).run.status is Status.COMPLETED
        live, resumed = desk.place.contracts[0].record(), (await desk.transcript()).session.contract
        assert live == resumed
        return await recorded(desk, run_id)


async def _by_command(bench: Bench) -> Json:
    """The real command starts the run and its own worker assembles the agent."""
    environ = {"PATH": os.environ["PATH"]}
    started = Workspace(bench.root, environ).run("start", "review", "--wait", "60", "--json")
    assert started.code == 0, started.err
    view = started.value
    assert view["status"] == "waiting_approval", view
    async with bench.opened(run_id=view["run_id"]) as desk:
        return await recorded(desk, desk.run_id)


def without(part: str, value: Json) -> Json:
    """A part without what may differ."""
    return {k: v for k, v in value.items() if k not in MAY_DIFFER[part]} if isinstance(value, dict) else value


def test_every_part_of_a_contract_is_compared() -> None:
    assert set(MAY_DIFFER) == {part.name for part in dataclasses.fields(Contract) if part.init}


@pytest.mark.parametrize("way", WAYS[1:])
async def test_every_way_to_a_step_finds_the_same_contract(bench: Bench, way: str) -> None:
    everything(bench)
    live, other = await by("live", bench), await by(way, bench)
    assert set(live) == set(other) == set(MAY_DIFFER)
    for part in MAY_DIFFER:
        assert without(part, other[part]) == without(part, live[part]), part


@pytest.mark.parametrize("part", sorted(MAY_DIFFER))
async def test_no_part_is_empty_where_parity_is_shown(bench: Bench, part: str) -> None:
    """A comparison of nothing with nothing would show nothing; servers are compared with real ones elsewhere."""
    everything(bench)
    live = await by("live", bench)
    assert part == "mcp" or live[part]


async def test_a_difference_would_be_seen(bench: Bench) -> None:
    everything(bench)
    live = await by("live", bench)
    bench.configure(config(ask=["file_write"], auto=[]))
    other = await by("live", bench)
    assert without("runtime", other["runtime"]) != without("runtime", live["runtime"])


async def test_the_surface_decides_about_interactivity_at_the_start_and_for_good(bench: Bench) -> None:
    everything(bench)
    async with bench.opened() as desk:
        await desk.start(ASKABLE)
        await desk.work()
        assert desk.place.contracts[0].approvals.askable
        # Whoever looks at the run later changes nothing about it.
        await desk.app.runs.resume(desk.run_id, HEADLESS)
        await desk.work()
        assert desk.place.contracts[-1].approvals.askable
