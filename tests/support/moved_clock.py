"""A time that passes only when a test says so."""

from datetime import UTC, datetime, timedelta

import anyio

__all__ = ["MovedClock"]


class MovedClock:
    """A `Clock`; whoever sleeps wakes when the time has been moved far enough."""

    def __init__(self) -> None:
        self.time = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
        self.moved = anyio.Event()

    def now(self) -> datetime:
        return self.time

    async def sleep(self, seconds: float) -> None:
        until = self.time + timedelta(seconds=seconds)
        while self.time < until:
            await self.moved.wait()

    def advance_to(self, moment: datetime) -> None:
        self.time = max(self.time, moment)
        self.moved.set()
        self.moved = anyio.Event()

    def pass_by(self, seconds: float) -> None:
        self.advance_to(self.time + timedelta(seconds=seconds))
