"""Whatever a model says, whatever its tools do and whatever people answer: what a session may rely on holds."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mortal_store import Died, MortalStore
from pydantic_ai.messages import ModelResponse, ToolCallPart
from session_bench import ASKABLE, HEADLESS, Bench, Desk, Hands, Talk, config, said, step
from wholeness import whole

from procedo.agents.ports import ToolDenied, ToolFailed
from procedo.core.session import CallState, SessionState
from procedo.core.state import GateKind, Verdict
from procedo.ports import OutcomeUnknown
from procedo.stores.memory import MemoryStore

pytestmark = pytest.mark.requirement("session-invariants")

NAMES = ("file_read", "file_write", "http_request", "shell", "sop_advance", "step_output", "nothing")
ARGUMENTS: Sequence[Any] = (
    {},
    {"path": "a"},
    {"path": "a", "content": "b"},
    {"url": "https://example.org", "method": "POST"},
    {"url": "https://example.org"},
    {"verdict": "fine"},
    {"verdict": 1},
    "{broken",
    "[]",
)
calls = st.builds(
    lambda name, args, identity: ToolCallPart(name, args, tool_call_id=identity),
    st.sampled_from(NAMES),
    st.sampled_from(ARGUMENTS),
    st.sampled_from(["x", "y", ""]),
)
turns = st.builds(
    lambda parts, text, finish: said(*parts, *([text] if text or not parts else []), finish_reason=finish),
    st.lists(calls, max_size=3),
    st.sampled_from(["", "words", '{"verdict": "fine"}']),
    st.sampled_from(["stop", "length", None]),
)
outcomes = st.lists(st.sampled_from(["done", "failed", "denied", "unknown"]), min_size=1, max_size=6)
answers = st.lists(st.sampled_from(["approve", "deny", "amend", "lasting"]), min_size=1, max_size=4)
RAISES = {"failed": ToolFailed, "denied": ToolDenied, "unknown": OutcomeUnknown}


def table(ask: Sequence[str], auto: Sequence[str], tools: Sequence[str], parallel: bool, messages: int) -> str:
    runtime = f"max_tool_iterations = 6\nmax_history_messages = {messages}\nparallel_tools = {str(parallel).lower()}"
    return config(tools=tools, auto=auto, ask=ask, runtime=runtime)


some = st.lists(st.sampled_from(["file_read", "file_write", "http_request"]), unique=True, max_size=3)
tables = st.builds(table, some, some, some, st.booleans(), st.sampled_from([2, 3, 50]))


class Watched(Hands):
    """Tools that look, at the moment of their effect, whether it was written down before."""

    def __init__(self, store: MemoryStore, results: list[str]) -> None:
        super().__init__({})
        self.store, self.results, self.run_id = store, results, ""

    async def call(self, identity: Any, arguments: Any, effect_id: str) -> str:
        transcript = await self.store.read(lambda reader: reader.session(self.run_id, "1.1"))
        assert transcript is not None
        (row,) = [row for row in transcript.calls if f"{self.run_id}:1.1:{row.key}" == effect_id]
        assert (row.state, row.arguments) == (CallState.STARTED, arguments)
        self.made.append((identity.key, arguments))
        result = self.results[len(self.made) % len(self.results)]
        if result in RAISES:
            raise RAISES[result]("so it is")
        return result


async def answered(desk: Desk, wanted: list[str]) -> None:
    for number, gate in enumerate(await desk.gates()):
        word = wanted[number % len(wanted)]
        if gate.kind is GateKind.INTERRUPTED:
            await desk.decide({"approve": Verdict.REPEAT, "deny": Verdict.FAIL}.get(word, Verdict.SKIP), gate)
        elif word == "amend":
            await desk.decide(Verdict.AMEND, gate, value={"path": "b"})
        else:
            await desk.decide(Verdict.DENY if word == "deny" else Verdict.APPROVE, gate, lasting=word == "lasting")


async def lived(
    bench: Bench, talk: list[ModelResponse], hands: Watched, wanted: list[str], dies: int, ask: bool
) -> Desk:
    """One session from its start to its end, with one death on the way."""
    store = hands.store
    said_so_far = 0
    for writes in (dies, None):
        mortal = MortalStore(store, writes)
        try:
            spoken = Talk([*talk[said_so_far:], *[said("the end")] * 20])
            async with bench.opened(spoken, hands, store=mortal, run_id=hands.run_id) as desk:
                if not hands.run_id:
                    hands.run_id = (await desk.start(ASKABLE if ask else HEADLESS)).run.id
                while (await desk.work()).run.end is None:
                    await answered(desk, wanted)
                return desk
        except* Died:
            bench.clock.pass_by(60)
            transcript = await store.read(lambda reader: reader.session(hands.run_id, "1.1"))
            said_so_far = transcript.session.turns if transcript is not None else 0
    raise AssertionError("it did not end")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=tables,
    talk=st.lists(turns, min_size=1, max_size=6),
    results=outcomes,
    wanted=answers,
    dies=st.integers(1, 30),
    ask=st.booleans(),
    schema=st.booleans(),
)
def test_what_a_session_may_rely_on_holds(
    tmp_path_factory: pytest.TempPathFactory,
    text: str,
    talk: list[ModelResponse],
    results: list[str],
    wanted: list[str],
    dies: int,
    ask: bool,
    schema: bool,
) -> None:
    bench = Bench(Path(tmp_path_factory.mktemp("session")))
    bench.configure(text)
    bench.procedure(
        step(
            'output: {"type":"object","required":["verdict"],"properties":{"verdict":{"type":"string"}}}'
            if schema
            else ""
        )
    )
    store = MemoryStore()
    hands = Watched(store, results)

    async def go() -> None:
        desk = await lived(bench, talk, hands, wanted, dies, ask)
        run_id = hands.run_id
        transcript = await store.read(lambda reader: reader.session(run_id, "1.1"))
        assert transcript is not None
        session = transcript.session
        # Every end is typed, and the run's record is whole.
        assert session.state.final
        assert session.state is not SessionState.CANCELLED
        run, _ = await store.read(lambda reader: whole(reader, run_id))
        assert run.end is not None
        assert (run.end.status == "completed") == (session.state is SessionState.COMPLETED)
        # Nothing outside of the frozen set was called, and nothing without having been written down.
        frozen = {tool["offered"] for tool in session.contract["tools"]}
        keys = {f"built_in:{name}" for name in frozen}
        assert {key for key, _ in hands.made} <= keys
        assert sum(row.attempts for row in transcript.calls) == len(hands.made)
        # Every call of an answered turn has its outcome; the transcript is whole, whatever was sent.
        assert [message.kind for message in transcript.messages] == [
            ("request", "response")[number % 2] for number in range(len(transcript.messages))
        ]
        last = max((row.turn for row in transcript.calls), default=0)
        assert all(row.outcome is not None for row in transcript.calls if row.turn < last)
        for message in transcript.messages[1:]:
            if message.kind == "request":
                answered_ids = [part["tool_call_id"] for part in message.data["parts"] if "tool_call_id" in part]
                turn = (message.seq - 1) // 2
                assert answered_ids in ([], [row.call_id for row in transcript.calls if row.turn == turn])
        assert session.calls == len(transcript.calls)
        assert session.turns == sum(1 for turn in transcript.turns if turn.answered)
        del desk

    anyio.run(go)
