"""Answers out of a file: for tests, demonstrations and rehearsals. Every answer says that it is one.

The file is TOML or JSON. `turns` are given one after the other; with `cases`, the first one whose `match` occurs
in what the step's agent is told is taken:

    [[cases]]
    match = "Review the change"
    [[cases.turns]]
    calls = [{ tool = "file_read", args = { path = "change.md" } }]
    [[cases.turns]]
    output = { verdict = "fine" }

A turn has `text`, `calls`, or `output`; `{{result}}` in a text or an output is the newest result of a tool;
`tokens = [in, out]` are counted as if they had been used. Which turn comes next is read off the history,
so another process goes on where the first one ended.
"""

import json
import tomllib
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from procedo.agents.finalcall import OUTPUT_TOOL, offered_schema
from procedo.agents.parts import Tool
from procedo.agents.ports import Answer, ModelRefused, Settings, Usage
from procedo.core.model import Json
from procedo.core.outputs import canonical, digest
from procedo.jsonschemas import compile_schema

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, TextPart, ToolCallPart

__all__ = ["Script", "ScriptedModel", "read_script"]

_MAX_BYTES: Final = 1_048_576
_PLACE: Final = "scripted_turn"
_RESULT: Final = "{{result}}"
_TURN: Final[Json] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "calls": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {"tool": {"type": "string", "minLength": 1}, "args": {"type": "object"}},
                "required": ["tool"],
                "additionalProperties": False,
            },
        },
        "output": True,
        "tokens": {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 2, "maxItems": 2},
        "finish": {"enum": ["stop", "length", "content_filter", "tool_call"]},
    },
    "anyOf": [{"required": ["text"]}, {"required": ["calls"]}, {"required": ["output"]}],
    "additionalProperties": False,
}
_TURNS: Final[Json] = {"type": "array", "items": _TURN, "minItems": 1}
_SCHEMA: Final[Json] = {
    "type": "object",
    "properties": {
        "turns": _TURNS,
        "cases": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {"match": {"type": "string"}, "turns": _TURNS},
                "required": ["turns"],
                "additionalProperties": False,
            },
        },
    },
    "oneOf": [{"required": ["turns"]}, {"required": ["cases"]}],
    "additionalProperties": False,
}


class Script(Struct, frozen=True):
    """A script that was read: its cases in order, and the digest of its content."""

    cases: tuple[tuple[str, tuple[Json, ...]], ...]
    digest: str

    def turns(self, told: str) -> tuple[Json, ...]:
        """The turns of the first case that fits; none when no case does."""
        return next((turns for match, turns in self.cases if match in told), ())


def read_script(path: Path) -> Script:
    """Read a script. Raises `ValueError` with what is wrong and where."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise ValueError(f"the script {path} cannot be read: {error.strerror or error}") from error
    if len(data) > _MAX_BYTES:
        raise ValueError(f"the script {path} is larger than {_MAX_BYTES} bytes")
    try:
        raw: Json = json.loads(data) if path.suffix == ".json" else tomllib.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the script {path} cannot be read: {error}") from error
    if broken := compile_schema(_SCHEMA).violations(raw):
        raise ValueError(f"the script {path}: {'; '.join(map(str, broken))}")
    cases = raw["cases"] if "cases" in raw else [{"turns": raw["turns"]}]
    found = tuple((str(case.get("match", "")), tuple(case["turns"])) for case in cases)
    return Script(found, digest(json.loads(json.dumps(raw, default=str))))


class ScriptedModel:
    """Implements `ports.Model` with the answers of a script."""

    def __init__(self, script: Script, alias: str) -> None:
        self._script = script
        self._alias = alias

    async def request(
        self, messages: "Sequence[ModelMessage]", settings: Settings, tools: Sequence[Tool], output: Json | None
    ) -> Answer:
        """The next turn. Raises `ModelRefused` at the end of the script."""
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
        from pydantic_ai.usage import RequestUsage

        del settings, tools  # a script says what it says, whatever is on offer
        turns = self._script.turns(_told(messages))
        place = _next_place(messages)
        if place >= len(turns):
            have = f"has {len(turns)} turns for it" if turns else "has no case for it"
            raise ModelRefused(f"the script of scripted.{self._alias} {have}, and turn {place + 1} was asked for")
        turn = turns[place]
        result = _newest_result(messages)
        parts: list[TextPart | ToolCallPart] = []
        if "text" in turn:
            parts.append(TextPart(turn["text"].replace(_RESULT, result)))
        parts += [ToolCallPart(call["tool"], call.get("args", {})) for call in turn.get("calls", ())]
        if "output" in turn:
            parts.append(_output(_filled(turn["output"], result), output))
        sent, received = turn.get("tokens", (0, 0))
        called = any(isinstance(part, ToolCallPart) for part in parts)
        response = ModelResponse(
            parts=parts,
            usage=RequestUsage(input_tokens=sent, output_tokens=received),
            model_name="scripted",
            provider_name="scripted",
            provider_details={_PLACE: place},
            finish_reason=turn.get("finish", "tool_call" if called else "stop"),
        )
        usage = Usage(sent, received)
        return Answer(response, usage, Decimal(0), "scripted", "scripted", response.finish_reason, scripted=True)


def _output(value: Json, schema: Json | None) -> "TextPart | ToolCallPart":
    from pydantic_ai.messages import TextPart, ToolCallPart

    if schema is None:
        return TextPart(value if isinstance(value, str) else canonical(value))
    return ToolCallPart(OUTPUT_TOOL, value if offered_schema(schema) is schema else {"value": value})


def _told(messages: "Sequence[ModelMessage]") -> str:
    """The first request: the step's own system prompt and the step."""
    from pydantic_ai.messages import ModelRequest, UserPromptPart

    for message in messages:
        if isinstance(message, ModelRequest):
            shown = [str(part.content) for part in message.parts if isinstance(part, UserPromptPart)]
            return "\n".join([message.instructions or "", *shown])
    return ""


def _next_place(messages: "Sequence[ModelMessage]") -> int:
    from pydantic_ai.messages import ModelResponse

    for message in reversed(messages):
        if isinstance(message, ModelResponse):
            return int((message.provider_details or {}).get(_PLACE, -1)) + 1
    return 0


def _newest_result(messages: "Sequence[ModelMessage]") -> str:
    from pydantic_ai.messages import ModelRequest, ToolReturnPart

    for message in reversed(messages):
        if isinstance(message, ModelRequest):
            for part in reversed(message.parts):
                if isinstance(part, ToolReturnPart):
                    return str(part.content)
    return ""


def _filled(value: Json, result: str) -> Json:
    if isinstance(value, str):
        return value.replace(_RESULT, result)
    if isinstance(value, dict):
        return {key: _filled(inner, result) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, result) for inner in value]
    return value
