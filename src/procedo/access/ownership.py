"""A store in which a caller sees the runs that they own, and nothing of anybody else's.

Everything that the verbs know of a run they read through here. So another principal's run is not refused but
absent, with the same words as for one that never existed, and a verb that is added later is bound as well.
A run belongs to whoever started it through here, a sub-run to whom its parent belongs to. Admission counts
every run, whoever owns it, and names the caller's own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, TypeVar, cast

from procedo.core.admission import Load
from procedo.core.events import Event
from procedo.core.notice import Telling
from procedo.core.principal import Principal
from procedo.core.session import SessionRow, Transcript
from procedo.core.state import Execution, Gate, Run, Status
from procedo.ports import Attribution, Filter, OpenGate, Reader, Record, Store, Summary, Writer

__all__ = ["PASSED_ON", "OwnRuns", "OwnStore"]

T = TypeVar("T")

PASSED_ON: Final = frozenset(
    {
        "definition",
        "end_session",
        "key",
        "put_definition",
        "put_jobs",
        "put_key",
        "slot_waiters",
        "with_executions",
        "with_gate",
        "with_steps",
    }
)
"""What shows nothing of a run that the caller does not hold already. Anything not named here is absent."""


class OwnRuns:
    """A reader or writer in which only the runs of one owner exist."""

    def __init__(self, inner: Reader | Writer, owner: str) -> None:
        self._inner = inner
        self._owner = owner

    def __getattr__(self, name: str) -> Any:
        """Pass on what is harmless. Raises `AttributeError` for everything else."""
        if name in PASSED_ON:
            return getattr(self._inner, name)
        raise AttributeError(f"{name} is not for one owner")

    def _mine(self, run: Run | None) -> bool:
        while run is not None and run.parent is not None:
            run = self._inner.run(run.parent.run)
        return run is not None and self._inner.owner(run.id) == self._owner

    def _has(self, run_id: str) -> bool:
        return self._mine(self._inner.run(run_id))

    def run(self, run_id: str) -> Run | None:
        """See `Reader.run`."""
        run = self._inner.run(run_id)
        return run if self._mine(run) else None

    def find_gate(self, reference: str) -> tuple[OpenGate, ...]:
        """See `Reader.find_gate`."""
        return tuple(found for found in self._inner.find_gate(reference) if self._has(found.run_id))

    def open_gates(self) -> tuple[OpenGate, ...]:
        """See `Reader.open_gates`."""
        return tuple(found for found in self._inner.open_gates() if self._has(found.run_id))

    def executions(self, run_id: str) -> tuple[Execution, ...]:
        """See `Reader.executions`."""
        return self._inner.executions(run_id) if self._has(run_id) else ()

    def gates(self, run_id: str) -> tuple[Gate, ...]:
        """See `Reader.gates`."""
        return self._inner.gates(run_id) if self._has(run_id) else ()

    def records(self, run_id: str, after: int = 0, limit: int | None = None) -> tuple[Record, ...]:
        """See `Reader.records`."""
        return self._inner.records(run_id, after, limit) if self._has(run_id) else ()

    def tellings(self, run_id: str | None = None) -> tuple[Telling, ...]:
        """See `Reader.tellings`. Those of every run are for operators."""
        return self._inner.tellings(run_id) if run_id is not None and self._has(run_id) else ()

    def children(self, run_id: str) -> tuple[Summary, ...]:
        """See `Reader.children`."""
        return self._inner.children(run_id) if self._has(run_id) else ()

    def session(self, run_id: str, execution_id: str) -> Transcript | None:
        """See `Reader.session`."""
        return self._inner.session(run_id, execution_id) if self._has(run_id) else None

    def sessions(self, run_id: str) -> tuple[SessionRow, ...]:
        """See `Reader.sessions`."""
        return self._inner.sessions(run_id) if self._has(run_id) else ()

    def runs(self, wanted: Filter) -> tuple[Summary, ...]:
        """See `Reader.runs`. Sub-runs are shown with their parent, not in lists."""
        return self._inner.owned(self._owner, wanted)

    def counts(self, sop: str | None = None) -> Mapping[Status, int]:
        """See `Reader.counts`."""
        return self._inner.owned_counts(self._owner, sop)

    def load(self, sop: str, key: str | None, window_start: datetime | None) -> Load:
        """See `Reader.load`. It counts everybody's runs, and marks those of others as `foreign`."""
        load = self._inner.load(sop, key, window_start)
        holders = {
            *load.executing,
            *load.executing_total,
            *load.parked,
            *([load.key_holder] if load.key_holder else ()),
        }
        return replace(load, foreign=frozenset(run_id for run_id in holders if not self._has(run_id)))

    def save(self, before: Run | None, after: Run, events: Sequence[Event], who: Attribution, now: datetime) -> Run:
        """See `Writer.save`. A run that begins here belongs to this owner."""
        writer = cast("Writer", self._inner)
        saved = writer.save(before, after, events, who, now)
        if before is None and after.parent is None:
            writer.put_owner(after.id, self._owner)
        return saved


class OwnStore:
    """The store as one principal may see it."""

    def __init__(self, store: Store, owner: Principal) -> None:
        self._store = store
        self._owner = owner.key

    async def write(self, work: Callable[[Writer], T]) -> T:
        """See `Store.write`."""
        return await self._store.write(lambda writer: work(cast("Writer", OwnRuns(writer, self._owner))))

    async def read(self, work: Callable[[Reader], T]) -> T:
        """See `Store.read`."""
        return await self._store.read(lambda reader: work(cast("Reader", OwnRuns(reader, self._owner))))

    async def changed(self, seconds: float) -> bool:
        """See `Store.changed`."""
        return await self._store.changed(seconds)

    async def close(self) -> None:
        """See `Store.close`. The store is everybody's, so it stays open."""
