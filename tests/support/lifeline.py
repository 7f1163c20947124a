"""Tells when child processes are up and when the last of them is gone, without polling."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass


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
        async with asyncio.timeout(30):
            self._reader = await self._connections.get()
            await self._reader.readexactly(1)

    async def all_gone(self) -> None:
        """Returns when no process holds the connection any more."""
        assert self._reader is not None
        async with asyncio.timeout(30):
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
    yield Lifeline(server.sockets[0].getsockname()[1], connections)
    for writer in writers:
        writer.close()
    server.close()
    await server.wait_closed()
