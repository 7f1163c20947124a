"""Serving over standard input and output, and ending well: nothing lost, nothing left behind.

End of input ends with 0, SIGTERM with 143, SIGINT with 130, SIGHUP or the death of the parent process with 129.
A reader of standard input that blocks cannot be called back, so after a signal the process is left by
`os._exit`, when every call has been cancelled and the application has closed its store.
"""

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from procedo.telemetry.lines import SERVER_STARTED
from procedo.telemetry.logbook import say
from procedo.telemetry.logs import log_to_stderr
from procedo.telemetry.observing import installed_version

if TYPE_CHECKING:
    from procedo.surfaces.mcp.callers import Whole

__all__ = ["serve_stdio"]

_GRACE_S: Final = 5.0
"""How long cleaning up may take after a signal."""
_PARENT_EVERY_S: Final = 2.0
_HANGUP: Final = 1


class _Stop(Struct):
    """Whether and why the process ends. `number` is the signal, 0 while there was none."""

    number: int = 0
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    def request(self, number: int) -> None:
        """End in good order; the second request ends at once, and so does a clean-up that takes too long."""
        if self.number:
            os._exit(128 + number)
        self.number = number
        last_resort = threading.Timer(_GRACE_S, os._exit, (128 + number,))
        last_resort.daemon = True
        last_resort.start()
        self.asked.set()

    def listen(self) -> None:
        """Take the signals that ask a process to end."""
        loop = asyncio.get_running_loop()
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), lambda n, _: loop.call_soon_threadsafe(self.request, n))


async def _watch_parent(stop: _Stop) -> None:
    """A host that died cannot close our input when somebody else holds it open."""
    parent = os.getppid()
    while os.getppid() == parent:  # noqa: ASYNC110  # no event tells that a parent has died, on no platform
        await asyncio.sleep(_PARENT_EVERY_S)
    stop.request(_HANGUP)


async def _serve(opening: Callable[[], AbstractAsyncContextManager["Whole"]]) -> int:
    from procedo.surfaces.mcp.pipe import run_answering
    from procedo.surfaces.mcp.server import build_server

    stop = _Stop()
    stop.listen()
    watch = asyncio.create_task(_watch_parent(stop))
    async with opening() as app:
        idle = asyncio.Event()
        server = build_server(app, closed=idle.set)
        say(SERVER_STARTED, {"address": "stdio", "workspace": str(app.settings.root), "version": installed_version()})
        serving = asyncio.create_task(run_answering(server))
        asked = asyncio.create_task(stop.asked.wait())
        await asyncio.wait({serving, asked}, return_when=asyncio.FIRST_COMPLETED)
        if not serving.done():
            serving.cancel()
            ended = asyncio.create_task(idle.wait())
            await asyncio.wait({serving, ended}, return_when=asyncio.FIRST_COMPLETED)
    for task in (watch, asked):
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    if stop.number:
        return 128 + stop.number
    serving.result()
    return 0


async def _serve_and_leave(
    opening: Callable[[], AbstractAsyncContextManager["Whole"]], last: Callable[[], None]
) -> int:
    code = await _serve(opening)
    if code:
        last()
        logging.shutdown()
        os._exit(code)
    return code


def serve_stdio(
    opening: Callable[[], AbstractAsyncContextManager["Whole"]], *, last: Callable[[], None] = lambda: None
) -> int:
    """Serve until the client closes the connection; returns the exit code.

    `opening` opens the application with its worker, whose errors are raised before anything is served. After a
    signal this never returns: `last` is called and the process ends.
    """
    log_to_stderr()
    return asyncio.run(_serve_and_leave(opening, last))
