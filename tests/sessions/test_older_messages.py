"""A session that an older version of the message library wrote is taken up, or refused clearly.

The files in `messages` hold the same four messages, each written by the version that it is named after.
"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from session_bench import Bench, Talk, answer, call, config, said

from procedo.agents.dialogue import load
from procedo.core.altered import altered
from procedo.core.session import Message, SessionState
from procedo.core.state import Status, Verdict

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("session-restarts")]

FOLDER = Path(__file__).with_name("messages")
VERSIONS = sorted(FOLDER.glob("*.json"))


def written(path: Path) -> list[Message]:
    kinds = ("request", "response", "request", "response")
    stored = json.loads(path.read_text())
    at = datetime(2026, 1, 2, tzinfo=UTC)
    return [
        Message(seq, kind, data, stored["library"], at)
        for seq, (kind, data) in enumerate(zip(kinds, stored["messages"], strict=True), 1)
    ]


def told(message: ModelMessage) -> list[tuple[Any, ...]]:
    """What a message says, without what a version adds to it."""
    found: list[tuple[Any, ...]] = []
    for part in message.parts:
        match part:
            case UserPromptPart() | TextPart():
                found.append((part.content,))
            case ToolCallPart():
                found.append((part.tool_name, part.args_as_dict(), part.tool_call_id))
            case ToolReturnPart():
                found.append((part.tool_name, part.content, part.tool_call_id))
    return found


@pytest.mark.parametrize("path", VERSIONS, ids=lambda path: path.stem)
def test_messages_of_an_older_version_say_what_they_said(path: Path) -> None:
    first, calls, results, last = map(load, written(path))
    assert told(first) == [("Procedure review, step 1 of 1: Review",)]
    assert told(calls) == [("I look.",), ("file_read", {"path": "a"}, "c1"), ("pay", {"sum": 5}, "c2")]
    assert told(results) == [("file_read", "text of a", "c1"), ("pay", "denied by a person: no", "c2")]
    assert told(last) == [("fine",)]
    assert isinstance(first, ModelRequest)
    assert isinstance(calls, ModelResponse)
    assert first.instructions == "You review."
    assert calls.usage.total_tokens == 10


def test_there_are_messages_of_three_versions() -> None:
    assert [json.loads(path.read_text())["library"] for path in VERSIONS] == [path.stem for path in VERSIONS]
    assert len(VERSIONS) == 3


async def parked_with(bench: Bench, change: Any) -> tuple[Status, str, SessionState, Talk]:
    """A session that waits for a person, its messages changed in the store, taken up by another process."""
    bench.configure(config(ask=["file_write"]))
    ask = said(call("file_write", path="a", content="b"))
    async with bench.opened([ask], {}) as desk:
        await desk.start()
        await desk.work()
        run_id = desk.run_id
        known = await desk.transcript()
        messages = [change(message) for message in known.messages]
        store: Any = desk.app.store

        def rewrite(writer: Any) -> None:
            writer._connection.execute("DELETE FROM session_messages")
            writer.put_session(known.session, messages)

        await store.write(rewrite)
    talk = Talk([said("fine")])
    async with bench.opened(talk, {"file_write": answer}, run_id=run_id) as desk:
        await desk.decide(Verdict.APPROVE)
        end = (await desk.work()).run.end
        assert end is not None
        transcript = await desk.transcript()
        return end.status, end.reason, transcript.session.state, talk


async def test_a_message_of_an_unknown_form_refuses_the_session_and_names_who_wrote_it(bench: Bench) -> None:
    def strange(message: Message) -> Message:
        return altered(message, data={**message.data, "kind": "telepathy"}, library="9.9.9")

    status, reason, state, talk = await parked_with(bench, strange)
    assert (status, state) == (Status.FAILED, SessionState.REFUSED)
    assert "message 1 was written by pydantic-ai 9.9.9, and " in reason
    assert reason.endswith("cannot read it (start the step anew).")
    assert talk.heard == []


async def test_a_message_of_the_known_form_goes_on(bench: Bench) -> None:
    status, _, state, talk = await parked_with(bench, lambda message: altered(message, library="2.52.0"))
    assert (status, state) == (Status.COMPLETED, SessionState.COMPLETED)
    assert len(talk.heard) == 1
