"""How four makers' clients speak with their model: what is offered and seen in a request, and an answer in its form."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

__all__ = ["DIALECTS", "Asked", "Dialect", "Spoken", "ToolCall"]

Json = Any


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the client is told it."""

    id: str
    name: str
    arguments: Json


@dataclass(frozen=True, slots=True)
class Spoken:
    """A body, and what it is."""

    kind: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Asked:
    """A request to a model."""

    path: str
    body: Json


class Dialect(Protocol):
    """One maker's form."""

    def hears(self, path: str) -> bool:
        """True for a request to the model."""
        ...

    def offered(self, body: Json) -> list[str]:
        """Names of the tools that the model may call."""
        ...

    def seen(self, body: Json) -> tuple[str, str] | None:
        """The id of the last call that has a result, with that result as the model is given it."""
        ...

    def says(self, asked: Asked, said: str | ToolCall) -> Spoken:
        """The model's words or its call."""
        ...


def _events(events: Iterator[tuple[str, Json]]) -> Spoken:
    text = "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events)
    return Spoken("text/event-stream", text.encode())


def _plain(value: Json) -> Spoken:
    return Spoken("application/json", json.dumps(value).encode())


def _text(content: Json) -> str:
    """Content as one string: what a model gets to read of it."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_text(part) for part in content)
    if isinstance(content, dict) and isinstance(content.get("text"), str):
        return str(content["text"])
    return json.dumps(content)


class Anthropic:
    """Messages of Anthropic."""

    def hears(self, path: str) -> bool:
        return path.partition("?")[0].endswith("/v1/messages")

    def offered(self, body: Json) -> list[str]:
        return [tool["name"] for tool in body.get("tools", [])]

    def seen(self, body: Json) -> tuple[str, str] | None:
        found = None
        for message in body["messages"]:
            content = message["content"] if isinstance(message["content"], list) else []
            for block in content:
                if block["type"] == "tool_result":
                    found = block["tool_use_id"], _text(block.get("content", ""))
        return found

    def says(self, asked: Asked, said: str | ToolCall) -> Spoken:
        called = isinstance(said, ToolCall)
        if isinstance(said, ToolCall):
            block = {"type": "tool_use", "id": said.id, "name": said.name, "input": said.arguments}
        else:
            block = {"type": "text", "text": said}
        message = {
            "id": "msg_1", "type": "message", "role": "assistant", "model": asked.body["model"], "content": [block],
            "stop_reason": "tool_use" if called else "end_turn", "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }  # fmt: skip
        return _events(self._stream(message, block)) if asked.body.get("stream") else _plain(message)

    def _stream(self, message: Json, block: Json) -> Iterator[tuple[str, Json]]:
        def event(kind: str, **more: Json) -> tuple[str, Json]:
            return kind, {"type": kind, **more}

        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield event("message_start", message={**message, "content": [], "stop_reason": None})
        yield event("content_block_start", index=0, content_block=empty)
        yield event("content_block_delta", index=0, delta=delta)
        yield event("content_block_stop", index=0)
        ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
        yield event("message_delta", delta=ended, usage={"output_tokens": 5})
        yield event("message_stop")


class Chat:
    """Chat completions of OpenAI."""

    def hears(self, path: str) -> bool:
        return path.endswith("/chat/completions")

    def offered(self, body: Json) -> list[str]:
        return [tool["function"]["name"] for tool in body.get("tools", [])]

    def seen(self, body: Json) -> tuple[str, str] | None:
        results = [message for message in body["messages"] if message["role"] == "tool"]
        return (results[-1]["tool_call_id"], _text(results[-1]["content"])) if results else None

    def says(self, asked: Asked, said: str | ToolCall) -> Spoken:
        message: Json = {"role": "assistant", "content": None if isinstance(said, ToolCall) else said}
        if isinstance(said, ToolCall):
            function = {"name": said.name, "arguments": json.dumps(said.arguments)}
            message["tool_calls"] = [{"index": 0, "id": said.id, "type": "function", "function": function}]
        finish = "tool_calls" if isinstance(said, ToolCall) else "stop"
        whole = {"id": "answer-1", "created": 1, "model": asked.body["model"]}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        if not asked.body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": finish}
            return _plain({**whole, "object": "chat.completion", "choices": [choice], "usage": usage})
        chunks = [
            {"index": 0, "delta": message, "finish_reason": None},
            {"index": 0, "delta": {}, "finish_reason": finish},
        ]
        lines = [{**whole, "object": "chat.completion.chunk", "choices": [chunk]} for chunk in chunks]
        lines[-1]["usage"] = usage
        text = "".join(f"data: {json.dumps(line)}\n\n" for line in lines) + "data: [DONE]\n\n"
        return Spoken("text/event-stream", text.encode())


class Responses:
    """Responses of OpenAI. Tools of a server may stand in a space of their own; their names are joined by a dot."""

    def hears(self, path: str) -> bool:
        return path.endswith("/responses")

    def offered(self, body: Json) -> list[str]:
        names = list[str]()
        for tool in body.get("tools", []):
            inner = tool.get("tools", [])
            names += [f"{tool['name']}.{one['name']}" for one in inner] if inner else [tool.get("name", tool["type"])]
        return names

    def seen(self, body: Json) -> tuple[str, str] | None:
        items = body["input"] if isinstance(body["input"], list) else []
        results = [item for item in items if item.get("type") == "function_call_output"]
        return (results[-1]["call_id"], _text(results[-1]["output"])) if results else None

    def says(self, asked: Asked, said: str | ToolCall) -> Spoken:
        item: Json
        if isinstance(said, ToolCall):
            space, _, name = said.name.rpartition(".")
            item = {"type": "function_call", "id": f"fc_{said.id}", "call_id": said.id, "name": name}
            item |= {"arguments": json.dumps(said.arguments), "status": "completed"}
            item |= {"namespace": space} if space else {}
        else:
            content = [{"type": "output_text", "text": said, "annotations": []}]
            item = {"type": "message", "id": "msg_1", "role": "assistant", "content": content, "status": "completed"}
        usage = {
            "input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15,
        }  # fmt: skip
        whole = {
            "id": "resp_1", "object": "response", "created_at": 1, "model": asked.body["model"], "status": "completed",
            "output": [item], "usage": usage, "parallel_tool_calls": False, "tool_choice": "auto", "tools": [],
        }  # fmt: skip
        if not asked.body.get("stream"):
            return _plain(whole)
        begun = {**whole, "output": [], "status": "in_progress"}
        parts: list[tuple[str, Json]] = [
            ("response.created", {"response": begun}),
            ("response.output_item.added", {"output_index": 0, "item": item}),
            ("response.output_item.done", {"output_index": 0, "item": item}),
            ("response.completed", {"response": whole}),
        ]
        return _events((name, {"type": name, **data}) for name, data in parts)


class Gemini:
    """Contents of Google."""

    def hears(self, path: str) -> bool:
        return ":generateContent" in path or ":streamGenerateContent" in path

    def offered(self, body: Json) -> list[str]:
        tools = body.get("tools", [])
        return [function["name"] for tool in tools for function in tool.get("functionDeclarations", [])]

    def seen(self, body: Json) -> tuple[str, str] | None:
        parts = [part for content in body["contents"] for part in content.get("parts", [])]
        results = [part["functionResponse"] for part in parts if "functionResponse" in part]
        return (str(results[-1].get("id", "")), json.dumps(results[-1]["response"])) if results else None

    def says(self, asked: Asked, said: str | ToolCall) -> Spoken:
        part: Json = {"text": said}
        if isinstance(said, ToolCall):
            part = {"functionCall": {"id": said.id, "name": said.name, "args": said.arguments}}
        whole = {
            "candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        }
        if ":stream" not in asked.path:
            return _plain(whole)
        return Spoken("text/event-stream", f"data: {json.dumps(whole)}\n\n".encode())


DIALECTS: Final[tuple[Dialect, ...]] = (Anthropic(), Chat(), Responses(), Gemini())
