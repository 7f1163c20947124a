"""Tells when child processes are up and when the last of them is gone, without polling."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

import anyio

BOUND_S: Final = 240


@dataclass
class Lifeline:
    """A connection that child processes hold: it tells that they are up, and that all of them are gone."""

    port: int
    _connections: asyncio.Queue[asyncio.StreamReader]
    _reader: asyncio.StreamReader | None = None

    def code(self, then: str) -> str:
        """A program that connects, does `then`, says that it is up and waits for a signal."""
        return (
            "import os, signal, socket, sys, time\n"
            f"line = socket.create_connection(('127.0.0.1', {self.port}))\n"
            f"{then}\n"
            "line.sendall(b'.')\n"
            "while True: signal.pause()\n"
        )

    async def up(self) -> None:
        async with asyncio.timeout(BOUND_S):
            self._reader = await self._connections.get()
            await self._reader.readexactly(1)

    async def was_up(self) -> bool:
        """True when a process that is gone by now had come so far as to say that it is up."""
        with anyio.move_on_after(5), suppress(asyncio.IncompleteReadError):
            await self.up()
            return True
        return False

    async def all_gone(self) -> None:
        """Returns when no process holds the connection any more."""
        assert self._reader is not None
        async with asyncio.timeout(BOUND_S):
            await self._reader.read()


@asynccontextmanager
async def lifelines() -> AsyncIterator[Lifeline]:
    """A lifeline to hand to child processes."""
    connections: asyncio.Queue[asyncio.StreamReader] = asyncio.Queue()
    writers: list[asyncio.StreamWriter] = []

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        connections.put_nowait(reader)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield Lifeline(server.sockets[0].getsockname()[1], connections)
    finally:
        server.close()
        # A connection that has just been taken is in nobody's hands yet.
        await anyio.wait_all_tasks_blocked()
        for writer in writers:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)
        await server.wait_closed()
