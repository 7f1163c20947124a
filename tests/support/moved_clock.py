"""A time that passes only when a test says so."""

from datetime import UTC, datetime, timedelta

import anyio

__all__ = ["MovedClock"]


class MovedClock:
    """A `Clock`; whoever sleeps wakes when the time has been moved far enough."""

    def __init__(self) -> None:
        self.time = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
        self.moved = anyio.Event()
        self._asleep: list[float] = []
        self._fell_asleep = anyio.Event()

    def now(self) -> datetime:
        return self.time

    async def sleep(self, seconds: float) -> None:
        until = self.time + timedelta(seconds=seconds)
        self._asleep.append(seconds)
        self._fell_asleep.set()
        self._fell_asleep = anyio.Event()
        try:
            while self.time < until:
                await self.moved.wait()
        finally:
            self._asleep.remove(seconds)

    async def until_sleeping(self, seconds: float) -> None:
        """Until somebody sleeps for that long."""
        while seconds not in self._asleep:
            await self._fell_asleep.wait()

    def advance_to(self, moment: datetime) -> None:
        self.time = max(self.time, moment)
        self.moved.set()
        self.moved = anyio.Event()

    def pass_by(self, seconds: float) -> None:
        self.advance_to(self.time + timedelta(seconds=seconds))
