"""Messages of a session: written and read by the model library's own rules, and cut to what fits into a request.

What is stored is never cut; only what is sent is.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any, Final

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from procedo.core.model import Json
from procedo.core.session import CallRow, Message

__all__ = ["LIBRARY", "dump", "first_request", "fitting", "load", "nudge", "results", "spoken", "with_own_ids"]

LIBRARY: Final = version("pydantic-ai-slim")
_CHARS_PER_TOKEN: Final = 4
"""A rough measure that errs on the side of sending less; the provider's own count is known only afterwards."""


def dump(message: ModelMessage) -> Json:
    """A message as JSON."""
    return ModelMessagesTypeAdapter.dump_python([message], mode="json")[0]


def load(message: Message) -> ModelMessage:
    """A stored message."""
    return ModelMessagesTypeAdapter.validate_python([message.data])[0]


def first_request(instructions: str, context: str) -> ModelRequest:
    """All that a session begins with: its own instructions and the step."""
    return ModelRequest(parts=[UserPromptPart(context)], instructions=instructions)


def nudge(instructions: str, text: str) -> ModelRequest:
    """A request that tells the model what was wrong with its answer."""
    return ModelRequest(parts=[UserPromptPart(text)], instructions=instructions)


def results(instructions: str, calls: Sequence[CallRow]) -> ModelRequest:
    """The answers to all calls of a turn, in the order of the calls, whatever order they finished in."""
    parts = [
        ToolReturnPart(
            tool_name=call.offered,
            content=call.text,
            tool_call_id=call.call_id,
            outcome=call.outcome.value if call.outcome is not None else "interrupted",
        )
        for call in calls
    ]
    return ModelRequest(parts=parts, instructions=instructions)


def spoken(response: ModelResponse) -> tuple[str, tuple[ToolCallPart, ...]]:
    """The text and the calls of a response."""
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    return text.strip(), tuple(part for part in response.parts if isinstance(part, ToolCallPart))


def with_own_ids(response: ModelResponse, turn: int) -> ModelResponse:
    """The response with an id for each call that is unique in its session; some servers repeat or omit theirs."""
    seen: set[str] = set()
    parts: list[Any] = []
    for index, part in enumerate(response.parts):
        kept = part
        if isinstance(part, ToolCallPart):
            if not part.tool_call_id or part.tool_call_id in seen:
                kept = replace(part, tool_call_id=f"call-{turn}-{index}")
            seen.add(part.tool_call_id)
        parts.append(kept)
    response.parts = parts
    return response


def _size(message: ModelMessage) -> int:
    return len(json.dumps(dump(message), ensure_ascii=False)) // _CHARS_PER_TOKEN


def fitting(messages: Sequence[ModelMessage], tokens: int, count: int) -> list[ModelMessage] | None:
    """The messages that are sent: the first request, and as many of the newest whole turns as fit.

    A turn is a response with the request that answers it; half a pair is never sent. None: even the first
    request and the newest turn are too big.
    """
    first, rest = messages[0], list(messages[1:])
    turns = [rest[place : place + 2] for place in range(0, len(rest), 2)]
    left, room = tokens - _size(first), count - 1
    kept: list[list[ModelMessage]] = []
    for turn in reversed(turns):
        left -= sum(map(_size, turn))
        room -= len(turn)
        if left < 0 or (room < 0 and kept):
            break
        kept.insert(0, turn)
    if left < 0 and not kept:
        return None
    return [first, *(message for turn in kept for message in turn)]
