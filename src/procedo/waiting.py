"""How long a caller waits for what happens behind a call. Waiting changes nothing, and ending it neither."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from procedo.core import messages as m
from procedo.core.state import Run
from procedo.ports import Clock, Store
from procedo.transition import Snapshot

__all__ = ["PROGRESS_S", "Progress", "is_stop", "wait_for"]

PROGRESS_S: Final = 8.0
"""The longest silence towards a waiting caller, in seconds."""

Progress: TypeAlias = Callable[[Snapshot], Awaitable[None]]


def is_stop(snapshot: Snapshot) -> bool:
    """True when the server alone cannot take the run further: somebody outside has to act, or it has ended."""
    for action in snapshot.actions:
        if isinstance(action, m.PendingStep):
            if not action.satisfiable or snapshot.run.pause is not None:
                return True
        elif not isinstance(action, m.Delegated):
            return True
    return any(is_stop(child) for child in snapshot.children)


def _moved(snapshot: Snapshot, past: int | None) -> bool:
    if snapshot.run.end is not None:
        return True
    return is_stop(snapshot) if past is None else _revision(snapshot) > past


def _revision(snapshot: Snapshot) -> int:
    return snapshot.run.revision


def _patience(run: Run, clock: Clock, left: float) -> float:
    """How long to wait for the next change: not beyond the moment at which time alone moves the run."""
    if run.due_at is None:
        return left
    return max(0.05, min(left, (run.due_at - clock.now()).total_seconds()))


async def wait_for(
    look: Callable[[], Awaitable[Snapshot]],
    store: Store,
    clock: Clock,
    wait_s: float,
    progress: Progress | None,
    past: int | None,
) -> Snapshot:
    """Look again after every change until there is nothing left to wait for; tell progress at least every 8 s."""
    snapshot = await look()
    started = clock.now()
    while not _moved(snapshot, past):
        left = wait_s - (clock.now() - started).total_seconds()
        if left <= 0:
            break
        if progress is not None:
            await progress(snapshot)
        await store.changed(_patience(snapshot.run, clock, min(left, PROGRESS_S)))
        snapshot = await look()
    return snapshot
