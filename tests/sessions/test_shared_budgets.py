"""What a sub-run uses counts in every run above it, and what those use counts in the sub-run."""

from collections.abc import Sequence

import pytest
from pydantic_ai.messages import ModelResponse
from pydantic_ai.usage import RequestUsage
from session_bench import COMPATIBLE, Bench, config, said, step

from procedo.core.session import SessionState

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("session-ends")]

PRICED = COMPATIBLE + "input_usd_per_million = 100\noutput_usd_per_million = 100\n"
DONE, OVER = SessionState.COMPLETED, SessionState.EXHAUSTED
ABOVE = "by the agents of the run above and its sub-runs"
OWN = "by the agents of this run and its sub-runs"


def ten_tokens() -> ModelResponse:
    return said("fine", usage=RequestUsage(input_tokens=4, output_tokens=6))


def nested(bench: Bench, runtime: str) -> None:
    """A run whose agent works before and after a sub-run that has a sub-run, each with the same agent."""
    bench.configure(config(runtime=runtime, kind="openai_compatible", provider=PRICED))
    bench.procedure(step(), name="innermost")
    bench.procedure(step() + "2. **Below** — Do it.\n   - sop: innermost\n", name="inner")
    after = "3. **Again** — Review it again.\n   - agent: reviewer\n"
    bench.procedure(step() + "2. **Below** — Do it.\n   - sop: inner\n" + after, name="outer")


async def told(bench: Bench, runs: Sequence[str]) -> list[tuple[SessionState, str]]:
    """How each session of these runs ended, in the order of their beginnings, as a new process reads it."""
    async with bench.opened() as desk:
        found = [row for run in runs for row in (await desk.app.runs.history(run)).sessions]
        return [(row.state, row.reason) for row in sorted(found, key=lambda row: (row.started_at, row.execution_id))]


async def worked(bench: Bench, runtime: str, turns: int = 4) -> list[tuple[SessionState, str]]:
    """How the sessions of the whole tree ended, each of which wants one answer of ten tokens."""
    nested(bench, runtime)
    async with bench.opened([ten_tokens() for _ in range(turns)], {}) as desk:
        await desk.start(name="outer")
        await desk.work()
        runs = [desk.run_id]
        for run in runs:
            runs += [child.run_id for child in (await desk.app.runs.history(run)).children]
    return await told(bench, runs)


@pytest.mark.parametrize("runtime", ["", "max_tokens_per_run = 40", "max_cost_per_run_cents = 0.4"])
async def test_within_the_budget_every_run_of_the_tree_completes(bench: Bench, runtime: str) -> None:
    assert await worked(bench, runtime) == [(DONE, "")] * 4


@pytest.mark.parametrize(
    ("runtime", "reason"),
    [
        ("max_tokens_per_run = 20", f"run_tokens 20 are used up {ABOVE} (20)"),
        ("max_tokens_per_run = 29", f"run_tokens 29 are exceeded {ABOVE} (30)"),
        ("max_cost_per_run_cents = 0.2", f"run_cost_usd 0.002 is used up {ABOVE} (0.002)"),
    ],
)
async def test_what_the_runs_above_have_used_is_not_left_for_a_sub_run(bench: Bench, runtime: str, reason: str) -> None:
    assert (await worked(bench, runtime))[:3] == [(DONE, ""), (DONE, ""), (OVER, reason)]


@pytest.mark.parametrize(
    ("runtime", "reason"),
    [
        ("max_tokens_per_run = 30", f"run_tokens 30 are used up {OWN} (30)"),
        ("max_cost_per_run_cents = 0.3", f"run_cost_usd 0.003 is used up {OWN} (0.003)"),
    ],
)
async def test_what_sub_runs_have_used_is_not_left_for_the_run_above(bench: Bench, runtime: str, reason: str) -> None:
    assert await worked(bench, runtime) == [(DONE, ""), (DONE, ""), (DONE, ""), (OVER, reason)]


async def test_a_restart_gives_nothing_back(bench: Bench) -> None:
    """Each process performs one job and ends; the budget is used up by what the processes before it did."""
    nested(bench, "max_tokens_per_run = 30")
    async with bench.opened() as desk:
        run_id = (await desk.start(name="outer")).run.id
    for _ in range(40):
        async with bench.opened([ten_tokens()], {}, run_id=run_id) as desk:
            claim = await desk.claim()
            if claim is None:
                break
            await desk.driver.perform(claim)
            await desk.app.store.write(lambda writer, claim=claim: writer.finish_job(claim))  # type: ignore[misc]  # bound at once
    assert await told(bench, [run_id]) == [(DONE, ""), (OVER, f"run_tokens 30 are used up {OWN} (30)")]


async def test_a_run_of_its_own_has_a_budget_of_its_own(bench: Bench) -> None:
    nested(bench, "max_tokens_per_run = 10")
    async with bench.opened([ten_tokens(), ten_tokens()], {}) as desk:
        runs = []
        for _ in range(2):
            runs.append((await desk.start(name="innermost")).run.id)
            await desk.work()
    assert await told(bench, runs) == [(DONE, ""), (DONE, "")]
