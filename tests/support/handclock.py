"""A clock that a test moves by hand."""

from datetime import datetime, timedelta

import anyio
import anyio.lowlevel
from engine import NOW

__all__ = ["HandClock"]


class HandClock:
    """Stands still until it is moved; whoever sleeps long enough is woken then."""

    def __init__(self, now: datetime = NOW) -> None:
        self._now = now
        self._sleepers: dict[anyio.Event, tuple[datetime, float]] = {}
        self._asleep = anyio.Event()

    def now(self) -> datetime:
        return self._now

    async def sleep(self, seconds: float) -> None:
        woken = anyio.Event()
        self._sleepers[woken] = (self._now + timedelta(seconds=seconds), seconds)
        self._asleep.set()
        self._asleep = anyio.Event()
        try:
            await woken.wait()
        finally:
            self._sleepers.pop(woken, None)

    async def until_sleeping(self, seconds: float, *, asked: float | None = None) -> None:
        """Until somebody sleeps who is to be woken in so many seconds from now, and who asked for so many."""
        at = self._now + timedelta(seconds=seconds)
        with anyio.fail_after(240):
            while not any(due == at and asked in (None, wanted) for due, wanted in self._sleepers.values()):
                await self._asleep.wait()

    async def move(self, seconds: float) -> None:
        """Let time pass, and wake everybody whose time has come."""
        self._now += timedelta(seconds=seconds)
        for woken, (at, _) in tuple(self._sleepers.items()):
            if at <= self._now:
                del self._sleepers[woken]
                woken.set()
        await anyio.lowlevel.checkpoint()
