"""Standard input and output as the SDK serves them, where a line that cannot be read is answered, too.

The SDK drops such a line without a word, and whoever sent it waits until they give up.
"""

import json
from contextvars import Context
from types import TracebackType
from typing import Any, Final, Protocol

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError

__all__ = ["Answering", "run_answering"]

_HINT: Final = "send one JSON-RPC message on each line, in UTF-8, nested less than 100 deep, without lone surrogates"


class _Lines(Protocol):
    """Where messages come from; an exception stands for a line that cannot be read."""

    last_context: Context | None

    async def receive(self) -> SessionMessage | Exception:
        """The next one. Raises `EndOfStream`."""

    async def aclose(self) -> None:
        """Take no more."""


class _Answers(Protocol):
    """Where answers go."""

    async def send(self, item: SessionMessage, /) -> None:
        """Send one."""


class Answering:
    """The messages among the lines; for the others there is an answer."""

    def __init__(self, lines: _Lines, answers: _Answers) -> None:
        self._lines = lines
        self._answers = answers

    @property
    def last_context(self) -> Context | None:
        """The context of whoever put the last message there."""
        return self._lines.last_context

    async def receive(self) -> SessionMessage | Exception:
        """The next message. Raises `EndOfStream`."""
        while isinstance(item := await self._lines.receive(), Exception):
            answer = _answer(item)
            if answer is not None:
                await self._answers.send(SessionMessage(answer))
        return item

    async def aclose(self) -> None:
        """Take no more."""
        await self._lines.aclose()

    def __aiter__(self) -> "Answering":
        """The messages, one by one."""
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        """See `receive`."""
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> "Answering":
        """Nothing has to be opened."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take no more."""
        await self.aclose()


async def run_answering(server: MCPServer[Any]) -> None:
    """Serve until the input ends."""
    lower = server._lowlevel_server  # the upper layer takes no streams
    async with stdio_server() as (lines, answers):
        await lower.run(Answering(lines, answers), answers, lower.create_initialization_options())


def _answer(error: Exception) -> JSONRPCError | None:
    """The answer to a line; None for an empty one, and for what nobody waits for: a notification or an answer."""
    line, named = _sent(error), None
    if line is not None and not line.strip():
        return None
    try:
        found = json.loads(line or "")
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        named = found.get("id")
        if "method" not in found or "id" not in found:
            return None
        named = named if isinstance(named, str | int) and not isinstance(named, bool) else None
    message = f"The line is no message that can be read: {_HINT}."
    return JSONRPCError(jsonrpc="2.0", id=named, error=ErrorData(code=PARSE_ERROR, message=message))


def _sent(error: Exception) -> str | None:
    """The line itself, as far as it is known."""
    found = error.errors()[0].get("input") if isinstance(error, ValidationError) else None
    return found if isinstance(found, str) else None
