import json
import os
import socket
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from chat_server import Chat, called, chat_server, said
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import FunctionModel

from procedo.agents.models.building import build
from procedo.agents.models.exchange import Exchange
from procedo.agents.parts import Effect, Origin, Prices, ProviderBinding, Tool, ToolId, ToolMode
from procedo.agents.ports import Answer, Model, ModelFailed, ModelRefused, Settings, Usage
from procedo.core.altered import altered
from procedo.core.model import Json
from procedo.credentials import Secret, SecretRef, SecretSource

pytestmark = pytest.mark.anyio

PLAIN = Settings(temperature=None, max_output_tokens=None, parallel_calls=False, timeout_s=120.0)
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
READ = Tool(
    ToolId(Origin.BUILT_IN, "", "file_read", "d"), "file_read", "Reads.", SCHEMA, Effect.READ_ONLY, 1.0, repeats=False
)
VERDICT = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
FIRST = ModelRequest([UserPromptPart("Review it.")], instructions="You review.")


def binding(endpoint: str, **more: Json) -> ProviderBinding:
    plain = ProviderBinding(
        type="openai_compatible", alias="own", model="asked-model", endpoint=endpoint, credential=None,
        temperature=None, max_output_tokens=None, tool_mode=ToolMode.TOOLS, timeout_s=120.0, prices=None, script=None,
        script_digest="",
    )  # fmt: skip
    return altered(plain, **more)


def model(chat: Chat, environ: Mapping[str, str] | None = None, **more: Json) -> Model:
    return build(binding(chat.endpoint, **more), environ or {}, Path())


async def ask(
    asked: Model,
    messages: Sequence[ModelMessage] = (FIRST,),
    settings: Settings = PLAIN,
    tools: Sequence[Tool] = (),
    output: Json = None,
) -> Answer:
    return await asked.request(messages, settings, tools, output)


async def test_a_request_without_tools_is_the_model_and_the_messages_and_nothing_else() -> None:
    with chat_server(said("fine")) as chat:
        answer = await ask(model(chat))
    assert chat.requests == [
        {
            "model": "asked-model",
            "messages": [{"role": "system", "content": "You review."}, {"role": "user", "content": "Review it."}],
        }
    ]
    assert chat.headers[0]["path"] == "/v1/chat/completions"
    assert "authorization" not in chat.headers[0]
    assert [part.content for part in answer.response.parts if isinstance(part, TextPart)] == ["fine"]
    assert (answer.usage, answer.model, answer.provider) == (Usage(7, 3), "served-model", "openai_compatible")
    assert (answer.finish_reason, answer.scripted, answer.cost_usd) == ("stop", False, None)


@pytest.mark.parametrize("temperature", [None, 0.0, 0.42])
async def test_only_settings_that_are_set_are_sent(temperature: float | None) -> None:
    with chat_server(said()) as chat:
        await ask(model(chat), settings=altered(PLAIN, temperature=temperature))
        await ask(model(chat), settings=altered(PLAIN, max_output_tokens=5, parallel_calls=True), tools=[READ])
    sent = {key: value for key, value in chat.requests[0].items() if key not in {"model", "messages"}}
    assert sent == ({} if temperature is None else {"temperature": temperature})
    assert (chat.requests[1]["max_tokens"], chat.requests[1]["parallel_tool_calls"]) == (5, True)


async def test_tools_and_the_output_are_offered_as_functions() -> None:
    with chat_server(called(("c1", "file_read", '{"path": "a"}'), ("", "step_output", '{"ok": true}'))) as chat:
        answer = await ask(model(chat), tools=[READ], output=VERDICT)
        await ask(model(chat), tools=[READ])
        await ask(model(chat), output={"type": "string"})
    body, without, text = chat.requests
    assert [tool["function"]["name"] for tool in body["tools"]] == ["file_read", "step_output"]
    assert body["tools"][0]["function"] == {"name": "file_read", "description": "Reads.", "parameters": SCHEMA}
    assert body["tools"][1]["function"]["parameters"] == VERDICT
    assert (body["tool_choice"], without["tool_choice"]) == ("required", "auto")
    assert body["parallel_tool_calls"] is False
    assert text["tools"][0]["function"]["parameters"]["properties"] == {"value": {"type": "string"}}
    calls = [part for part in answer.response.parts if isinstance(part, ToolCallPart)]
    assert [(call.tool_name, call.args_as_dict()) for call in calls] == [
        ("file_read", {"path": "a"}),
        ("step_output", {"ok": True}),
    ]
    assert calls[0].tool_call_id == "c1"
    assert calls[1].tool_call_id
    assert answer.finish_reason == "tool_call"


async def test_a_history_is_sent_as_the_form_wants_it() -> None:
    history: list[ModelMessage] = [
        replace(FIRST, instructions="Old."),
        ModelResponse(
            [ToolCallPart("file_read", {"path": "a"}, "c1"), ToolCallPart("file_read", '{"path": "b"}', "c2")]
        ),
        ModelRequest(
            [ToolReturnPart("file_read", "text of a", "c1"), ToolReturnPart("file_read", "no", "c2", outcome="denied")],
            instructions="You review.",
        ),
        ModelResponse([TextPart("so "), TextPart("far"), ToolCallPart("file_read", "[broken", "c3")]),
        ModelRequest([ToolReturnPart("file_read", {"a": 1}, "c3")], instructions="You review."),
    ]
    with chat_server(said()) as chat:
        await ask(model(chat), history, tools=[READ])

    def call(identity: str, arguments: str) -> Json:
        return {"id": identity, "type": "function", "function": {"name": "file_read", "arguments": arguments}}

    assert chat.requests[0]["messages"] == [
        {"role": "system", "content": "You review."},
        {"role": "user", "content": "Review it."},
        {"role": "assistant", "content": None, "tool_calls": [call("c1", '{"path":"a"}'), call("c2", '{"path":"b"}')]},
        {"role": "tool", "tool_call_id": "c1", "content": "text of a"},
        {"role": "tool", "tool_call_id": "c2", "content": "no"},
        {"role": "assistant", "content": "so far", "tool_calls": [call("c3", '{"invalid":"[broken"}')]},
        {"role": "tool", "tool_call_id": "c3", "content": '{"a":1}'},
    ]


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"prompt_tokens": 7},
        {"prompt_tokens": "7", "completion_tokens": 1},
        {"prompt_tokens": -5000, "completion_tokens": 1},
        {"prompt_tokens": True, "completion_tokens": 1},
        {"prompt_tokens": 10**30, "completion_tokens": 1},
    ],
)
async def test_usage_that_is_not_told_is_unmeasured_and_its_cost_unknown(usage: Json) -> None:
    priced: dict[str, Json] = {"prices": Prices(Decimal(1), Decimal(2))}
    with chat_server(said(usage=usage), said()) as chat:
        unmeasured = await ask(model(chat, **priced))
        measured = await ask(model(chat, **priced))
    assert (unmeasured.usage, unmeasured.cost_usd) == (None, None)
    assert (measured.usage, measured.cost_usd) == (Usage(7, 3), Decimal("0.000013"))


@pytest.mark.parametrize(
    ("answer", "kind", "status"),
    [
        ((401, {"error": "the key s3cr3t-value is wrong"}), ModelRefused, 401),
        ((404, {"error": "no such model"}), ModelRefused, 404),
        ((429, {"error": "slow down"}), ModelFailed, 429),
        ((500, b"oops"), ModelFailed, 500),
        ((307, b""), ModelFailed, 307),
        ((200, b"no json"), ModelFailed, None),
        ((200, {"choices": []}), ModelFailed, None),
        ((200, {"choices": [{"message": {"tool_calls": [{"function": {}}]}}]}), ModelFailed, None),
    ],
)
async def test_errors_tell_whether_another_try_makes_sense_and_no_secret(
    answer: Json, kind: type[ModelFailed], status: int | None
) -> None:
    key = SecretRef(SecretSource.ENV, "THE_KEY")
    with chat_server(answer) as chat:
        with pytest.raises(ModelFailed) as caught:
            await ask(model(chat, {"THE_KEY": "s3cr3t-value"}, credential=key))
        assert chat.headers[0]["authorization"] == "Bearer s3cr3t-value"
    assert (type(caught.value), caught.value.status) == (kind, status)
    assert "s3cr3t-value" not in str(caught.value)
    assert "openai_compatible.own" in str(caught.value)


class Quoting(FunctionModel):
    """A vendor's model whose errors quote the key."""

    async def request(self, *_: object) -> ModelResponse:
        raise ModelHTTPError(401, "m", {"message": f"bad key {'-'.join(['s3cr3t', 'value'])}"})


async def test_a_vendors_error_that_quotes_the_key_is_told_without_it() -> None:
    key = Secret("-".join(["s3cr3t", "value"]))  # not as one text: a traceback quotes the lines of this file
    quoting = Quoting(lambda _messages, _info: ModelResponse([]))
    with pytest.raises(ModelRefused) as caught:
        await ask(Exchange(binding("https://x.example"), quoting, key))
    assert "bad key [masked]" in str(caught.value)
    assert key.reveal() not in "".join(traceback.format_exception(caught.value))


async def test_a_server_that_is_not_there_may_be_asked_again() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: every connection is refused
        gone = model(Chat([], f"http://127.0.0.1:{taken.getsockname()[1]}/v1"))
        with pytest.raises(ModelFailed, match="connection failed") as caught:
            await ask(gone)
    assert not isinstance(caught.value, ModelRefused)


@pytest.mark.parametrize(
    ("finish", "expected"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "content_filter"),
        ("tool_calls", "tool_call"),
        ("x", None),
    ],
)
async def test_how_an_answer_ended_is_told(finish: str, expected: str | None) -> None:
    with chat_server(said(finish=finish)) as chat:
        assert (await ask(model(chat))).finish_reason == expected


async def test_a_refusal_is_no_answer() -> None:
    with chat_server(said(None, message={"refusal": "I will not."})) as chat:
        assert (await ask(model(chat))).finish_reason == "content_filter"


async def test_an_answer_in_pieces_is_one_text() -> None:
    with chat_server(said([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])) as chat:
        answer = await ask(model(chat))
    assert [part.content for part in answer.response.parts if isinstance(part, TextPart)] == ["ab"]


async def test_a_model_without_tool_calls_is_held_to_a_schema() -> None:
    history: list[ModelMessage] = [
        FIRST,
        ModelResponse([ToolCallPart("file_read", {"path": "a"}, "c1")]),
        ModelRequest([ToolReturnPart("file_read", "text of a", "c1")], instructions="You review."),
    ]
    answers = [
        said(json.dumps(value)) for value in ({"tool": "file_read", "args": {"path": "b"}}, {"answer": {"ok": True}})
    ]
    with chat_server(*answers, said('{"answer": "it is"}')) as chat:
        first = await ask(model(chat, tool_mode=ToolMode.SCHEMA), history, tools=[READ], output=VERDICT)
        second = await ask(model(chat, tool_mode=ToolMode.SCHEMA), history, tools=[READ], output=VERDICT)
        third = await ask(model(chat, tool_mode=ToolMode.SCHEMA), tools=[READ])
    body = chat.requests[0]
    assert "tools" not in body
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "user"]
    assert body["messages"][2]["content"] == '{"args":{"path":"a"},"tool":"file_read"}'
    assert body["messages"][3]["content"] == "Result of file_read (success):\ntext of a"
    options = body["response_format"]["json_schema"]["schema"]["anyOf"]
    assert options[0]["properties"] == {"tool": {"const": "file_read"}, "args": SCHEMA}
    assert options[1]["properties"] == {"answer": VERDICT}
    for answer, name, arguments in ((first, "file_read", {"path": "b"}), (second, "step_output", {"ok": True})):
        (call,) = answer.response.parts
        assert isinstance(call, ToolCallPart)
        assert (call.tool_name, call.args_as_dict()) == (name, arguments)
    assert third.response.parts == [TextPart("it is")]


@pytest.mark.parametrize("args", [[1, 2], 5, "text", None])
async def test_under_a_schema_what_is_no_object_is_kept_as_arguments_that_fit_no_tool(args: Json) -> None:
    words = (json.dumps({"tool": "file_read", "args": args}), json.dumps({"answer": args}))
    with chat_server(*map(said, words)) as chat:
        for name in ("file_read", "step_output"):
            answer = await ask(model(chat, tool_mode=ToolMode.SCHEMA), tools=[READ], output=VERDICT)
            (call,) = answer.response.parts
            assert isinstance(call, ToolCallPart)
            assert (call.tool_name, call.args) == (name, json.dumps(args, separators=(",", ":")))


async def test_a_name_without_end_is_cut() -> None:
    with chat_server(said(model="m" * 1_000)) as chat:
        assert (await ask(model(chat))).model == "m" * 200


@pytest.mark.parametrize("calls", [5, "file_read", {"name": "file_read"}, [5]])
async def test_calls_that_are_none_are_an_answer_that_cannot_be_used(calls: Json) -> None:
    why = "the answer cannot be used: (its tool calls are no list|a tool call has)"
    with chat_server(said(message={"tool_calls": calls})) as chat, pytest.raises(ModelFailed, match=why):
        await ask(model(chat))


def test_no_vendors_package_is_imported_before_it_is_used() -> None:
    code = "import sys, procedo.agents.registry; print({'openai', 'anthropic', 'pydantic_ai'} & set(sys.modules))"
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environ)
    assert done.stdout == "set()\n"
