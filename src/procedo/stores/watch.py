"""Noticing commits: those of this process at once, those of others by looking now and then while somebody waits.

Who carries jobs waits for commits that put some: most commits put none, and a look for nothing would cost as much
as half a transition. What others have committed is not known so exactly, and wakes everybody.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Final, NamedTuple

__all__ = ["Watch"]

INTERVAL_S: Final = 0.15
"""How often the file is looked at while somebody waits. One look serves all who wait."""


class _Generation(NamedTuple):
    """How many commits there were: of this process, of those the ones that put jobs, and of others."""

    ours: int
    jobs: int
    theirs: int

    def moved(self, since: "_Generation", *, jobs: bool) -> bool:
        """True when there is news since then: any, or only what may be of jobs."""
        mine = self.jobs != since.jobs if jobs else self.ours != since.ours
        return mine or self.theirs != since.theirs


# What the present task has seen of which watch. A commit between its last read and its wait is no news to the
# store, but it is news to the task.
_SEEN: ContextVar[tuple[object, _Generation] | None] = ContextVar("procedo-seen", default=None)


class Watch:
    """Counts commits. `outside_version` gives a number that moves when another process commits."""

    def __init__(self, outside_version: Callable[[], Awaitable[int]]) -> None:
        self._outside_version = outside_version
        self._token = object()
        self._ours = self._jobs = 0  # counted in the writing thread only
        self._theirs = 0  # counted in the event loop only
        self._version: int | None = None
        self._looking = False
        self._looked_at = 0.0
        # One for those who wait for any commit, one for those who wait for jobs.
        self._bells: dict[bool, tuple[asyncio.AbstractEventLoop, asyncio.Event]] = {}

    @property
    def generation(self) -> _Generation:
        """Differs after each commit that was noticed."""
        return _Generation(self._ours, self._jobs, self._theirs)

    def saw(self, generation: _Generation) -> None:
        """The present task knows the store as of this generation."""
        _SEEN.set((self._token, generation))

    def saw_own(self, before: _Generation, *, jobs: bool) -> None:
        """The present task knows the store as of `before`, and its own commit behind that."""
        self.saw(_Generation(before.ours + 1, before.jobs + jobs, before.theirs))

    def committed(self, *, jobs: bool) -> None:
        """Tell that this process has committed, and whether jobs were put. Called in the writing thread."""
        self._jobs += jobs
        self._ours += 1
        self._ring(jobs=False)
        if jobs:
            self._ring(jobs=True)

    def _ring(self, *, jobs: bool) -> None:
        bell = self._bells.get(jobs)
        if bell is None or bell[1].is_set():
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
            for _, bell in self._bells.values():
                bell.set()
        self._version = version

    async def changed(self, seconds: float, *, jobs: bool = False) -> bool:
        """Wait for a commit that the present task has not seen; False after that many seconds.

        With `jobs`, a commit of this process counts only if it put some.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        known = _SEEN.get()
        seen = known[1] if known is not None and known[0] is self._token else self.generation
        await self.look()
        while not self.generation.moved(seen, jobs=jobs):
            left = until - loop.time()
            if left <= 0:
                return False
            await self._listen(loop, seen, min(left, INTERVAL_S), jobs=jobs)
            await self.look()
        self.saw(self.generation)
        return True

    async def _listen(self, loop: asyncio.AbstractEventLoop, seen: _Generation, seconds: float, *, jobs: bool) -> None:
        bell = self._bells.get(jobs)
        if bell is None or bell[0] is not loop or bell[1].is_set():
            bell = self._bells[jobs] = (loop, asyncio.Event())
        # The bell hangs before the count is read, and a commit counts before it rings: none is missed.
        if self.generation.moved(seen, jobs=jobs):
            return
        try:
            async with asyncio.timeout(seconds):
                await bell[1].wait()
        except TimeoutError:
            return
