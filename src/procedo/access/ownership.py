"""Runs that belong to their starter: a caller sees the runs that they own, and nothing of anybody else's.

A run belongs to whoever started it through here, a sub-run to whom its parent belongs to.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import cast

from procedo.access.seen import PASSED_ON, SeenRuns, SeenStore
from procedo.core.events import Event
from procedo.core.principal import Principal
from procedo.core.state import Run, Status
from procedo.ports import Attribution, Filter, Reader, Store, Summary, Writer

__all__ = ["PASSED_ON", "OwnRuns", "OwnStore"]


class OwnRuns(SeenRuns):
    """A reader or writer in which only the runs of one owner exist."""

    def __init__(self, inner: Reader | Writer, owner: str) -> None:
        super().__init__(inner)
        self._owner = owner

    def _mine(self, run: Run | None) -> bool:
        while run is not None and run.parent is not None:
            run = self._inner.run(run.parent.run)
        return run is not None and self._inner.owner(run.id) == self._owner

    def runs(self, wanted: Filter) -> tuple[Summary, ...]:
        """See `Reader.runs`. Sub-runs are shown with their parent, not in lists."""
        return self._inner.owned(self._owner, wanted)

    def counts(self, sop: str | None = None) -> Mapping[Status, int]:
        """See `Reader.counts`."""
        return self._inner.owned_counts(self._owner, sop)

    def save(self, before: Run | None, after: Run, events: Sequence[Event], who: Attribution, now: datetime) -> Run:
        """See `Writer.save`. A run that begins here belongs to this owner."""
        saved = super().save(before, after, events, who, now)
        if before is None and after.parent is None:
            cast("Writer", self._inner).put_owner(after.id, self._owner)
        return saved


class OwnStore(SeenStore):
    """The store as one principal may see it."""

    def __init__(self, store: Store, owner: Principal) -> None:
        super().__init__(store, lambda inner: OwnRuns(inner, owner.key))
