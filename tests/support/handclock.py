"""A clock that a test moves by hand."""

from datetime import datetime, timedelta

import anyio
from engine import NOW

__all__ = ["HandClock"]


class HandClock:
    """Stands still until it is moved; whoever sleeps long enough is woken then."""

    def __init__(self, now: datetime = NOW) -> None:
        self._now = now
        self._sleepers: list[tuple[datetime, anyio.Event]] = []

    def now(self) -> datetime:
        return self._now

    async def sleep(self, seconds: float) -> None:
        woken = anyio.Event()
        self._sleepers.append((self._now + timedelta(seconds=seconds), woken))
        await woken.wait()

    async def move(self, seconds: float) -> None:
        """Let time pass, and let everybody whom that wakes work until all wait again."""
        self._now += timedelta(seconds=seconds)
        due = [one for one in self._sleepers if one[0] <= self._now]
        self._sleepers = [one for one in self._sleepers if one[0] > self._now]
        for _, woken in due:
            woken.set()
        await anyio.wait_all_tasks_blocked()
