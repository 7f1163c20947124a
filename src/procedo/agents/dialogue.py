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
from procedo.core.outputs import canonical
from procedo.core.session import CallRow, Message

__all__ = [
    "LIBRARY",
    "arguments_of",
    "dump",
    "first_request",
    "fitting",
    "is_nudge",
    "load",
    "nudge",
    "own",
    "results",
    "size_of",
    "spoken",
    "unreadable",
]

LIBRARY: Final = version("pydantic-ai-slim")
_CHARS_PER_TOKEN: Final = 4
"""A rough measure that errs on the side of sending less; the provider's own count is known only afterwards."""


def dump(message: ModelMessage) -> Json:
    """A message as JSON."""
    return ModelMessagesTypeAdapter.dump_python([message], mode="json")[0]


def load(message: Message) -> ModelMessage:
    """A stored message. Raises `ValueError` for a form that this version of the library does not know."""
    return ModelMessagesTypeAdapter.validate_python([message.data])[0]


def unreadable(messages: Sequence[Message]) -> str:
    """Why stored messages cannot be taken up again, or nothing: another version of the library wrote them."""
    for message in messages:
        try:
            load(message)
        except ValueError:
            return f"message {message.seq} was written by pydantic-ai {message.library}, and {LIBRARY} cannot read it"
    return ""


def first_request(instructions: str, context: str) -> ModelRequest:
    """All that a session begins with: its own instructions and the step."""
    return ModelRequest(parts=[UserPromptPart(context)], instructions=instructions)


def nudge(instructions: str, text: str) -> ModelRequest:
    """A request that tells the model what was wrong with its answer."""
    return ModelRequest(parts=[UserPromptPart(text)], instructions=instructions)


def is_nudge(message: Message) -> bool:
    """True for a request that says something itself instead of answering calls; the first one is none."""
    if message.kind != "request" or message.seq == 1:
        return False
    return any(part.get("part_kind") == "user-prompt" for part in message.data.get("parts", ()))


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


def own(response: ModelResponse, turn: int) -> ModelResponse:
    """The response in a form that can be kept: each call with an id that is unique in its turn, text that is text.

    Some servers repeat or omit ids, and a model can write half of a character.
    """
    seen: set[str] = set()
    parts: list[Any] = []
    for index, part in enumerate(response.parts):
        kept = part
        if isinstance(part, TextPart):
            kept = replace(part, content=_whole(part.content))
        elif isinstance(part, ToolCallPart):
            identity = part.tool_call_id
            if not identity or identity in seen:
                identity = f"call-{turn}-{index}"
            seen.add(identity)
            kept = replace(part, tool_call_id=identity, args=_kept(part.args))
            if _whole(part.tool_name) != part.tool_name:
                kept = ToolCallPart(_whole(part.tool_name), _kept(part.args), identity)
        parts.append(kept)
    return replace(response, parts=parts)


def _whole(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _kept(args: Any) -> Any:
    """Arguments as they are, or as a text when they are no JSON value that can be kept."""
    if isinstance(args, str):
        return _whole(args)
    try:
        canonical(args).encode()
    except (ValueError, TypeError, RecursionError):
        return _whole(str(args))
    return args


def arguments_of(part: ToolCallPart) -> Json:
    """The arguments of a call as the model gave them; a text that is no JSON stays that text, and fits no schema."""
    if not part.args:
        return {}
    if not isinstance(part.args, str):
        return dict(part.args)
    try:
        value: Json = json.loads(part.args)
        canonical(value).encode()
    except (ValueError, RecursionError):
        return part.args
    return value


def size_of(value: Json) -> int:
    """About how many tokens a value takes in a request."""
    return len(json.dumps(value, ensure_ascii=False)) // _CHARS_PER_TOKEN


def fitting(messages: Sequence[Message], tokens: int, count: int) -> list[Message] | None:
    """The messages that are sent: the first request, and as many of the newest whole turns as fit.

    A turn is a response with the request that answers it; half a pair is never sent. None: even the first
    request and the newest turn are too big.
    """
    first, rest = messages[0], messages[1:]
    turns = [rest[place : place + 2] for place in range(0, len(rest), 2)]
    left, room = tokens - size_of(first.data), count - 1
    kept: list[Sequence[Message]] = []
    for turn in reversed(turns):
        left -= sum(size_of(message.data) for message in turn)
        room -= len(turn)
        if left < 0 or (room < 0 and kept):
            break
        kept.insert(0, turn)
    if left < 0 and not kept:
        return None
    return [first, *(message for turn in kept for message in turn)]
