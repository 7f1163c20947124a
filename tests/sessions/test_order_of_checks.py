"""One call from the model's words to its result: each check in its place."""

import anyio
import pytest
from pydantic_ai.messages import ToolCallPart
from session_bench import ASKABLE, COMPATIBLE, HEADLESS, Bench, Hands, Talk, answer, call, config, said

from procedo.core.session import CallState, Outcome, SessionState
from procedo.core.state import Status, Verdict

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("order-of-checks")]

READ = {"file_read": answer}
ALL = {"file_read": answer, "file_write": answer, "http_request": answer}


async def test_a_call_is_checked_run_and_answered(bench: Bench) -> None:
    async with bench.opened([said(call("file_read", path="a")), said("it is fine")], READ) as desk:
        await desk.start()
        snapshot = await desk.work()
        assert snapshot.run.status is Status.COMPLETED
        assert snapshot.run.end is not None
        assert snapshot.run.end.output == "it is fine"
        assert desk.place.talk is not None
        assert desk.place.hands is not None
        assert desk.place.talk.last_heard() == [("file_read", "success", "done")]
        assert desk.place.hands.made == [("file_read", {"path": "a"})]
        transcript = await desk.transcript()
        assert transcript.session.state is SessionState.COMPLETED
        (row,) = transcript.calls
        assert (row.state, row.outcome, row.verdict, row.attempts) == (CallState.DONE, Outcome.SUCCESS, "auto", 1)


@pytest.mark.requirement("C119")
async def test_a_tool_outside_of_the_scope_is_not_run_and_the_session_goes_on(bench: Bench) -> None:
    bench.configure(config(tools=["file_read"], auto=["file_read"]))
    async with bench.opened([said(call("shell", argv=["ls"]), call("sop_advance")), said("well")], ALL) as desk:
        await desk.start()
        assert (await desk.work()).run.status is Status.COMPLETED
        assert desk.place.talk is not None
        assert desk.place.hands is not None
        told = "no such tool: 'shell'; available: file_read"
        assert desk.place.talk.last_heard()[0] == ("shell", "failed", told)
        assert desk.place.hands.made == []
        assert [t.name for t in desk.place.talk.infos[0].function_tools] == ["file_read"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"path": 7}, "the arguments of file_read do not fit: path: expected string, got number"),
        ({}, "the arguments of file_read do not fit"),
        ("{not json", "the arguments of file_read have to be one JSON object"),
        ("[1]", "the arguments of file_read have to be one JSON object"),
        ('{"path": NaN}', "the arguments of file_read have to be one JSON object"),
    ],
)
async def test_arguments_that_do_not_fit_are_told_before_anybody_is_asked(
    bench: Bench, arguments: object, told: str
) -> None:
    bench.configure(config(auto=[], ask=["file_read"]))
    wrong = ToolCallPart("file_read", arguments, tool_call_id="x")  # type: ignore[arg-type]  # a server sends anything
    async with bench.opened([said(wrong), said("well")], ALL) as desk:
        await desk.start()
        snapshot = await desk.work()
        assert snapshot.run.status is Status.COMPLETED
        assert desk.place.hands is not None
        assert desk.place.hands.made == []
        (row,) = (await desk.transcript()).calls
        assert row.outcome is Outcome.FAILED
        assert told in row.text


async def test_arguments_that_fit_are_asked_about(bench: Bench) -> None:
    bench.configure(config(auto=[], ask=["file_read"]))
    async with bench.opened([said(call("file_read", path="a")), said("well")], ALL) as desk:
        await desk.start()
        assert (await desk.work()).run.status is Status.WAITING_APPROVAL
        (gate,) = await desk.gates()
        assert gate.prompt == "May reviewer call file_read in step 1? 'file_read' is always asked for."
        shown = {key: gate.content[key] for key in ("tool", "identity", "arguments", "acting", "delegating")}
        assert shown == {
            "tool": "file_read",
            "identity": "built_in:file_read",
            "arguments": {"path": "a"},
            "acting": "reviewer",
            "delegating": "host",
        }


async def test_a_denied_call_is_not_run(bench: Bench) -> None:
    bench.configure(config(risk='level = "readonly"', tools=["file_read", "http_request"], auto=["file_read"]))
    talk = [
        said(call("http_request", url="https://example.org", method="POST"), call("file_read", path="a")),
        said("x"),
    ]
    async with bench.opened(talk, ALL) as desk:
        await desk.start()
        await desk.work()
        assert await desk.calls() == [("1.0", "http_request", "denied"), ("1.1", "file_read", "success")]
        assert desk.place.hands is not None
        assert desk.place.hands.made == [("file_read", {"path": "a"})]


async def test_an_answer_names_its_calls_even_when_the_server_repeats_or_omits_ids(bench: Bench) -> None:
    twice = [
        ToolCallPart("file_read", {"path": name}, tool_call_id=identity)
        for name, identity in (("a", "same"), ("b", "same"), ("c", ""))
    ]
    talk = [said(*twice), said(ToolCallPart("file_read", {"path": "d"}, tool_call_id="same")), said("x")]
    async with bench.opened(talk, READ) as desk:
        await desk.start()
        await desk.work()
        rows = (await desk.transcript()).calls
        assert [(row.key, row.arguments["path"]) for row in rows] == [
            ("1.0", "a"), ("1.1", "b"), ("1.2", "c"), ("2.0", "d"),
        ]  # fmt: skip
        first = [row.call_id for row in rows if row.turn == 1]
        assert len(set(first)) == 3
        assert desk.place.talk is not None
        returned = [part.tool_call_id for part in desk.place.talk.heard[1][-1].parts]  # type: ignore[union-attr]
        assert returned == first


async def test_the_budget_of_actions_denies_what_comes_behind_it_and_reading_costs_nothing(bench: Bench) -> None:
    bench.configure(config(runtime="max_actions_per_hour = 2"))
    acts = [call("file_write", path=name, content="") for name in "abc"]
    talk = [said(*acts, call("file_read", path="a")), said("x")]
    async with bench.opened(talk, ALL) as desk:
        await desk.start()
        await desk.work()
        assert [outcome for _, _, outcome in await desk.calls()] == ["success", "success", "denied", "success"]
        assert (await desk.transcript()).calls[2].text == "the budget of 2 actions per hour is used up"
    bench.clock.pass_by(3601)
    async with bench.opened([said(acts[2]), said("x")], ALL) as desk:
        await desk.start()
        await desk.work()
        assert [outcome for _, _, outcome in await desk.calls()] == ["success"]


@pytest.mark.requirement("C123")
async def test_without_anybody_to_ask_a_call_is_denied_and_an_approved_one_runs(bench: Bench) -> None:
    bench.configure(config(auto=["file_read"]))
    talk = [said(call("file_write", path="a", content="b"), call("file_read", path="a")), said("x")]
    async with bench.opened(talk, ALL) as desk:
        await desk.start(HEADLESS)
        assert (await desk.work()).run.status is Status.COMPLETED
        assert await desk.calls() == [("1.0", "file_write", "denied"), ("1.1", "file_read", "success")]
        told = "'file_write' needs a person's approval and nobody can be asked; go on without it"
        assert (await desk.transcript()).calls[0].text == told


@pytest.mark.requirement("C124")
async def test_what_is_approved_in_advance_and_always_asked_for_is_asked_for(bench: Bench) -> None:
    bench.configure(config(auto=["file_read", "file_write"], ask=["file_read"]))
    talk = [said(call("file_read", path="a"), call("file_write", path="a", content="")), said("x")]
    async with bench.opened(talk, ALL) as desk:
        await desk.start()
        await desk.work()
        assert await desk.calls() == [("1.0", "file_read", None), ("1.1", "file_write", "success")]
        await desk.decide(Verdict.APPROVE)
        assert (await desk.work()).run.status is Status.COMPLETED


@pytest.mark.parametrize(("runtime", "slots"), [("", 1), ("parallel_tools = true\nmax_parallel_tools = 3", 3)])
async def test_as_many_calls_run_at_once_as_there_are_slots_and_answers_keep_the_order(
    bench: Bench, runtime: str, slots: int
) -> None:
    at_work, most, full = 0, 0, anyio.Event()

    async def slow(path: str) -> str:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        if at_work == slots:
            full.set()
        with anyio.fail_after(240):
            await full.wait()
        at_work -= 1
        return path

    bench.configure(config(runtime=runtime, kind="openai_compatible", provider=COMPATIBLE))
    talk = Talk([said(*(call("file_read", path=name) for name in "abcd")), said("x")])
    hands = Hands({"file_read": slow})
    async with bench.opened(talk, hands) as desk:
        await desk.start()
        await desk.work()
    assert most == slots
    assert sorted(args["path"] for _, args in hands.made) == list("abcd")
    assert slots > 1 or [args["path"] for _, args in hands.made] == list("abcd")
    assert [content for _, _, content in talk.last_heard()] == list("abcd")
    settings = talk.infos[0].model_settings
    assert settings is not None
    assert settings.get("parallel_tool_calls") is (slots > 1)


async def test_a_turn_of_endless_calls_asks_no_endless_questions(bench: Bench) -> None:
    bench.configure(config(ask=["file_write"]))
    many = [call("file_write", path=f"f{number}", content="x") for number in range(70)]
    talk = Talk([said(*many), said("fine")])
    async with bench.opened(talk, {"file_write": answer}) as desk:
        await desk.start(ASKABLE)
        await desk.work()
        assert len(await desk.gates()) == 64
        beyond = (await desk.transcript()).calls[64:]
    told = "not run: a turn may have 64 calls, and this one is beyond them; make fewer at once"
    assert {(row.outcome, row.text) for row in beyond} == {(Outcome.FAILED, told)}
