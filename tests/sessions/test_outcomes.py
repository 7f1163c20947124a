"""What becomes of a call that did not go well, and of the same call made again."""

from collections.abc import Awaitable, Callable

import pytest
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.usage import RequestUsage
from session_bench import Bench, Hands, Talk, answer, call, config, said

from procedo.agents.ports import ToolDenied, ToolFailed
from procedo.core.session import Outcome
from procedo.core.state import Status, Verdict
from procedo.ports import OutcomeUnknown

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("call-outcomes")]

POST = {"url": "https://example.org", "method": "POST"}


async def failing(**_: object) -> str:
    raise ToolFailed("the other side said no")


async def refusing(**_: object) -> str:
    raise ToolDenied("outside of the policy")


async def vanishing(**_: object) -> str:
    raise OutcomeUnknown("the connection was lost; it may have acted")


async def crashing(**_: object) -> str:
    raise OSError("the disk is full")


def giving(text: str) -> Callable[..., Awaitable[str]]:
    """A tool that has this result."""

    async def given(**_: object) -> str:
        return text

    return given


@pytest.mark.parametrize(
    ("tool", "outcome", "text"),
    [
        (answer, "success", "done"),
        (failing, "failed", "the other side said no"),
        (crashing, "failed", "the disk is full"),
        (refusing, "denied", "outside of the policy"),
        (vanishing, "interrupted", "the connection was lost; it may have acted"),
    ],
)
async def test_every_outcome_is_told_in_the_librarys_word_and_none_ends_the_session(
    bench: Bench, tool: object, outcome: str, text: str
) -> None:
    talk = Talk([said(call("http_request", **POST)), said("well")])
    async with bench.opened(talk, {"http_request": tool}) as desk:  # type: ignore[dict-item]  # all of one form
        await desk.start()
        assert (await desk.work()).run.status is Status.COMPLETED
        assert talk.last_heard() == [("http_request", outcome, text)]
        assert await desk.calls() == [("1.0", "http_request", outcome)]


async def test_a_success_is_not_repeated_and_its_result_is_told_again(bench: Bench) -> None:
    talk = Talk([said(call("http_request", **POST)), said(call("http_request", **POST)), said("well")])
    hands = Hands({"http_request": answer})
    async with bench.opened(talk, hands) as desk:
        await desk.start()
        assert (await desk.work()).run.status is Status.COMPLETED
    told = "repeat of an earlier identical call, which was not run again; its result still holds: done"
    assert talk.last_heard() == [("http_request", "success", told)]
    assert len(hands.made) == 1


@pytest.mark.parametrize("first", [failing, refusing])
async def test_a_call_that_failed_may_be_tried_again(bench: Bench, first: object) -> None:
    tools = iter((first, answer))

    async def second_time(**_: object) -> str:
        return await next(tools)()  # type: ignore[operator, no-any-return]  # a tool

    talk = Talk([said(call("http_request", **POST)), said(call("http_request", **POST)), said("well")])
    async with bench.opened(talk, {"http_request": second_time}) as desk:
        await desk.start()
        await desk.work()
    assert talk.last_heard() == [("http_request", "success", "done")]


async def test_a_tool_that_is_exempt_runs_each_time(bench: Bench) -> None:
    bench.configure(config(runtime='tool_call_dedup_exempt = ["http_request"]'))
    talk = Talk(
        [
            said(call("http_request", **POST), call("http_request", **POST)),
            said(call("http_request", **POST)),
            said("x"),
        ]
    )
    hands = Hands({"http_request": answer})
    async with bench.opened(talk, hands) as desk:
        await desk.start()
        await desk.work()
    assert len(hands.made) == 3


async def test_the_same_call_twice_in_one_turn_runs_once_and_is_answered_alike(bench: Bench) -> None:
    same = [call("http_request", **POST), call("http_request", **POST)]
    for tool, outcome in ((answer, "success"), (failing, "failed"), (vanishing, "interrupted")):
        talk, hands = Talk([said(*same), said("x")]), Hands({"http_request": tool})
        async with bench.opened(talk, hands) as desk:
            await desk.start()
            await desk.work()
        first, second = talk.last_heard()
        assert (first[1], second[1]) == (outcome, outcome)
        assert second[2] == f"the same call stands in this turn already: {first[2]}"
        assert len(hands.made) == 1


async def test_the_same_call_twice_in_one_turn_is_asked_about_once(bench: Bench) -> None:
    bench.configure(config(ask=["http_request"]))
    same = [call("http_request", **POST), call("http_request", **POST)]
    for verdict, outcome, made in ((Verdict.APPROVE, "success", 1), (Verdict.DENY, "denied", 0)):
        talk, hands = Talk([said(*same), said("x")]), Hands({"http_request": answer})
        async with bench.opened(talk, hands) as desk:
            await desk.start()
            await desk.work()
            await desk.decide(verdict)
            assert (await desk.work()).run.status is Status.COMPLETED
        assert [shown[1] for shown in talk.last_heard()] == [outcome, outcome]
        assert len(hands.made) == made


async def test_what_reads_is_read_again_once_something_was_changed(bench: Bench) -> None:
    read, write = call("file_read", path="a"), call("file_write", path="a", content="b")
    hands = Hands({"file_read": answer, "file_write": answer})
    async with bench.opened([said(read), said(read), said(write), said(read), said("x")], hands) as desk:
        await desk.start()
        await desk.work()
    assert [name for name, _ in hands.made] == ["file_read", "file_write", "file_read"]


async def test_the_model_cannot_repeat_by_itself_what_may_have_acted(bench: Bench) -> None:
    talk = Talk([said(call("http_request", **POST)), said(call("http_request", **POST)), said("x")])
    tools = iter((vanishing, answer))

    async def second_time(**_: object) -> str:
        return await next(tools)()

    hands = Hands({"http_request": second_time})
    async with bench.opened(talk, hands) as desk:
        await desk.start()
        assert (await desk.work()).run.status is Status.WAITING_APPROVAL
        assert len(hands.made) == 1
        (gate,) = await desk.gates()
        assert "may have acted already" in gate.prompt
        await desk.decide(Verdict.APPROVE)
        assert (await desk.work()).run.status is Status.COMPLETED
        assert await desk.calls() == [("1.0", "http_request", "interrupted"), ("2.0", "http_request", "success")]


async def test_a_grant_for_the_session_does_not_cover_what_may_have_acted(bench: Bench) -> None:
    bench.configure(config(ask=["http_request"]))
    talk = Talk([said(call("http_request", **POST)), said(call("http_request", **POST)), said("x")])
    async with bench.opened(talk, {"http_request": vanishing}) as desk:
        await desk.start()
        await desk.work()
        await desk.decide(Verdict.APPROVE, lasting=True)
        assert (await desk.work()).run.status is Status.WAITING_APPROVAL


async def test_a_reading_call_that_was_lost_may_be_made_again(bench: Bench) -> None:
    talk = Talk(
        [
            said(call("http_request", url="https://example.org")),
            said(call("http_request", url="https://example.org")),
            said("x"),
        ]
    )
    tools = iter((vanishing, answer))

    async def second_time(**_: object) -> str:
        return await next(tools)()

    async with bench.opened(talk, {"http_request": second_time}) as desk:
        await desk.start()
        assert (await desk.work()).run.status is Status.COMPLETED
    assert talk.last_heard() == [("http_request", "success", "done")]


async def test_a_long_result_is_shown_in_part_and_kept_whole(bench: Bench) -> None:
    bench.configure(config(runtime="max_tool_result_chars = 200"))
    text = "".join(f"{number:04d} " for number in range(200))
    talk = Talk([said(call("file_read", path="a")), said("x")])
    async with bench.opened(talk, {"file_read": giving(text)}) as desk:
        await desk.start()
        await desk.work()
        (row,) = (await desk.transcript()).calls
    assert (row.full, row.left_out, row.outcome) == (text, 800, Outcome.SUCCESS)
    assert row.text.startswith(text[:150] + "\n[800 characters left out; the whole text is in the record of run run-")
    assert row.text.endswith(", call 1.0 of 1.1]\n" + text[-50:])
    assert talk.last_heard() == [("file_read", "success", row.text)]


async def test_a_short_result_is_shown_as_it_is(bench: Bench) -> None:
    async with bench.opened([said(call("file_read", path="a")), said("x")], {"file_read": answer}) as desk:
        await desk.start()
        await desk.work()
        (row,) = (await desk.transcript()).calls
    assert (row.text, row.full, row.left_out) == ("done", "", 0)


@pytest.mark.parametrize(
    ("came", "told"),
    [
        ("\x1b[2J\x1b]0;t\x07gone\x00\x7f", r"\u001b[2J\u001b]0;t\u0007gone\u0000\u007f"),
        ("pay \u202e001\u202c \u200bnow\U000e0041", r"pay \u202e001\u202c \u200bnow\udb40\udc41"),
        ('{"a": "\x7f\u202e", "b": [1]}', r'{"a": "\u007f\u202e", "b": [1]}'),
        ("10 %\r20 %", r"10 %\r20 %"),
    ],
)
async def test_the_model_reads_what_nobody_would_see_and_the_record_keeps_what_came(
    bench: Bench, came: str, told: str
) -> None:
    same = call("http_request", **POST)
    talk = Talk([said(same), said(same, same), said("x")])
    async with bench.opened(talk, {"http_request": giving(came)}) as desk:
        await desk.start()
        assert (await desk.work()).run.status is Status.COMPLETED
        first, *repeats = (await desk.transcript()).calls
    assert (first.text, first.full, first.left_out) == (told, came, 0)
    assert all(row.text.endswith(f": {told}") for row in repeats)
    assert [text for _, _, text in talk.last_heard()] == [row.text for row in repeats]


async def test_lines_tabs_and_joined_letters_reach_the_model_as_they_are(bench: Bench) -> None:
    text = 'a\r\n\tb\n\r\n{"c": "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \U0001f469\u200d\U0001f52c"}'
    talk = Talk([said(call("file_read", path="a")), said("x")])
    async with bench.opened(talk, {"file_read": giving(text)}) as desk:
        await desk.start()
        await desk.work()
        (row,) = (await desk.transcript()).calls
    assert (row.text, row.full) == (text, "")
    assert talk.last_heard() == [("file_read", "success", text)]


async def test_what_is_spelled_out_counts_towards_the_size_of_a_result(bench: Bench) -> None:
    bench.configure(config(runtime="max_tool_result_chars = 200"))
    talk = Talk([said(call("file_read", path="a")), said("x")])
    async with bench.opened(talk, {"file_read": giving("\x00" * 100)}) as desk:
        await desk.start()
        await desk.work()
        (row,) = (await desk.transcript()).calls
    assert (row.full, row.left_out) == ("\x00" * 100, 400)
    assert row.text.startswith(r"\u0000" * 25 + "\n[400 characters left out")


async def test_half_a_character_of_a_tool_is_no_reason_to_stop(bench: Bench) -> None:
    talk = Talk([said(call("file_read", path="a")), said("x")])
    async with bench.opened(talk, {"file_read": giving("caf\udce9.txt (3 bytes)")}) as desk:
        await desk.start()
        assert (await desk.work()).run.status is Status.COMPLETED
    assert talk.last_heard() == [("file_read", "success", r"caf\udce9.txt (3 bytes)")]


async def test_half_a_character_of_a_model_is_no_reason_to_stop(bench: Bench) -> None:
    broken = ToolCallPart("file_read", '{"path": "a\\ud800"}', tool_call_id="x")
    usage = RequestUsage(input_tokens=1, output_tokens=1)
    talk = [said("\ud800 hm", broken, usage=usage), said("fine \udc00", usage=usage)]
    async with bench.opened(talk, {"file_read": answer}) as desk:
        await desk.start()
        snapshot = await desk.work()
        assert snapshot.run.end is not None
        assert snapshot.run.end.output == "fine ?"
        assert await desk.calls() == [("1.0", "file_read", "failed")]
