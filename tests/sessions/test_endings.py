"""How a session ends: with a result that fits, or typed as what it is instead."""

import json
from typing import Any

import anyio
import pytest
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart
from pydantic_ai.usage import RequestUsage
from session_bench import COMPATIBLE, Bench, Hands, Talk, answer, call, config, said, script, step

from procedo.agents.dialogue import arguments_of
from procedo.core.altered import altered
from procedo.core.session import SessionState, Transcript
from procedo.core.state import Status

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("session-ends")]

VERDICT = 'output: {"type":"object","required":["verdict"],"properties":{"verdict":{"type":"string"}}}'
PRICED = COMPATIBLE + "input_usd_per_million = 100\noutput_usd_per_million = 100\n"
READ = call("file_read", path="a")


def output(**fields: Any) -> ModelResponse:
    return said(call("step_output", **fields))


def used(sent: int, received: int, *parts: Any) -> ModelResponse:
    return said(*parts, usage=RequestUsage(input_tokens=sent, output_tokens=received))


async def ended(bench: Bench, *talk: ModelResponse | Exception, hands: Any = None) -> tuple[Transcript, Any, Talk]:
    """The transcript, the run's end, and the talk."""
    spoken = Talk(list(talk))
    async with bench.opened(spoken, hands or {"file_read": answer}) as desk:
        await desk.start()
        end = (await desk.work()).run.end
        assert end is not None
        return await desk.transcript(), end, spoken


def nudges(talk: Talk) -> list[str]:
    """What the model was told besides results, after the first request."""
    requests = [m for m in talk.heard[-1][1:] if isinstance(m, ModelRequest)]
    return [str(part.content) for m in requests for part in m.parts if part.part_kind == "user-prompt"]


# --- output schemas --------------------------------------------------------------------------------


async def test_the_output_call_alone_ends_the_session_with_its_value(bench: Bench) -> None:
    bench.procedure(step(VERDICT))
    transcript, end, talk = await ended(bench, said(READ), output(verdict="fine"))
    assert (transcript.session.state, end.output) == (SessionState.COMPLETED, {"verdict": "fine"})
    assert transcript.session.output == {"verdict": "fine"}
    (tool,) = talk.infos[0].output_tools
    assert (tool.name, talk.infos[0].allow_text_output) == ("step_output", False)


async def test_the_output_call_beside_others_does_not_count_and_the_others_run(bench: Bench) -> None:
    bench.procedure(step(VERDICT))
    early = said(call("step_output", verdict="early"), READ)
    transcript, end, _ = await ended(bench, early, early, early, early, output(verdict="fine"))
    assert end.output == {"verdict": "fine"}
    told = "call step_output alone, when everything else is done"
    assert [row.text for row in transcript.calls[:2]] == [told, "done"]


@pytest.mark.parametrize(
    ("schema", "value"), [({"type": "integer"}, 7), ({"type": "array"}, [1]), ({"enum": ["a", None]}, None)]
)
async def test_a_value_that_is_no_object_is_wrapped(bench: Bench, schema: Any, value: Any) -> None:
    bench.procedure(step(f"output: {json.dumps(schema)}"))
    _, end, talk = await ended(bench, output(value=value))
    assert (end.status, end.output) == (Status.COMPLETED, value)
    assert talk.infos[0].output_tools[0].parameters_json_schema["properties"] == {"value": schema}


async def test_a_wrong_output_is_told_with_its_place_and_may_be_corrected(bench: Bench) -> None:
    bench.procedure(step(VERDICT))
    transcript, end, _ = await ended(bench, output(verdict=1), output(), output(verdict="fine"))
    assert end.output == {"verdict": "fine"}
    assert [row.outcome for row in transcript.calls] == ["failed", "failed", "success"]
    assert transcript.calls[0].text == "verdict: expected string, got number"


async def test_an_output_that_stays_wrong_fails_the_step_after_the_retries(bench: Bench) -> None:
    bench.procedure(step(VERDICT))
    bench.configure(config(runtime="output_retries = 1"))
    transcript, end, _ = await ended(bench, output(verdict=1), output(verdict=2))
    assert transcript.session.state is SessionState.FAILED
    assert end.status is Status.FAILED
    assert "no usable answer after 2 attempts: verdict: expected string, got number" in end.reason


async def test_one_value_in_a_text_is_taken_and_prose_counts_as_a_retry(bench: Bench) -> None:
    bench.procedure(step(VERDICT))
    _, end, _ = await ended(bench, said('Here: {"verdict": "fine"} as asked.'))
    assert end.output == {"verdict": "fine"}
    bench.configure(config(runtime="output_retries = 1"))
    _, end, talk = await ended(bench, said("It is fine."), output(verdict="fine"))
    assert end.output == {"verdict": "fine"}
    assert nudges(talk)[0].startswith("The result has to be given by calling step_output: ")
    transcript, end, _ = await ended(bench, said("It is fine."), output(verdict=1))
    assert transcript.session.state is SessionState.FAILED


async def test_an_output_that_is_too_large_is_not_taken(bench: Bench) -> None:
    bench.procedure(step(VERDICT))
    bench.configure(config(runtime="max_tool_result_chars = 200"))
    transcript, end, _ = await ended(bench, output(verdict="x" * 300), output(verdict="fine"))
    assert end.output == {"verdict": "fine"}
    assert transcript.calls[0].text == "it has 314 characters, and 200 is the limit"


async def test_without_a_schema_the_final_text_is_the_output_and_a_long_one_is_cut_openly(bench: Bench) -> None:
    bench.configure(config(runtime="max_tool_result_chars = 200"))
    transcript, end, _ = await ended(bench, said("a" * 500))
    assert end.output.startswith("a" * 150 + "\n[300 characters left out; the whole text is in the transcript of 1.1")
    assert transcript.messages[-1].data["parts"][0]["content"] == "a" * 500


async def test_without_a_schema_there_is_no_output_call(bench: Bench) -> None:
    transcript, end, talk = await ended(bench, output(verdict="x"), said("well"))
    assert (end.output, talk.infos[0].output_tools) == ("well", [])
    assert transcript.calls[0].text.startswith("no such tool: 'step_output'")


# --- answers that are none -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("response", "told"),
    [
        (said("half a sen", finish_reason="length"), "Your answer was cut off (length)."),
        (said("I may not", finish_reason="content_filter"), "Your answer was cut off (content_filter)."),
        (said(), "Your answer was empty."),
        (said("  \n"), "Your answer was empty."),
    ],
)
async def test_an_unfinished_or_empty_answer_is_sent_back_once(
    bench: Bench, response: ModelResponse, told: str
) -> None:
    transcript, end, talk = await ended(bench, response, said("whole"))
    assert (transcript.session.state, end.output) == (SessionState.COMPLETED, "whole")
    assert nudges(talk) == [f"{told} Give the whole result of the step, shorter if need be."]
    transcript, end, _ = await ended(bench, response, response)
    assert transcript.session.state is SessionState.FAILED
    assert "no usable answer after 2 attempts" in end.reason


@pytest.mark.parametrize(
    ("down", "unmeasured", "told"),
    [
        (ModelHTTPError(503, "m", "busy"), 0, "503"),
        # Nobody knows what a request used that got no answer at all.
        (ModelAPIError("m", "the connection failed"), 2, "the connection failed"),
    ],
)
async def test_a_provider_that_cannot_be_reached_is_asked_again_and_then_the_step_fails(
    bench: Bench, down: Exception, unmeasured: int, told: str
) -> None:
    bench.configure(config(kind="openai_compatible", provider=COMPATIBLE))
    for last, state in ((said("fine"), SessionState.COMPLETED), (down, SessionState.FAILED)):
        talk = Talk([down, down, last])
        async with bench.opened(talk) as desk, anyio.create_task_group() as group:
            await desk.start()
            group.start_soon(pauses, bench)
            await desk.work()
            group.cancel_scope.cancel()
        async with bench.opened(run_id=desk.run_id) as desk:
            session = (await desk.transcript()).session
            assert (session.state, len(talk.heard)) == (state, 3)
            assert session.unmeasured == unmeasured + (unmeasured > 0 and state is SessionState.FAILED)
            if state is SessionState.FAILED:
                assert "gave no answer: the model 'm' of openai_compatible.own" in await desk.failure()
                assert told in await desk.failure()


async def pauses(bench: Bench) -> None:
    """The pauses before the second and the third request pass, and no time else."""
    for seconds in (1.0, 2.0):
        await bench.clock.until_sleeping(seconds)
        bench.clock.pass_by(seconds)


@pytest.mark.parametrize("status", [401, 404])
async def test_a_refusal_for_good_is_not_repeated(bench: Bench, status: int) -> None:
    bench.configure(config(kind="openai_compatible", provider=COMPATIBLE))
    transcript, end, talk = await ended(bench, ModelHTTPError(status, "m", "no"), said("never"))
    assert (transcript.session.state, len(talk.heard)) == (SessionState.FAILED, 1)
    assert str(status) in end.reason


# --- limits ----------------------------------------------------------------------------------------

LIMITS = [
    ("max_tool_iterations = 2", "iterations 2 are used up"),
    ("max_tokens_per_step = 20", "total_tokens 20 are used up (20)"),
    ("max_tokens_per_step = 19", "total_tokens 19 are exceeded (20)"),
    ("max_cost_per_step_cents = 1", "cost_usd 0.01 is used up"),
    ("max_cost_per_day_cents = 1", "cost_usd_per_day 0.01 is used up"),
    ("max_tokens_per_run = 20", "run_tokens 20 are used up by the agents of this run and its sub-runs (20)"),
    ("max_tokens_per_run = 19", "run_tokens 19 are exceeded by the agents of this run and its sub-runs (20)"),
    ("max_cost_per_run_cents = 1", "run_cost_usd 0.01 is used up by the agents of this run"),
    ("max_context_tokens = 256", "context_tokens 256: the step, its tools and its newest turn do not fit"),
]


@pytest.mark.parametrize(("runtime", "reason"), LIMITS)
async def test_each_limit_ends_a_session_as_exhausted_with_its_name_and_value(
    bench: Bench, runtime: str, reason: str
) -> None:
    more = "" if "context" in runtime else "max_context_tokens = 5000"
    bench.configure(
        config(tools=["file_read"], runtime=f"{runtime}\n{more}", kind="openai_compatible", provider=PRICED)
    )
    if "context" in runtime:
        bench.procedure(step(body="Review this: " + "x" * 2000))
    sent = 45 if "cents" in runtime else 4
    talk = [used(sent, 5 if sent == 45 else 6, call("file_read", path=name)) for name in "abcdefgh"]
    transcript, end, _ = await ended(bench, *talk)
    assert transcript.session.state is SessionState.EXHAUSTED
    assert end.status is Status.FAILED
    assert end.reason.endswith(f"agent 'reviewer' is exhausted: {transcript.session.reason}")
    assert transcript.session.reason.startswith(reason)


async def test_within_its_limits_a_session_completes(bench: Bench) -> None:
    runtime = (
        "max_tool_iterations = 2\nmax_tokens_per_step = 20\nmax_cost_per_step_cents = 1\nmax_cost_per_day_cents = 1"
    )
    bench.configure(config(tools=["file_read"], runtime=runtime, kind="openai_compatible", provider=PRICED))
    transcript, end, _ = await ended(bench, used(4, 6, READ), used(4, 6, "fine"))
    assert (transcript.session.state, end.output) == (SessionState.COMPLETED, "fine")
    assert (transcript.session.input_tokens, transcript.session.output_tokens) == (8, 12)
    assert transcript.session.cost_usd == "0.002"
    assert [(turn.input_tokens, turn.cost_usd) for turn in transcript.turns] == [(4, "0.001"), (4, "0.001")]


async def two_steps(bench: Bench, runtime: str) -> tuple[list[SessionState], str]:
    """How the sessions of two steps of ten tokens each ended, and why the run did."""
    bench.configure(config(runtime=runtime, kind="openai_compatible", provider=PRICED))
    bench.procedure(step() + "2. **Again** — Review it again.\n   - agent: reviewer\n")
    async with bench.opened(Talk([used(4, 6, "fine"), used(4, 6, "fine")]), {}) as desk:
        await desk.start()
        end = (await desk.work()).run.end
        assert end is not None
        sessions = (await desk.app.runs.history(desk.run_id)).sessions
        return [session.state for session in sessions], end.reason


@pytest.mark.parametrize("runtime", ["max_tokens_per_run = 19", "max_cost_per_run_cents = 0.19"])
async def test_the_agents_of_a_run_share_its_budget(bench: Bench, runtime: str) -> None:
    states, reason = await two_steps(bench, runtime)
    assert states == [SessionState.COMPLETED, SessionState.EXHAUSTED]
    assert "by the agents of this run" in reason


@pytest.mark.parametrize("runtime", ["max_tokens_per_run = 20", "max_cost_per_run_cents = 0.2", ""])
async def test_within_the_budget_of_a_run_its_agents_complete(bench: Bench, runtime: str) -> None:
    assert await two_steps(bench, runtime) == ([SessionState.COMPLETED, SessionState.COMPLETED], "")


async def test_a_budget_of_a_run_is_not_held_by_guessing(bench: Bench) -> None:
    bench.configure(config(runtime="max_tokens_per_run = 20", kind="openai_compatible", provider=PRICED))
    transcript, _, _ = await ended(bench, said("fine", usage=RequestUsage(details={"nothing": 1})))
    assert transcript.session.reason == "run_tokens 20 cannot be held: the provider tells no usage"


async def test_an_answer_that_breaks_the_budget_is_kept_and_not_taken(bench: Bench) -> None:
    bench.configure(config(runtime="max_tokens_per_step = 20"))
    transcript, _, _ = await ended(bench, used(15, 6, "the whole answer"))
    assert transcript.session.state is SessionState.EXHAUSTED
    assert transcript.messages[-1].data["parts"][0]["content"] == "the whole answer"


async def test_usage_that_is_not_told_is_unmeasured_and_not_zero(bench: Bench) -> None:
    bench.configure(config(kind="openai_compatible", provider=COMPATIBLE))
    silent = said("fine", usage=RequestUsage(details={"nothing": 1}))
    transcript, _, _ = await ended(bench, silent)
    session, (turn,) = transcript.session, transcript.turns
    assert (session.unmeasured, session.unpriced, turn.input_tokens, turn.cost_usd) == (1, 1, None, None)
    measured, _, _ = await ended(bench, used(1, 1, "fine"))
    assert (measured.session.unmeasured, measured.session.unpriced, measured.session.cost_usd) == (0, 1, "0")


async def test_a_limit_that_cannot_be_measured_ends_the_session(bench: Bench) -> None:
    bench.configure(config(runtime="max_tokens_per_step = 20", kind="openai_compatible", provider=COMPATIBLE))
    transcript, _, _ = await ended(bench, said(READ, usage=RequestUsage(details={"nothing": 1})))
    assert transcript.session.state is SessionState.EXHAUSTED
    assert transcript.session.reason == "total_tokens 20 cannot be held: the provider tells no usage"


async def test_a_session_that_works_too_long_is_cut_off_and_its_call_may_have_acted(bench: Bench) -> None:
    bench.configure(config(runtime="agentic_timeout_secs = 60"))

    async def endless(**_: object) -> str:
        bench.clock.pass_by(61)
        await anyio.sleep_forever()
        return ""

    transcript, _, _ = await ended(bench, said(READ), hands={"file_read": endless})
    assert transcript.session.state is SessionState.EXHAUSTED
    assert transcript.session.reason == "wall_time_s 60 is used up"
    (row,) = transcript.calls
    assert (row.outcome, row.text) == (
        "interrupted",
        "cut off because wall_time_s 60 is used up; it may have acted",
    )


async def test_waiting_for_a_person_does_not_count_as_work(bench: Bench) -> None:
    from procedo.core.state import Verdict

    bench.configure(config(auto=[], runtime="agentic_timeout_secs = 60"))
    async with bench.opened([said(READ), said("fine")], {"file_read": answer}) as desk:
        await desk.start()
        await desk.work()
        bench.clock.pass_by(100_000)
        await desk.decide(Verdict.APPROVE)
        assert (await desk.work()).run.status is Status.COMPLETED
        assert (await desk.transcript()).session.seconds == 0


# --- what is asked of the model --------------------------------------------------------------------


@pytest.mark.requirement("C118")
async def test_the_agents_own_temperature_is_sent_and_none_is_no_key(bench: Bench) -> None:
    for provider, expected in ((COMPATIBLE, None), (COMPATIBLE + "temperature = 0.42\n", 0.42)):
        bench.configure(config(kind="openai_compatible", provider=provider))
        _, _, talk = await ended(bench, said(READ), said("fine"))
        for info in talk.infos:
            settings = dict(info.model_settings or {})
            assert settings.get("temperature") == expected
            assert ("temperature" in settings) is (expected is not None)


async def test_trimming_changes_what_is_sent_and_never_what_is_kept(bench: Bench) -> None:
    bench.configure(config(tools=["file_read"], runtime="max_history_messages = 3\nmax_tool_iterations = 9"))
    turns = [said(call("file_read", path=name)) for name in "abcd"]
    transcript, _, talk = await ended(bench, *turns, said("fine"))
    assert [len(messages) for messages in talk.heard] == [1, 3, 3, 3, 3]

    def paths(messages: list[ModelMessage]) -> list[str]:
        parts = [part for m in messages if isinstance(m, ModelResponse) for part in m.parts]
        return [arguments_of(part)["path"] for part in parts if isinstance(part, ToolCallPart)]

    assert [paths(messages) for messages in talk.heard] == [[], ["a"], ["b"], ["c"], ["d"]]
    for messages in talk.heard:
        assert messages[0] == talk.heard[0][0]
        assert len(messages) % 2 == 1
    assert [message.kind for message in transcript.messages] == ["request", "response"] * 5
    assert [row.arguments["path"] for row in transcript.calls] == list("abcd")


async def test_whole_turns_are_dropped_when_the_context_is_full(bench: Bench) -> None:
    bench.configure(config(tools=["file_read"], runtime="max_context_tokens = 1000\nmax_tool_iterations = 9"))

    async def long(**_: object) -> str:
        return "x" * 800

    turns = [said(call("file_read", path=name)) for name in "abcd"]
    transcript, _, talk = await ended(bench, *turns, said("fine"), hands={"file_read": long})
    assert transcript.session.state is SessionState.COMPLETED
    assert [len(messages) for messages in talk.heard] == [1, 3, 3, 3, 3]
    assert len(transcript.messages) == 10


async def test_a_script_is_marked_wherever_it_speaks(bench: Bench) -> None:
    bench.script(script('text = "fine"\ntokens = [3, 4]'))
    async with bench.opened() as desk:
        await desk.start()
        await desk.work()
        transcript = await desk.transcript()
        assert transcript.session.scripted
        assert [turn.scripted for turn in transcript.turns] == [True]
        assert (transcript.session.input_tokens, transcript.session.output_tokens) == (3, 4)
        records = (await desk.app.runs.history(desk.run_id)).records
        assert [r.data["scripted"] for r in records if r.kind == "SessionBegan"] == [True]


async def test_hands_are_not_needed_by_a_session_that_calls_nothing(bench: Bench) -> None:
    hands = Hands({})
    _, end, _ = await ended(bench, said("fine"), hands=hands)
    assert (end.output, hands.made) == ("fine", [])


# --- faults ----------------------------------------------------------------------------------------


async def test_a_fault_that_comes_back_ends_the_session_instead_of_asking_the_model_for_ever(bench: Bench) -> None:
    talk = Talk([said(READ), *[RuntimeError("a mistake of ours, with token=abc123secret")] * 2])
    async with bench.opened(talk, {"file_read": answer}) as desk:
        await desk.start()
        claim = await desk.claim()
        assert claim is not None
        with pytest.raises(ExceptionGroup) as caught:
            await desk.driver.perform(altered(claim, attempts=4))
        assert caught.group_contains(RuntimeError)
        assert (await desk.look()).run.status is Status.RUNNING
        await desk.app.store.write(lambda w: w.postpone_job(claim, bench.clock.now()))
        again = await desk.claim()
        assert again is not None
        await desk.driver.perform(altered(again, attempts=5))
        end = (await desk.look()).run.end
        assert end is not None
        why = "it met a fault 5 times (RuntimeError), which the server's log tells"
        assert end.reason == f"step 1 failed: agent 'reviewer' is failed: {why}"
        head = (await desk.transcript()).session
        assert (head.state, head.turns, head.unmeasured) == (SessionState.FAILED, 1, 2)
