"""A store whose process dies at its n-th write: before it, or after the commit and before anybody hears of it."""

from collections.abc import Callable
from typing import TypeVar

from procedo.ports import Reader, Store, Writer

__all__ = ["Died", "MortalStore"]

T = TypeVar("T")


class Died(BaseException):
    """The process is gone. Nothing in the product catches it."""


class MortalStore:
    """Wraps a store for the life of one process."""

    def __init__(self, inner: Store, writes: int | None = None, *, after: bool = False) -> None:
        self._inner = inner
        self._left = writes
        self._after = after
        self.writes = 0
        self.dead = False

    def _die(self) -> None:
        self.dead = True
        raise Died

    async def write(self, work: Callable[[Writer], T]) -> T:
        """See `Store.write`."""
        if self.dead:
            raise Died
        last = self._left is not None and self.writes == self._left
        if last and not self._after:
            self._die()
        result = await self._inner.write(work)
        self.writes += 1
        if last:
            self._die()
        return result

    async def read(self, work: Callable[[Reader], T]) -> T:
        """See `Store.read`."""
        if self.dead:
            raise Died
        return await self._inner.read(work)

    async def changed(self, seconds: float, *, jobs: bool = False) -> bool:
        """See `Store.changed`."""
        if self.dead:
            raise Died
        return await self._inner.changed(seconds, jobs=jobs)

    async def close(self) -> None:
        """See `Store.close`. What is kept outlives the process."""
