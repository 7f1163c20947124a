"""Our history as a request in the OpenAI chat form."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn

from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from procedo.agents.parts import ToolMode
from procedo.core.model import Json
from procedo.core.outputs import canonical

__all__ = ["chat_body"]

_COPIED: Mapping[str, str] = {
    "temperature": "temperature",
    "max_tokens": "max_tokens",
    "top_p": "top_p",
    "seed": "seed",
}


def chat_body(
    model: str,
    mode: ToolMode,
    messages: Sequence[ModelMessage],
    settings: Mapping[str, Json],
    parameters: ModelRequestParameters,
) -> Json:
    """The body of the request. A setting that is not set is not in it."""
    by_schema = mode is ToolMode.SCHEMA
    tools = [*parameters.function_tools, *parameters.output_tools]
    system = _instructions(messages)
    if by_schema and tools:
        system = "\n\n".join(part for part in (system, _described(parameters)) if part)
    body: dict[str, Json] = {
        "model": model,
        "messages": [
            *([{"role": "system", "content": system}] if system else []),
            *_history(messages, by_schema=by_schema),
        ],
    }
    body |= {wire: settings[name] for name, wire in _COPIED.items() if name in settings}
    if by_schema and tools:
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": _choice(parameters), "strict": True},
        }
    elif tools:
        body["tools"] = [_tool(tool) for tool in tools]
        body["tool_choice"] = "auto" if parameters.allow_text_output else "required"
        if "parallel_tool_calls" in settings:
            body["parallel_tool_calls"] = settings["parallel_tool_calls"]
    return body


def _instructions(messages: Sequence[ModelMessage]) -> str:
    """Those of the newest request alone; each request carries the whole of them."""
    for message in reversed(messages):
        if isinstance(message, ModelRequest):
            return message.instructions or ""
    return ""


def _tool(tool: ToolDefinition) -> Json:
    function = {"name": tool.name, "description": tool.description or "", "parameters": tool.parameters_json_schema}
    return {"type": "function", "function": function}


def _history(messages: Sequence[ModelMessage], *, by_schema: bool) -> list[Json]:
    found: list[Json] = []
    for message in messages:
        if isinstance(message, ModelResponse):
            found += _told_before(message, by_schema=by_schema)
        else:
            found += _asked(message.parts, by_schema=by_schema)
    return found


def _asked(parts: Iterable[object], *, by_schema: bool) -> list[Json]:
    found: list[Json] = []
    for part in parts:
        match part:
            case SystemPromptPart(content=text):
                found.append({"role": "system", "content": text})
            case UserPromptPart(content=str(text)):
                found.append({"role": "user", "content": text})
            case UserPromptPart(content=pieces) if all(isinstance(piece, str) for piece in pieces):
                found.append({"role": "user", "content": "\n".join(map(str, pieces))})
            case ToolReturnPart():
                found.append(_returned(part, by_schema=by_schema))
            case _:
                raise UserError(f"{type(part).__name__} cannot be sent to this provider; only text can")
    return found


def _returned(part: ToolReturnPart, *, by_schema: bool) -> Json:
    text = part.content if isinstance(part.content, str) else canonical(part.content)
    if by_schema:
        return {"role": "user", "content": f"Result of {part.tool_name} ({part.outcome}):\n{text}"}
    return {"role": "tool", "tool_call_id": part.tool_call_id, "content": text}


def _told_before(message: ModelResponse, *, by_schema: bool) -> list[Json]:
    text = "".join(part.content for part in message.parts if isinstance(part, TextPart))
    calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
    if by_schema:
        lines = [canonical({"tool": call.tool_name, "args": _arguments(call)}) for call in calls]
        content = "\n".join([*([text] if text else []), *lines])
        return [{"role": "assistant", "content": content}] if content else []
    if not calls:
        return [{"role": "assistant", "content": text}] if text else []
    wire = [
        {
            "id": call.tool_call_id,
            "type": "function",
            "function": {"name": call.tool_name, "arguments": canonical(_arguments(call))},
        }
        for call in calls
    ]
    return [{"role": "assistant", "content": text or None, "tool_calls": wire}]


def _arguments(call: ToolCallPart) -> Json:
    """The arguments as an object. What was no object when it came goes back under a name that says so."""
    if isinstance(call.args, dict):
        return call.args
    try:
        value = json.loads(call.args or "{}", parse_constant=_refused)
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"invalid": call.args}


def _refused(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


def _described(parameters: ModelRequestParameters) -> str:
    lines = ["Answer with one JSON object and nothing else. It is one of:"]
    for tool in parameters.function_tools:
        schema = canonical(tool.parameters_json_schema)
        lines.append(f'- {{"tool": "{tool.name}", "args": …}} to call a tool. {tool.description or ""} args: {schema}')
    lines.append('- {"answer": …} to end with the result.')
    return "\n".join(lines)


def _choice(parameters: ModelRequestParameters) -> Json:
    answer = parameters.output_tools[0].parameters_json_schema if parameters.output_tools else {"type": "string"}
    options = [
        _fixed({"tool": {"const": tool.name}, "args": tool.parameters_json_schema})
        for tool in parameters.function_tools
    ]
    return {"anyOf": [*options, _fixed({"answer": answer})]}


def _fixed(properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
