"""Noticing commits: those of this process at once, those of others by looking now and then while somebody waits."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Final, TypeAlias

__all__ = ["Watch"]

INTERVAL_S: Final = 0.15
"""How often the file is looked at while somebody waits. One look serves all who wait."""

_Generation: TypeAlias = tuple[int, int]

# What the present task has seen of which watch. A commit between its last read and its wait is no news to the
# store, but it is news to the task.
_SEEN: ContextVar[tuple[object, _Generation] | None] = ContextVar("procedo-seen", default=None)


class Watch:
    """Counts commits. `outside_version` gives a number that moves when another process commits."""

    def __init__(self, outside_version: Callable[[], Awaitable[int]]) -> None:
        self._outside_version = outside_version
        self._token = object()
        self._ours = 0  # counted in the writing thread only
        self._theirs = 0  # counted in the event loop only
        self._version: int | None = None
        self._looking = False
        self._looked_at = 0.0
        self._bell: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None

    @property
    def generation(self) -> _Generation:
        """Differs after each commit that was noticed."""
        return (self._ours, self._theirs)

    def saw(self, generation: _Generation) -> None:
        """The present task knows the store as of this generation."""
        _SEEN.set((self._token, generation))

    def committed(self) -> None:
        """Tell that this process has committed. Called in the writing thread."""
        self._ours += 1
        bell = self._bell
        if bell is None:
            return
        try:
            bell[0].call_soon_threadsafe(bell[1].set)
        except RuntimeError:
            return  # that loop is closed, so nobody waits in it

    async def look(self) -> None:
        """Find out whether another process has committed."""
        now = asyncio.get_running_loop().time()
        if self._looking or (self._version is not None and now - self._looked_at < INTERVAL_S * 0.9):
            return
        self._looking, self._looked_at = True, now
        try:
            version = await self._outside_version()
        finally:
            self._looking = False
        if self._version not in (None, version):
            self._theirs += 1
            if self._bell is not None:
                self._bell[1].set()
        self._version = version

    async def changed(self, seconds: float) -> bool:
        """Wait for a commit that the present task has not seen; False after that many seconds."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        known = _SEEN.get()
        seen = known[1] if known is not None and known[0] is self._token else self.generation
        await self.look()
        while self.generation == seen:
            left = until - loop.time()
            if left <= 0:
                return False
            await self._listen(loop, seen, min(left, INTERVAL_S))
            await self.look()
        self.saw(self.generation)
        return True

    async def _listen(self, loop: asyncio.AbstractEventLoop, seen: _Generation, seconds: float) -> None:
        if self._bell is None or self._bell[0] is not loop or self._bell[1].is_set():
            self._bell = (loop, asyncio.Event())
        bell = self._bell[1]
        # The bell hangs before the count is read, and a commit counts before it rings: none is missed.
        if self.generation != seen:
            return
        try:
            async with asyncio.timeout(seconds):
                await bell.wait()
        except TimeoutError:
            return
