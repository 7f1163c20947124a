"""An answer in the OpenAI chat form as a message of our history. Raises `ValueError` for what cannot be one."""

import json
from collections.abc import Mapping
from typing import Final

from pydantic_ai.messages import FinishReason, ModelResponse, ModelResponsePart, TextPart, ToolCallPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.usage import RequestUsage

from procedo.agents.parts import ToolMode
from procedo.core.model import Json
from procedo.core.outputs import canonical

__all__ = ["read_answer"]

_FINISH: Final[Mapping[str, FinishReason]] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "content_filter",
    "tool_calls": "tool_call",
    "function_call": "tool_call",
}
_LONGEST_NAME: Final = 200
_MOST_TOKENS: Final = 1_000_000_000
"""More than any request has; a number beyond it is a mistake, and was not measured."""


def read_answer(
    answer: Json, mode: ToolMode, parameters: ModelRequestParameters, asked: str, provider: str, endpoint: str
) -> ModelResponse:
    """The response. Without `usage` in the answer it is unmeasured: it then holds no token counts at all."""
    choices = answer.get("choices") if isinstance(answer, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise ValueError("it has no choices")
    message = choices[0].get("message")
    if not isinstance(message, dict):
        raise ValueError("its choice has no message")
    reason = choices[0].get("finish_reason")
    finish = _FINISH.get(reason) if isinstance(reason, str) else None
    parts = _parts(message, parameters, by_schema=mode is ToolMode.SCHEMA and finish != "length")
    if message.get("refusal"):
        finish = "content_filter"
    reported = answer.get("model")
    identity = answer.get("id")
    return ModelResponse(
        parts=parts,
        usage=_usage(answer.get("usage")),
        model_name=reported[:_LONGEST_NAME] if isinstance(reported, str) and reported else asked,
        provider_name=provider,
        provider_url=endpoint,
        provider_response_id=identity if isinstance(identity, str) else None,
        finish_reason=finish,
    )


def _usage(usage: Json) -> RequestUsage:
    if not isinstance(usage, dict):
        return RequestUsage()
    sent, received = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    if sent is None or received is None:
        return RequestUsage()
    details = usage.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens")) if isinstance(details, dict) else None
    return RequestUsage(input_tokens=sent, output_tokens=received, cache_read_tokens=cached or 0)


def _count(value: Json) -> int | None:
    """A number of tokens, or None for what can be none: a count below zero would give a budget back."""
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None


def _parts(message: Json, parameters: ModelRequestParameters, *, by_schema: bool) -> list[ModelResponsePart]:
    text = _content(message.get("content"))
    has_tools = bool(parameters.function_tools or parameters.output_tools)
    if by_schema and has_tools:
        return _by_schema(text, parameters)
    parts: list[ModelResponsePart] = [TextPart(text)] if text else []
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list):
        raise ValueError("its tool calls are no list")
    return [*parts, *map(_call, calls)]


def _content(content: Json) -> str:
    """The text, also of servers that answer in a list of pieces."""
    if isinstance(content, list):
        return "".join(str(piece.get("text", "")) for piece in content if isinstance(piece, dict))
    return content if isinstance(content, str) else ""


def _call(call: Json) -> ToolCallPart:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise ValueError("a tool call has no name")
    arguments = function.get("arguments")
    if arguments is not None and not isinstance(arguments, str | dict):
        raise ValueError(f"the arguments of {function['name']!r} are neither text nor an object")
    identity = call.get("id")
    if isinstance(identity, str) and identity:
        return ToolCallPart(function["name"], arguments, identity)
    return ToolCallPart(function["name"], arguments)


def _by_schema(text: str, parameters: ModelRequestParameters) -> list[ModelResponsePart]:
    """A call or the answer, out of the one JSON object; anything else stays the text that it is."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return [TextPart(text)] if text else []
    if isinstance(value, dict) and isinstance(value.get("tool"), str):
        return [ToolCallPart(value["tool"], _arguments(value.get("args", {})))]
    if isinstance(value, dict) and "answer" in value:
        if parameters.output_tools:
            return [ToolCallPart(parameters.output_tools[0].name, _arguments(value["answer"]))]
        return [TextPart(value["answer"] if isinstance(value["answer"], str) else canonical(value["answer"]))]
    return [TextPart(text)]


def _arguments(value: Json) -> str | dict[str, Json]:
    """The arguments of a call. What is no object is kept as its text, and fits no tool."""
    return value if isinstance(value, dict) else canonical(value)
