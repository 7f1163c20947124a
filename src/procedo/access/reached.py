"""Procedures and runs within the reach of a caller. What is beyond it does not exist: not listed, not found.

A run exists when its procedure does, and when every run that it works for exists.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from procedo.access.seen import SeenRuns, SeenStore
from procedo.core.altered import altered
from procedo.core.events import Event
from procedo.core.reach import Reaches, admits_sop
from procedo.core.state import Run, Status
from procedo.errors import Conflict, Refused
from procedo.ports import Attribution, Filter, Reader, Store, StoredKey, Summary, Writer
from procedo.runs import Runs
from procedo.sopfile.library import Entry, Library

__all__ = ["ReachedLibrary", "ReachedRuns", "ReachedStore", "reached", "within"]

_GROWTH: Final = 4


class ReachedRuns(SeenRuns):
    """A reader or writer in which only runs of procedures within a reach exist."""

    def __init__(self, inner: Reader | Writer, reach: Reaches) -> None:
        super().__init__(inner)
        self._reach = reach

    def _mine(self, run: Run | None) -> bool:
        while run is not None and admits_sop(self._reach, run.sop):
            if run.parent is None:
                return True
            run = self._inner.run(run.parent.run)
        return False

    def _listed(self, one: Summary) -> bool:
        return admits_sop(self._reach, one.sop) and (one.parent_run is None or self._has(one.parent_run))

    def run_ids(self) -> tuple[str, ...]:
        """See `Reader.run_ids`."""
        return tuple(run_id for run_id in self._inner.run_ids() if self._has(run_id))

    def runs(self, wanted: Filter) -> tuple[Summary, ...]:
        """See `Reader.runs`."""
        limit = wanted.limit
        while True:
            found = self._inner.runs(altered(wanted, limit=limit))
            mine = [one for one in found if self._listed(one)]
            if len(mine) >= wanted.limit or len(found) < limit:
                return tuple(mine[: wanted.limit])
            limit *= _GROWTH

    def children(self, run_id: str) -> tuple[Summary, ...]:
        """See `Reader.children`."""
        return tuple(one for one in super().children(run_id) if admits_sop(self._reach, one.sop))

    def counts(self, sop: str | None = None) -> Mapping[Status, int]:
        """See `Reader.counts`."""
        total = dict.fromkeys(Status, 0)
        for name in self._inner.sops() if sop is None else (sop,):
            if admits_sop(self._reach, name):
                for status, count in self._inner.counts(name).items():
                    total[status] += count
        return total

    def save(self, before: Run | None, after: Run, events: Sequence[Event], who: Attribution, now: datetime) -> Run:
        """See `Writer.save`. Raises `Refused` for a run that could not be seen here afterwards."""
        if not self._mine(after):
            raise Refused("beyond_reach", f"{after.sop!r} is beyond the limits of this caller.", "Nothing was changed.")
        return super().save(before, after, events, who, now)

    def key(self, scope: str, key: str) -> StoredKey | None:
        """See `Reader.key`. Raises `Conflict` where it was used for a run that does not exist here."""
        known = self._inner.key(scope, key)
        if known is not None and self._inner.run(known.run_id) is not None and not self._has(known.run_id):
            message = f"The idempotency key {key!r} was used before, with other arguments."
            raise Conflict("key_reused", message, "Use a new key for a new start.")
        return known


class ReachedStore(SeenStore):
    """The store as a caller with limits may see it."""

    def __init__(self, store: Store, reach: Reaches) -> None:
        super().__init__(store, lambda inner: ReachedRuns(inner, reach))


class ReachedLibrary(Library):
    """The procedures within a reach."""

    def __init__(self, whole: Library, reach: Reaches) -> None:
        super().__init__(whole.root, whole.surroundings)
        self._whole = whole
        self._reach = reach

    def could_hold(self, name: str) -> bool:
        """See `Library.could_hold`."""
        return admits_sop(self._reach, name)

    def entries(self) -> tuple[Entry, ...]:
        """See `Library.entries`."""
        return tuple(entry for entry in self._whole.entries() if admits_sop(self._reach, entry.name))


def within(runs: Runs, reach: Reaches) -> Runs:
    """The verbs for a caller with these limits."""
    if not reach:
        return runs
    return runs.over(lambda store: ReachedStore(store, reach), lambda library: reached(library, reach))


def reached(library: Library, reach: Reaches) -> Library:
    """The library as a caller with these limits may see it."""
    return ReachedLibrary(library, reach) if reach else library
