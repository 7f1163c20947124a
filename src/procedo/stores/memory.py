"""A store in memory: the same rules, nothing kept. For rehearsals and tests; the product never falls back to it.

Values are frozen, so keeping them is keeping references.
"""

from collections.abc import Callable
from typing import TypeVar

from procedo.errors import StoreError
from procedo.ports import Reader, Writer
from procedo.stores.memory_reader import Contents, MemoryReader
from procedo.stores.memory_writer import MemoryWriter
from procedo.stores.watch import Watch

__all__ = ["MemoryStore"]

T = TypeVar("T")


async def _nobody() -> int:
    return 0


class MemoryStore:
    """A `Store` that forgets everything when it is closed."""

    def __init__(self) -> None:
        self._contents: Contents | None = Contents()
        self._watch = Watch(_nobody)

    def _open(self) -> Contents:
        if self._contents is None:
            raise StoreError("store_closed", "The store in memory is closed.")
        return self._contents

    async def write(self, work: Callable[[Writer], T]) -> T:
        """See `Store.write`."""
        writer = MemoryWriter(self._open())
        done = False
        try:
            result = work(writer)
            done = True
        finally:
            if not done:
                for step in reversed(writer.undo):
                    step()
        self._watch.committed(jobs=writer.put_some_jobs)
        self._watch.saw(self._watch.generation)
        return result

    async def read(self, work: Callable[[Reader], T]) -> T:
        """See `Store.read`."""
        self._watch.saw(self._watch.generation)
        return work(MemoryReader(self._open()))

    async def changed(self, seconds: float, *, jobs: bool = False) -> bool:
        """See `Store.changed`. Counts from this task's last `read` or `write`, so that nothing falls in between."""
        self._open()
        return await self._watch.changed(seconds, jobs=jobs)

    async def close(self) -> None:
        """See `Store.close`."""
        self._contents = None
