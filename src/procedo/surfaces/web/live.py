"""Telling open pages that something changed, by server-sent events. An event carries a version and no data."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Final

from starlette.responses import PlainTextResponse, Response, StreamingResponse

from procedo.ports import Store

__all__ = ["Streams"]

_MOST: Final = 100
_EACH: Final = 25
"""How many of them one person may have: nobody takes the places of all others."""
_BEAT_S: Final = 15.0
_REST_S: Final = 0.2
"""The shortest time between two versions: a store that many write to does not keep every open page busy."""
_BEATS: Final = 40
"""After that many beats a stream ends, and the browser opens another one."""


class Streams:
    """The open streams of one server. `stopping` ends them all, so that a shutdown waits for none."""

    def __init__(self, store: Store, stopping: asyncio.Event) -> None:
        self._store = store
        self._stopping = stopping
        self._open: Counter[str] = Counter()

    def stream(self, version: Callable[[], Awaitable[str | None]], whose: str) -> Response:
        """A stream of versions: one at once, then one after each change. No version (None) ends it with `bye`.

        `whose` is the identity of the person who looks.
        """
        if self._open.total() >= _MOST or self._open[whose] >= _EACH:
            return PlainTextResponse("Too many pages are open.\n", 503, {"retry-after": "30"})
        return StreamingResponse(self._events(version, whose), media_type="text/event-stream")

    async def _events(self, version: Callable[[], Awaitable[str | None]], whose: str) -> AsyncIterator[str]:
        self._open[whose] += 1
        try:
            told: str | None = None
            for _ in range(_BEATS):
                now = await version()
                if now is None:
                    yield "event: bye\ndata: logged out\n\n"
                    return
                yield f"event: version\ndata: {now}\n\n" if now != told else ": still here\n\n"
                told = now
                if await self._stopped():
                    return
        finally:
            self._open[whose] -= 1

    async def _stopped(self) -> bool:
        """Wait for a change, a beat, or the end of the server; True for the latter."""
        change = asyncio.create_task(self._store.changed(_BEAT_S))
        stop = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({change, stop}, return_when=asyncio.FIRST_COMPLETED)
            if not stop.done():
                await asyncio.wait({stop}, timeout=_REST_S)
        finally:
            for task in (change, stop):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
        return self._stopping.is_set()
