"""One thread that does one piece of work after the other.

A whole transaction runs in it as one function, so it costs one hop there and one back. The standard executor
does the same at twice the price, which would be a third of a transition.
"""

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeAlias, TypeVar

__all__ = ["Lane"]

T = TypeVar("T")
_Outcome: TypeAlias = tuple[Any, BaseException | None]
_Item: TypeAlias = tuple[Callable[[], Any], "asyncio.Future[_Outcome]", asyncio.AbstractEventLoop]


def _deliver(future: "asyncio.Future[_Outcome]", outcome: _Outcome) -> None:
    if not future.done():
        future.set_result(outcome)


class Lane:
    """A thread of its own. Work that was not begun when its caller is cancelled is never begun."""

    def __init__(self, name: str) -> None:
        self._queue: SimpleQueue[_Item | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work_off, name=name, daemon=True)
        self._thread.start()

    async def run(self, work: Callable[[], T]) -> T:
        """What `work` returns or raises in the lane's thread.

        A caller that is cancelled while it runs does not stop it and does not learn how it ended.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_Outcome] = loop.create_future()
        self._queue.put((work, future, loop))
        value, error = await future
        if error is not None:
            try:
                raise error
            finally:
                del error  # the error refers to this frame, and this frame would refer to the error
        return value  # type: ignore[no-any-return]  # it is what `work` returned

    def stop(self) -> None:
        """End the thread after the work that is already in its queue. Waits for nothing."""
        self._queue.put(None)

    def _work_off(self) -> None:
        while (item := self._queue.get()) is not None:
            work, future, loop = item
            if not future.cancelled():
                self._perform(work, future, loop)
            del item, work, future, loop

    def _perform(
        self, work: Callable[[], Any], future: "asyncio.Future[_Outcome]", loop: asyncio.AbstractEventLoop
    ) -> None:
        outcome: _Outcome
        try:
            outcome = (work(), None)
        except BaseException as error:  # noqa: BLE001  # whatever it is, it is the caller's and is raised there
            outcome = (None, error)
        try:
            loop.call_soon_threadsafe(_deliver, future, outcome)
        except RuntimeError:
            # The caller's loop is closed: nobody is left to be told.
            return
