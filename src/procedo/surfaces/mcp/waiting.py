"""Waiting inside a call: bounded, with progress, and without the work depending on it.

The work is done elsewhere and is committed elsewhere. A call that is dropped ends its own wait and nothing else.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from mcp.server.mcpserver import Context

from procedo.core import messages as m
from procedo.core.altered import altered
from procedo.runs import Snapshot, Surface
from procedo.surfaces.mcp.callers import engine
from procedo.surfaces.text import line
from procedo.waiting import is_stop

__all__ = ["DEFAULT_WAIT_S", "LONGEST_WAIT_S", "settled", "telling"]

DEFAULT_WAIT_S: Final = 20.0
LONGEST_WAIT_S: Final = 45.0
"""Hosts give up on silent calls after a minute; none of ours lasts that long."""


def _words(snapshot: Snapshot) -> str:
    number = len(snapshot.sop.steps)
    for action in snapshot.actions:
        if isinstance(action, m.Delegated):
            return line(f"step {action.step.number} of {number}: {action.step.title}", 120)
        if isinstance(action, m.PendingStep):
            return line(f"step {action.step} of {number}: {action.reason}", 120)
    return str(snapshot.run.status)


def telling(ctx: Context) -> Callable[[Snapshot], Awaitable[None]]:
    """A callback that tells the waiting client how the run stands; its count only grows."""
    count = 0

    async def tell(snapshot: Snapshot) -> None:
        nonlocal count
        count += 1
        await ctx.report_progress(count, None, _words(snapshot))

    return tell


async def settled(ctx: Context, snapshot: Snapshot, surface: Surface, wait_s: float) -> Snapshot:
    """The run when the caller or a person has something to do, when it has ended, or after `wait_s` seconds.

    Once the server is to stop, it is the run as it is then.
    """
    app = engine(ctx)
    if wait_s <= 0 or is_stop(snapshot):
        return snapshot
    waiting = asyncio.ensure_future(app.runs.wait(snapshot.run.id, surface, wait_s, telling(ctx)))
    stopping = asyncio.ensure_future(app.stopping.wait())
    try:
        await asyncio.wait({waiting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        later = waiting.result() if waiting.done() else await app.runs.state(snapshot.run.id, surface)
    finally:
        for task in (waiting, stopping):
            task.cancel()
        await asyncio.wait({waiting, stopping})
    return altered(later, replayed=snapshot.replayed, coalesced=snapshot.coalesced)
