"""One child process in its own session and process group, with bounded output, that never outlives its caller.

Whatever way `run` is left, by an end, a deadline, a cancellation or an error, the whole group is gone.
A program that starts a session of its own leaves the group and cannot be followed; nothing here promises that.
"""

import asyncio
import codecs
import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import anyio
from msgspec import Struct

__all__ = ["GRACE_S", "Ending", "run"]

GRACE_S: Final = 1.0
"""Seconds between the polite signal and the final one, and for outputs that stay open behind the program's end."""


class Ending(Struct, frozen=True):
    """How a process ended: by itself or `in_time` False. `code` is negative for a signal.

    `cut` names the outputs of which only the beginning was kept.
    """

    code: int
    stdout: str
    stderr: str
    cut: tuple[str, ...] = ()
    in_time: bool = True


class _Outputs(asyncio.SubprocessProtocol):
    """Keeps the beginning of both outputs; the rest is read and dropped, so that the program is not blocked."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = {1: bytearray(), 2: bytearray()}
        self._cut: set[int] = set()
        self._open = {1, 2}
        self.ended = asyncio.Event()
        self.closed = asyncio.Event()

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        kept = self._kept[fd]
        piece = data.encode() if isinstance(data, str) else data
        room = self._limit - len(kept)
        kept += piece[:room]
        if len(piece) > room:
            self._cut.add(fd)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio's signature
        self._open.discard(fd)
        if not self._open:
            self.closed.set()

    def process_exited(self) -> None:
        self.ended.set()

    def text(self, fd: int) -> str:
        """The kept output; a character that the limit cut through is left out, other stray bytes become U+FFFD."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        return decoder.decode(bytes(self._kept[fd]), final=fd not in self._cut)

    @property
    def cut(self) -> tuple[str, ...]:
        return tuple(name for fd, name in ((1, "stdout"), (2, "stderr")) if fd in self._cut)


async def run(
    argv: Sequence[str], *, stdin: bytes, cwd: Path, env: Mapping[str, str], timeout_s: float, limit: int
) -> Ending:
    """Run a program to its end, or stop it at the deadline.

    `argv[0]` is a path; `limit` bounds each output in bytes. Raises `OSError` or `ValueError` when it
    cannot be started; then nothing ran.
    """
    loop = asyncio.get_running_loop()
    starting = asyncio.ensure_future(
        loop.subprocess_exec(
            lambda: _Outputs(limit),
            *argv,
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=dict(env),
            start_new_session=True,
        )
    )
    try:
        transport, outputs = await asyncio.shield(starting)
    except asyncio.CancelledError:
        # The start is short and cannot be taken back half way: finish it, then end what it started.
        with contextlib.suppress(OSError, ValueError), anyio.CancelScope(shield=True):
            transport, outputs = await starting
            await _end(transport, outputs)
        raise
    in_time = True
    try:
        _feed(transport, stdin)
        async with asyncio.timeout(timeout_s):
            await outputs.ended.wait()
    except TimeoutError:
        in_time = outputs.ended.is_set()
    finally:
        # A cancelled scope would cancel every wait in here too; each of them is bounded.
        with anyio.CancelScope(shield=True):
            await _end(transport, outputs)
    code = transport.get_returncode()
    return Ending(-signal.SIGKILL if code is None else code, outputs.text(1), outputs.text(2), outputs.cut, in_time)


def _feed(transport: asyncio.SubprocessTransport, stdin: bytes) -> None:
    pipe = transport.get_pipe_transport(0)
    if isinstance(pipe, asyncio.WriteTransport):
        pipe.write(stdin)
        pipe.write_eof()


async def _end(transport: asyncio.SubprocessTransport, outputs: _Outputs) -> None:
    """Leave nothing behind: TERM and, after a grace, KILL for the program; KILL for what it left in its group."""
    group = transport.get_pid()
    try:
        if not outputs.ended.is_set():
            _signal(group, signal.SIGTERM)
            await _within_grace(outputs.ended)
    finally:
        # Also when a second cancellation cuts the grace short.
        _signal(group, signal.SIGKILL)
        try:
            await _within_grace(outputs.ended)
            await _within_grace(outputs.closed)
        finally:
            transport.close()


async def _within_grace(event: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(GRACE_S):
            await event.wait()


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
