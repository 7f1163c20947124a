"""Who may take a slot. Pure: the facts come from the store's own transaction, so they hold across processes.

A parked run (waiting at a gate) holds no slot. Every refusal names the limit, its value and who holds it.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from procedo.core.model import Admission, Sop
from procedo.errors import Refused

__all__ = ["Limits", "Load", "admit", "slot_objection"]


class Limits(Struct, frozen=True):
    """Limits of the workspace. `total` is the number of runs that may execute at once, over all procedures."""

    total: int = 4
    visits: int = 256
    timeout_retries: int = 2


class Load(Struct, frozen=True):
    """What stands in the store at this moment: ids of runs, oldest first.

    `executing` and `parked` are of this procedure; `executing_total` are of all of them. `window_starts`
    counts starts of this procedure inside its window; `key_holder` is the live run with the same key.
    `foreign` are those of them that the caller may not know of: they count, and no refusal names them.
    """

    executing: tuple[str, ...] = ()
    executing_total: tuple[str, ...] = ()
    parked: tuple[str, ...] = ()
    last_completed_at: datetime | None = None
    key_holder: str | None = None
    window_starts: int = 0
    foreign: frozenset[str] = frozenset()

    def named(self, holders: Sequence[str]) -> str:
        """Who holds something, for the caller to read."""
        known = [run for run in holders if run not in self.foreign]
        others = len(holders) - len(known)
        more = f"{others} {'run' if others == 1 else 'runs'} of other callers" if others else ""
        return " and ".join(part for part in (", ".join(known), more) if part) or "nobody"


def slot_objection(sop: Sop, load: Load, limits: Limits) -> str | None:
    """Why no slot is free for one more executing run, or None."""
    if len(load.executing) >= sop.max_concurrent:
        return f"max_concurrent {sop.max_concurrent} of {sop.name!r} is used by {load.named(load.executing)}"
    if len(load.executing_total) >= limits.total:
        return f"total limit {limits.total} is used by {load.named(load.executing_total)}"
    return None


def _cooldown_objection(sop: Sop, load: Load, now: datetime) -> str | None:
    if not sop.cooldown_s or load.last_completed_at is None:
        return None
    # A clock that was set back must not stretch the pause beyond its own length.
    left = min(load.last_completed_at + timedelta(seconds=sop.cooldown_s) - now, timedelta(seconds=sop.cooldown_s))
    if left <= timedelta(0):
        return None
    return f"cooldown of {sop.cooldown_s:g} s after the last completed run: {left.total_seconds():.0f} s left"


def admit(sop: Sop, load: Load, limits: Limits, now: datetime) -> str | None:
    """Decide about a start.

    Returns None when the run may begin, or the id of the live run that a coalescing procedure answers
    with. Raises `Refused` with the code `deferred` (try again later) or `dropped` (refused for good).
    Order of the rules as in ZeroClaw: cooldown, key and window, pending pool, policy.
    """
    dropping = sop.admission is Admission.DROP
    later = "" if dropping else "Try again when a slot is free."
    code = "dropped" if dropping else "deferred"
    if reason := _cooldown_objection(sop, load, now):
        raise Refused("dropped", f"{sop.name!r} is not started: {reason}.", "Start it again after that.")
    if load.key_holder in load.foreign:
        message = f"{sop.name!r} is not started: a run of another caller is live with the same key."
        raise Refused("key_in_use", message, "Start it with another key, or again when that run has ended.")
    if load.key_holder is not None:
        message = f"{sop.name!r} is not started: run {load.key_holder} is live with the same key."
        raise Refused("key_in_use", message, f"Follow that run with sop_status({load.key_holder!r}), or cancel it.")
    if sop.max_per_window and load.window_starts >= sop.max_per_window:
        message = f"max_per_window {sop.max_per_window} in {sop.window_s:g} s is used up for {sop.name!r}."
        raise Refused("window_used_up", message, "Start it again when the window has moved on.")
    if sop.max_pending_approvals and len(load.parked) >= sop.max_pending_approvals:
        limit = f"max_pending_approvals {sop.max_pending_approvals} is used by {load.named(load.parked)}"
        raise Refused(code, f"{sop.name!r} is not started: {limit}.", "Decide the open gates first.")
    live = (*load.executing, *load.parked)
    if sop.admission is Admission.COALESCE and live:
        return live[0]
    if sop.admission is Admission.HOLD and live:
        message = f"{sop.name!r} is not started: admission policy 'hold' waits for {load.named(live)}."
        raise Refused(code, message, "Start it again when that run has ended.")
    if reason := slot_objection(sop, load, limits):
        raise Refused(code, f"{sop.name!r} is not started: {reason}.", later)
    return None
