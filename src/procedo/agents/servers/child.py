"""A server as a child process: exactly the environment it is given, its own process group, gone with its connection.

The SDK's own stdio transport adds variables of ours and leaves a group alone whose leader ends by itself;
this one does neither. Leaving it closes the child's input, waits a little, and then ends the whole group.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    Streams: TypeAlias = tuple[
        MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
    ]

__all__ = ["Complaints", "child"]

_GRACE_S: Final = 2.0
"""How long a child may take to end by itself once its input is closed, in seconds."""
_LONGEST: Final = 32 * 1024 * 1024
_KEPT: Final = 2_000


class Complaints:
    """The end of what a child wrote to its error output, for the message that it cannot be reached."""

    def __init__(self) -> None:
        self._kept = b""
        self.ended = anyio.Event()

    def add(self, data: bytes) -> None:
        """Keep the newest bytes."""
        self._kept = (self._kept + data)[-_KEPT:]

    def text(self) -> str:
        """What was kept, on one line."""
        return " ".join(self._kept.decode(errors="replace").split())


@asynccontextmanager
async def child(
    command: Sequence[str], env: Mapping[str, str], cwd: Path, complaints: Complaints
) -> AsyncIterator["Streams"]:
    """Start a server and exchange messages with it. Raises `OSError` or `ValueError` when it cannot be started."""
    process = await anyio.open_process(
        _tied(command),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(env),
        cwd=cwd,
        start_new_session=True,
    )
    # No await between here and the task group: a cancellation in the gap would leak the child.
    incoming, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    sent, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_read, _stream(process.stdout), incoming)
            group.start_soon(_write, _sink(process.stdin), outgoing, incoming)
            group.start_soon(_keep, _stream(process.stderr), complaints)
            try:
                yield received, sent
            finally:
                with anyio.CancelScope(shield=True):
                    await _end(process)
                    with anyio.move_on_after(_GRACE_S):
                        await complaints.ended.wait()
                group.cancel_scope.cancel()
    finally:
        for stream in (incoming, received, sent, outgoing):
            stream.close()
        with anyio.CancelScope(shield=True):
            await process.aclose()


def _tied(command: Sequence[str]) -> list[str]:
    """The command so that it is killed with this process however that ends, where the system can do it (Linux)."""
    tie = shutil.which("setpriv") if sys.platform.startswith("linux") else None
    return list(command) if tie is None else [tie, "--pdeathsig", "KILL", "--", *command]


def _stream(stream: ByteReceiveStream | None) -> ByteReceiveStream:
    if stream is None:
        raise ValueError("the child has no output")
    return stream


def _sink(stream: ByteSendStream | None) -> ByteSendStream:
    if stream is None:
        raise ValueError("the child has no input")
    return stream


async def _read(stdout: ByteReceiveStream, incoming: "MemoryObjectSendStream[SessionMessage | Exception]") -> None:
    async with incoming:
        line = bytearray()
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream):
            while True:
                *ended, piece = (await stdout.receive()).split(b"\n")
                for end in ended:
                    line += end
                    await incoming.send(_message(bytes(line)))
                    line.clear()
                line += piece
                if len(line) > _LONGEST:
                    await incoming.send(ValueError(f"the server sent a line of more than {_LONGEST} bytes"))
                    return


def _message(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


async def _write(
    stdin: ByteSendStream,
    outgoing: "MemoryObjectReceiveStream[SessionMessage]",
    incoming: "MemoryObjectSendStream[SessionMessage | Exception]",
) -> None:
    try:
        async with outgoing:
            async for one in outgoing:
                text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                await stdin.send(text.encode() + b"\n")
    except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
        # Whoever waits for an answer learns that none will come.
        await incoming.aclose()


async def _keep(stderr: ByteReceiveStream, complaints: Complaints) -> None:
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream):
        while True:
            complaints.add(await stderr.receive())
    complaints.ended.set()


async def _end(process: Process) -> None:
    """Close its input, let it end, then end whatever is left of its group."""
    with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        await _sink(process.stdin).aclose()
    if not await _ended(process):
        _signal(process.pid, signal.SIGTERM)
        await _ended(process)
    _signal(process.pid, signal.SIGKILL)
    await _ended(process)


async def _ended(process: Process) -> bool:
    with anyio.move_on_after(_GRACE_S):
        # Not `process.wait()`: a grandchild that holds a pipe open would keep it waiting.
        while process.returncode is None:  # noqa: ASYNC110  # the process tells its end by this alone
            await anyio.sleep(0.01)
    return process.returncode is not None


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
