"""A session stops when its step is over for another reason, and what comes late is not taken."""

from collections.abc import Awaitable, Callable

import anyio
import pytest
from session_bench import ASKABLE, Bench, Desk, Hands, Talk, answer, call, config, said, step

from procedo.core.session import CallState, SessionState
from procedo.core.state import GateKind, Status, Verdict
from procedo.errors import Refused

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("session-stops")]

POST = call("http_request", url="https://example.org", method="POST")


async def cancelled(desk: Desk, _: Bench) -> None:
    await desk.app.runs.cancel(desk.run_id, "enough", ASKABLE)


async def out_of_time(desk: Desk, bench: Bench) -> None:
    bench.clock.pass_by(61)
    await desk.app.runs.state(desk.run_id, ASKABLE)


@pytest.mark.parametrize(
    ("end", "reason", "status"),
    [(cancelled, "the run is cancelled", Status.CANCELLED), (out_of_time, "step 1 exceeded 60s", Status.FAILED)],
)
async def test_a_step_that_is_over_stops_its_session_in_the_middle_of_a_call(
    bench: Bench, end: Callable[[Desk, Bench], Awaitable[None]], reason: str, status: Status
) -> None:
    bench.procedure(step("timeout: 1m"))
    stopped = anyio.Event()

    async def endless(**_: object) -> str:
        try:
            await end(desk, bench)
            await anyio.sleep_forever()
        finally:
            stopped.set()
        return ""

    talk = Talk([said(POST), said("never")])
    async with bench.opened(talk, {"http_request": endless}) as desk:
        await desk.start()
        with anyio.fail_after(240):
            assert (await desk.work()).run.status is status
        assert stopped.is_set()
        transcript = await desk.transcript()
    assert (transcript.session.state, transcript.session.reason) == (SessionState.CANCELLED, reason)
    (row,) = transcript.calls
    assert (row.outcome, row.text) == ("interrupted", "cancelled while it ran; it may have acted")
    assert len(talk.heard) == 1


async def test_a_result_that_comes_after_the_end_is_not_taken(bench: Bench) -> None:
    async def late(**_: object) -> str:
        await desk.app.runs.cancel(desk.run_id, "enough", ASKABLE)
        return "a result all the same"

    async with bench.opened([said(POST), said("never")], {"http_request": late}) as desk:
        await desk.start()
        assert (await desk.work()).run.status is Status.CANCELLED
        transcript = await desk.transcript()
    assert transcript.session.state is SessionState.CANCELLED
    assert transcript.calls[0].outcome == "interrupted"
    assert "a result all the same" not in repr(transcript)


async def test_a_call_that_only_waited_for_its_turn_leaves_no_trace(bench: Bench) -> None:
    async def endless(**_: object) -> str:
        await desk.app.runs.cancel(desk.run_id, "enough", ASKABLE)
        await anyio.sleep_forever()
        return ""

    hands = Hands({"http_request": endless, "file_write": answer})
    async with bench.opened([said(POST, call("file_write", path="a", content="b"))], hands) as desk:
        await desk.start()
        with anyio.fail_after(240):
            await desk.work()
        first, second = (await desk.transcript()).calls
    assert first.outcome == "interrupted"
    assert (second.state, second.outcome, second.attempts, second.started_at) == (CallState.WAITING, None, 0, None)
    assert [name for name, _ in hands.made] == ["http_request"]


async def test_a_cancelled_request_to_the_model_is_not_answered(bench: Bench) -> None:
    async def endless() -> None:
        await desk.app.runs.cancel(desk.run_id, "enough", ASKABLE)
        await anyio.sleep_forever()

    talk = Talk([said("never")], before=endless)
    async with bench.opened(talk, {}) as desk:
        await desk.start()
        with anyio.fail_after(240):
            assert (await desk.work()).run.status is Status.CANCELLED
        transcript = await desk.transcript()
    assert transcript.session.state is SessionState.CANCELLED
    assert (transcript.session.unmeasured, transcript.session.unpriced) == (1, 1)
    assert [message.kind for message in transcript.messages] == ["request"]
    assert [turn.answered for turn in transcript.turns] == [False]


async def test_a_person_may_give_a_slow_session_more_time_and_it_goes_on_from_its_rows(bench: Bench) -> None:
    bench.procedure(step("timeout: 1m\non_timeout: gate"))
    first = True

    async def slow(**_: object) -> str:
        nonlocal first
        if first:
            first = False
            await out_of_time(desk, bench)
            await anyio.sleep_forever()
        return "done"

    hands = Hands({"http_request": slow, "file_read": answer})
    talk = Talk([said(call("file_read", path="a"), POST), said("fine")])
    async with bench.opened(talk, hands) as desk:
        await desk.start()
        with anyio.fail_after(240):
            assert (await desk.work()).run.status is Status.WAITING_APPROVAL
        (gate,) = await desk.gates()
        assert gate.kind is GateKind.TIMEOUT
        assert (await desk.transcript()).session.state is SessionState.RUNNING
        await desk.decide(Verdict.APPROVE)
        assert (await desk.work()).run.status is Status.WAITING_APPROVAL
        (gate,) = await desk.gates()
        assert gate.kind is GateKind.INTERRUPTED
        await desk.decide(Verdict.REPEAT)
        assert (await desk.work()).run.status is Status.COMPLETED
    assert [name for name, _ in hands.made] == ["file_read", "http_request", "http_request"]


async def test_a_person_may_end_a_slow_session(bench: Bench) -> None:
    bench.procedure(step("timeout: 1m\non_timeout: gate"))

    async def endless(**_: object) -> str:
        await out_of_time(desk, bench)
        await anyio.sleep_forever()
        return ""

    async with bench.opened([said(POST)], {"http_request": endless}) as desk:
        await desk.start()
        with anyio.fail_after(240):
            await desk.work()
        await desk.decide(Verdict.DENY)
        assert (await desk.work()).run.status is Status.FAILED
        assert (await desk.transcript()).session.state is SessionState.CANCELLED


async def test_the_time_that_a_person_took_is_given_back_to_the_step(bench: Bench) -> None:
    bench.procedure(step("timeout: 1m"))
    bench.configure(config(ask=["file_read"]))
    async with bench.opened([said(call("file_read", path="a")), said("fine")], {"file_read": answer}) as desk:
        await desk.start()
        await desk.work()
        bench.clock.pass_by(10_000)
        await desk.decide(Verdict.APPROVE)
        assert (await desk.work()).run.status is Status.COMPLETED


async def test_a_failed_attempt_is_tried_again_in_a_session_of_its_own(bench: Bench) -> None:
    bench.procedure(step('on_failure: retry:1\noutput: {"type":"object"}'))
    bench.configure(config(runtime="output_retries = 0"))
    talk = Talk([said("no"), said(call("step_output", a=1))])
    async with bench.opened(talk, {}) as desk:
        await desk.start()
        assert (await desk.work()).run.status is Status.COMPLETED
        first, second = (await desk.app.runs.history(desk.run_id)).sessions
    assert [(s.execution_id, s.state) for s in (first, second)] == [("1.1", "failed"), ("1.2", "completed")]
    assert [len(messages) for messages in talk.heard] == [1, 1]
    assert "Attempt 2: the attempt before failed" in repr(talk.heard[1])


async def test_a_process_that_ends_puts_its_session_down_between_two_steps(bench: Bench) -> None:
    """The call under way comes to its end, the next one is not begun, and another process does it."""
    ends = False

    async def last(**_: object) -> str:
        nonlocal ends
        ends = True
        return "done"

    write = call("file_write", path="a", content="b")
    hands = Hands({"http_request": last, "file_write": answer})
    talk = Talk([said(POST, write), said("fine")])
    async with bench.opened(talk, hands, stopping=lambda: ends) as desk:
        await desk.start()
        claim = await desk.claim()
        assert claim is not None
        with pytest.raises(Refused, match="put down"):
            await desk.driver.perform(claim)
        transcript = await desk.transcript()
        assert transcript.session.state is SessionState.RUNNING
        assert [row.outcome for row in transcript.calls] == ["success", None]
        run_id = desk.run_id
    bench.clock.pass_by(60)
    async with bench.opened(Talk([said("fine")]), hands, run_id=run_id) as desk:
        assert (await desk.work()).run.status is Status.COMPLETED
    assert [name for name, _ in hands.made] == ["http_request", "file_write"]
