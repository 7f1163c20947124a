"""A session goes on from its rows, whenever its process ended; what may have acted is never repeated silently."""

from collections import Counter
from typing import Any

import pytest
from mortal_store import Died, MortalStore
from session_bench import ASKABLE, HEADLESS, Bench, Desk, Hands, Talk, answer, call, calls, config, said, step
from wholeness import whole

from procedo.core.session import CallState, Outcome, SessionState, Transcript
from procedo.core.state import GateKind, Status, Verdict
from procedo.ports import Store
from procedo.stores.memory import MemoryStore
from procedo.stores.sqlite import SqliteStore

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("session-restarts")]

POST = call("http_request", url="https://example.org", method="POST")
READ, WRITE = call("file_read", path="a"), call("file_write", path="a", content="b")
STORY = """
[[turns]]
calls = [
    { tool = "file_read", args = { path = "a" } },
    { tool = "http_request", args = { url = "https://example.org", method = "POST" } },
]
tokens = [10, 1]
[[turns]]
calls = [{ tool = "file_write", args = { path = "a", content = "b" } }, { tool = "file_read", args = { path = "b" } }]
tokens = [10, 1]
[[turns]]
output = { verdict = "fine" }
tokens = [10, 1]
"""
TOOLS = {"file_read": answer, "file_write": answer, "http_request": answer}
VERDICT = 'output: {"type":"object","required":["verdict"]}'


async def driven(desk: Desk) -> Status:
    """Work, and answer whatever is asked: calls are approved, what may have acted is skipped."""
    while True:
        status = (await desk.work()).run.status
        gates = await desk.gates()
        if not gates:
            return status
        for gate in gates:
            await desk.decide(Verdict.SKIP if gate.kind is GateKind.INTERRUPTED else Verdict.APPROVE, gate)


def prepared(bench: Bench) -> None:
    bench.configure(config(auto=["file_read", "http_request"], ask=["file_write"]))
    bench.script(STORY)
    bench.procedure(step(VERDICT))


async def lived(bench: Bench, store: Store, hands: Hands, writes: int | None, *, after: bool, run_id: str = "") -> int:
    """The life of one process up to its n-th write; how many it made."""
    mortal = MortalStore(store, writes, after=after)
    try:
        async with bench.opened(None, hands, store=mortal, run_id=run_id) as desk:
            if not run_id:
                await desk.start()
            await driven(desk)
    except* Died:
        pass
    return mortal.writes


@pytest.mark.parametrize("after", [False, True], ids=["before the write", "after the commit"])
async def test_a_death_at_any_write_loses_nothing_and_repeats_no_effect(bench: Bench, after: bool) -> None:
    prepared(bench)
    whole_life = await lived(bench, MemoryStore(), Hands(TOOLS), None, after=False)
    assert whole_life > 20
    interrupted = 0
    for writes in range(1, whole_life):
        store, hands = MemoryStore(), Hands(TOOLS)
        await lived(bench, store, hands, writes, after=after)
        bench.clock.pass_by(60)  # the claim of the dead runs out
        (run_id,) = await store.read(lambda reader: reader.run_ids())
        async with bench.opened(None, hands, store=MortalStore(store), run_id=run_id) as desk:
            assert await driven(desk) is Status.COMPLETED
            transcript, end = await desk.transcript(), (await desk.look()).run.end
        assert end is not None
        assert end.output == {"verdict": "fine"}
        assert [(row.key, row.state) for row in transcript.calls] == [
            (key, CallState.DONE) for key in ("1.0", "1.1", "2.0", "2.1", "3.0")
        ]
        posted = transcript.calls[1].outcome
        made = Counter(name for name, _ in hands.made)
        assert made["http_request"] <= 1
        assert posted is (Outcome.SUCCESS if posted is not Outcome.INTERRUPTED else posted)
        assert posted is Outcome.INTERRUPTED or made["http_request"] == 1
        interrupted += posted is Outcome.INTERRUPTED
        others = [row.outcome for row in transcript.calls if row is not transcript.calls[1]]
        assert set(others) == {Outcome.SUCCESS}
        assert [message.kind for message in transcript.messages] == ["request", "response"] * 3
        assert transcript.session.state is SessionState.COMPLETED
        assert (transcript.session.turns, transcript.session.input_tokens) == (3, 30)
        await store.read(lambda reader, run_id=run_id: whole(reader, run_id))  # type: ignore[misc]  # bound at once
    # Exactly one instant of each kind lies between the write-ahead and the result.
    assert interrupted == 1


# --- calls that may have acted ---------------------------------------------------------------------


async def cut(bench: Bench, hands: Hands, *talk: Any, surface: Any = ASKABLE) -> str:
    """A process that dies inside the first call of its agent, after the effect and before the result."""
    store = await SqliteStore.open(bench.root / ".procedo" / "procedo.db")
    mortal = MortalStore(store)
    tools = dict(hands.tools)

    def dying(tool: Any) -> Any:
        async def acts_and_dies(**more: Any) -> str:
            await tool(**more)
            mortal.dead = True
            raise Died

        return acts_and_dies

    hands.tools = {name: dying(tool) for name, tool in tools.items()}
    run_id = ""
    try:
        async with bench.opened(Talk(list(talk)), hands, store=mortal) as desk:
            run_id = (await desk.start(surface)).run.id
            await desk.work()
    except* Died:
        pass
    finally:
        await store.close()
    assert mortal.dead
    hands.tools = tools
    bench.clock.pass_by(60)
    return run_id


@pytest.mark.parametrize("made_again", [READ, WRITE, call("http_request", url="https://example.org")])
async def test_a_call_that_is_declared_repeatable_is_repeated(bench: Bench, made_again: Any) -> None:
    hands = Hands(TOOLS)
    run_id = await cut(bench, hands, said(made_again))
    talk = Talk([said("fine")])
    async with bench.opened(talk, hands, run_id=run_id) as desk:
        assert (await desk.work()).run.status is Status.COMPLETED
        (row,) = (await desk.transcript()).calls
    assert (len(hands.made), row.attempts, row.outcome) == (2, 2, Outcome.SUCCESS)
    assert hands.effects[0] == hands.effects[1]
    assert talk.last_heard() == [(made_again.tool_name, "success", "done")]


@pytest.mark.parametrize(
    ("verdict", "made", "outcome", "status"),
    [
        (Verdict.REPEAT, 2, "success", Status.COMPLETED),
        (Verdict.SKIP, 1, "interrupted", Status.COMPLETED),
        (Verdict.FAIL, 1, None, Status.FAILED),
    ],
)
async def test_any_other_call_becomes_a_question_and_each_answer_is_carried_out(
    bench: Bench, verdict: Verdict, made: int, outcome: str | None, status: Status
) -> None:
    hands = Hands(TOOLS)
    run_id = await cut(bench, hands, said(POST))
    talk = Talk([said("fine")])
    async with bench.opened(talk, hands, run_id=run_id) as desk:
        assert (await desk.work()).run.status is Status.WAITING_APPROVAL
        (gate,) = await desk.gates()
        assert gate.kind is GateKind.INTERRUPTED
        assert "http_request was called by reviewer, and its result is not known" in gate.prompt
        assert (gate.content["arguments"], gate.content["attempt"]) == (
            {"url": "https://example.org", "method": "POST"},
            1,
        )
        assert len(hands.made) == 1
        await desk.decide(verdict, comment="as I said")
        assert (await desk.work()).run.status is status
        assert len(hands.made) == made
        if outcome is not None:
            assert await desk.calls() == [("1.0", "http_request", outcome)]
        else:
            assert await desk.failure() == "agent 'reviewer' is failed: as I said"


async def test_an_answer_is_for_one_interruption_and_the_next_one_is_asked_about_again(bench: Bench) -> None:
    hands = Hands(TOOLS)
    run_id = await cut(bench, hands, said(POST))
    async with bench.opened([], hands, run_id=run_id) as desk:
        await desk.work()
        await desk.decide(Verdict.REPEAT)
    store = await SqliteStore.open(bench.root / ".procedo" / "procedo.db")
    mortal = MortalStore(store)

    async def dies(**_: Any) -> str:
        mortal.dead = True
        raise Died

    dying = Hands({"http_request": dies})
    try:
        async with bench.opened([], dying, store=mortal, run_id=run_id) as desk:
            await desk.work()
    except* Died:
        pass
    await store.close()
    assert len(dying.made) == 1
    bench.clock.pass_by(60)
    async with bench.opened([said("fine")], hands, run_id=run_id) as desk:
        assert (await desk.work()).run.status is Status.WAITING_APPROVAL
        (gate,) = await desk.gates()
        assert gate.content["attempt"] == 2
        await desk.decide(Verdict.SKIP)
        assert (await desk.work()).run.status is Status.COMPLETED
    assert len(hands.made) == 1


@pytest.mark.parametrize(("runtime", "surface"), [('on_interrupted = "fail"', ASKABLE), ("", HEADLESS)])
async def test_where_nobody_is_to_be_asked_the_model_is_told_and_nothing_is_repeated(
    bench: Bench, runtime: str, surface: Any
) -> None:
    bench.configure(config(runtime=runtime))
    hands = Hands(TOOLS)
    run_id = await cut(bench, hands, said(POST), surface=surface)
    talk = Talk([said("fine")])
    async with bench.opened(talk, hands, run_id=run_id) as desk:
        assert (await desk.work()).run.status is Status.COMPLETED
    told = "interrupted: it may or may not have acted; not repeated"
    assert talk.last_heard() == [("http_request", "interrupted", told)]
    assert len(hands.made) == 1


async def test_the_calls_beside_an_interrupted_one_are_kept(bench: Bench) -> None:
    """The first is done, the second was cut off, the third never began."""
    hands = Hands(TOOLS)
    store = MemoryStore()
    mortal = MortalStore(store)

    async def dies(**_: Any) -> str:
        mortal.dead = True
        raise Died

    try:
        async with bench.opened(
            [said(READ, POST, WRITE)], Hands({**TOOLS, "http_request": dies}), store=mortal
        ) as desk:
            await desk.start()
            await desk.work()
    except* Died:
        pass
    bench.clock.pass_by(60)
    (run_id,) = await store.read(lambda reader: reader.run_ids())
    talk = Talk([said("fine")])
    async with bench.opened(talk, hands, store=MortalStore(store), run_id=run_id) as desk:
        await desk.work()
        assert await desk.calls() == [
            ("1.0", "file_read", "success"), ("1.1", "http_request", None), ("1.2", "file_write", "success"),
        ]  # fmt: skip
        await desk.decide(Verdict.SKIP)
        await desk.work()
    assert [name for name, _ in hands.made] == ["file_write"]
    assert [outcome for _, outcome, _ in talk.last_heard()] == ["success", "interrupted", "success"]


# --- turns, claims, contracts ----------------------------------------------------------------------


async def test_a_request_whose_process_died_is_sent_again_and_counted_as_unmeasured(bench: Bench) -> None:
    store = MemoryStore()
    mortal = MortalStore(store)

    async def die() -> None:
        mortal.dead = True
        raise Died

    try:
        async with bench.opened(Talk([said("lost")], before=die), {}, store=mortal) as desk:
            await desk.start()
            await desk.work()
    except* Died:
        pass
    bench.clock.pass_by(60)
    (run_id,) = await store.read(lambda reader: reader.run_ids())
    talk = Talk([said("fine")])
    async with bench.opened(talk, {}, store=MortalStore(store), run_id=run_id) as desk:
        assert (await desk.work()).run.status is Status.COMPLETED
        transcript = await desk.transcript()
    assert (transcript.session.turns, transcript.session.unmeasured) == (1, 1)
    assert [turn.answered for turn in transcript.turns] == [True]


async def test_a_worker_that_lost_its_claim_writes_nothing_and_starts_no_further_call(bench: Bench) -> None:
    second: list[Transcript] = []
    async with bench.opened([said("fine by the second")], Hands(TOOLS)) as other:

        async def taken_over(**_: Any) -> str:
            bench.clock.pass_by(60)
            other.run_id = desk.run_id
            await other.work()
            second.append(await other.transcript())
            return "too late"

        hands = Hands({**TOOLS, "file_read": taken_over})
        async with bench.opened([said(READ, WRITE), said("never")], hands) as desk:
            await desk.start()
            claim = await desk.claim()
            assert claim is not None
            await desk.driver.perform(claim)
            assert await desk.transcript() == second[0]
            assert (await desk.look()).run.status is Status.COMPLETED
    assert [name for name, _ in hands.made] == ["file_read"]
    assert calls(second[0]) == [("1.0", "file_read", "success"), ("1.1", "file_write", "success")]


async def test_a_changed_agent_is_not_gone_on_with_and_the_difference_is_told(bench: Bench) -> None:
    bench.configure(config(ask=["file_read"]))
    hands = Hands(TOOLS)
    async with bench.opened([said(READ)], hands) as desk:
        run_id = (await desk.start()).run.id
        await desk.work()
        before = await desk.transcript()
        await desk.decide(Verdict.APPROVE)
    bench.configure(config(ask=["file_read"], runtime="max_tool_iterations = 3"))
    talk = Talk([said("never")])
    async with bench.opened(talk, hands, run_id=run_id) as desk:
        assert (await desk.work()).run.status is Status.FAILED
        reason = await desk.failure()
        session = (await desk.transcript()).session
    assert "is not what it was when this session began: runtime.iterations: was 10, is 3" in reason
    assert (session.state, session.contract) == (SessionState.REFUSED, before.session.contract)
    assert (talk.heard, hands.made) == ([], [])


async def test_the_same_agent_goes_on(bench: Bench) -> None:
    bench.configure(config(ask=["file_read"]))
    async with bench.opened([said(READ)], TOOLS) as desk:
        run_id = (await desk.start()).run.id
        await desk.work()
        await desk.decide(Verdict.APPROVE)
    bench.configure(config(ask=["file_read"]) + "\n# nothing that matters\n")
    async with bench.opened([said("fine")], TOOLS, run_id=run_id) as desk:
        assert (await desk.work()).run.status is Status.COMPLETED


async def test_a_call_that_may_have_acted_is_settled_even_when_its_agent_has_changed(bench: Bench) -> None:
    hands = Hands(TOOLS)
    run_id = await cut(bench, hands, said(POST))
    bench.configure(config(tools=["file_read"], auto=["file_read"]))
    async with bench.opened([], hands, run_id=run_id) as desk:
        assert (await desk.work()).run.status is Status.FAILED
        (row,) = (await desk.transcript()).calls
    assert (row.outcome, row.text) == (Outcome.INTERRUPTED, "its process ended while it ran; it may have acted")


async def test_a_result_that_was_accepted_is_told_whatever_has_changed_since(bench: Bench) -> None:
    """Only telling it was lost: the agent is not needed any more."""
    store = MemoryStore()
    writes = await lived(bench, store, Hands({}), None, after=False)
    store = MemoryStore()
    for last in range(writes, 0, -1):
        store = MemoryStore()
        await lived(bench, store, Hands({}), last, after=False)
        (run_id,) = await store.read(lambda reader: reader.run_ids())
        session = await store.read(lambda reader, run_id=run_id: reader.session(run_id, "1.1"))  # type: ignore[misc]
        run = await store.read(lambda reader, run_id=run_id: reader.run(run_id))  # type: ignore[misc]
        if (
            session is not None
            and session.session.state is SessionState.COMPLETED
            and run is not None
            and run.end is None
        ):
            break
    else:
        pytest.fail("there is no such moment")
    bench.clock.pass_by(60)
    bench.configure(config(agent="enabled = false"))
    async with bench.opened(store=MortalStore(store), run_id=run_id) as desk:
        assert (await desk.work()).run.status is Status.COMPLETED
        assert (await desk.transcript()).session.state is SessionState.COMPLETED


async def test_a_session_goes_on_with_the_step_as_it_was_shown_to_it(bench: Bench) -> None:
    """Another branch does the step again whose output was shown; the session keeps what it began with."""
    bench.configure(config(ask=["file_read"]))
    bench.procedure(
        "1. **Begin** — Say a number.\n   - next: 2, 3\n"
        "2. **Review** — Look at it.\n   - agent: reviewer\n   - terminal: true\n   - context: 1\n"
        "3. **Again** — Once more.\n   - next: 1\n"
    )
    talk = Talk([said(READ), said(READ), said("fine")])
    async with bench.opened(talk, TOOLS) as desk:
        await desk.start()
        await desk.app.runs.advance(desk.run_id, "1.1", "completed", "early", ASKABLE)
        await desk.work()
        await desk.app.runs.advance(desk.run_id, "3.1", "completed", None, ASKABLE)
        await desk.app.runs.advance(desk.run_id, "1.2", "completed", "late", ASKABLE)
        await desk.work()
        first, second = await desk.gates()
        assert (first.execution, second.execution) == ("2.1", "2.2")
        await desk.decide(Verdict.APPROVE, first)
        await desk.work()
        session = (await desk.transcript("2.1")).session
        assert session.state is SessionState.COMPLETED
        assert "early" in session.contract["seed"]["context"]
        assert "late" in (await desk.transcript("2.2")).session.contract["seed"]["context"]
