"""A store in which some runs exist and others do not.

Everything that the verbs know of a run they read through here. So a run that is not for a caller is not refused but
absent, with the same words as for one that never existed, and a verb that is added later is bound as well.
Admission counts every run, and names those that the caller sees.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar, cast

from procedo.core.admission import Load
from procedo.core.altered import altered
from procedo.core.events import Event
from procedo.core.notice import Telling
from procedo.core.session import SessionRow, Transcript
from procedo.core.state import Execution, Gate, Run, Status
from procedo.ports import Attribution, Filter, OpenGate, Reader, Record, Store, Summary, Writer

__all__ = ["PASSED_ON", "SeenRuns", "SeenStore"]

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
        "sops",
        "with_executions",
        "with_gate",
        "with_steps",
    }
)
"""What shows nothing of a run that the caller does not hold already. Anything not named here is absent."""


class SeenRuns(ABC):
    """A reader or writer in which only the runs exist that `_mine` knows. There is no run by omission."""

    def __init__(self, inner: Reader | Writer) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        """Pass on what is harmless. Raises `AttributeError` for everything else."""
        if name in PASSED_ON:
            return getattr(self._inner, name)
        raise AttributeError(f"{name} is not for one caller")

    @abstractmethod
    def _mine(self, run: Run) -> bool:
        """True for a run that exists here."""

    def _has(self, run_id: str) -> bool:
        return self.run(run_id) is not None

    def run(self, run_id: str) -> Run | None:
        """See `Reader.run`."""
        run = self._inner.run(run_id)
        return run if run is not None and self._mine(run) else None

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

    @abstractmethod
    def runs(self, wanted: Filter) -> tuple[Summary, ...]:
        """See `Reader.runs`."""

    @abstractmethod
    def counts(self, sop: str | None = None) -> Mapping[Status, int]:
        """See `Reader.counts`."""

    def load(self, sop: str, key: str | None, window_start: datetime | None) -> Load:
        """See `Reader.load`. It counts everybody's runs, and marks those of others as `foreign`."""
        load = self._inner.load(sop, key, window_start)
        holders = {
            *load.executing,
            *load.executing_total,
            *load.parked,
            *([load.key_holder] if load.key_holder else ()),
        }
        return altered(load, foreign=frozenset(run_id for run_id in holders if not self._has(run_id)))

    def save(self, before: Run | None, after: Run, events: Sequence[Event], who: Attribution, now: datetime) -> Run:
        """See `Writer.save`."""
        return cast("Writer", self._inner).save(before, after, events, who, now)


class SeenStore:
    """A store as one caller may see it. `seen` makes a reader or writer such that only that is there."""

    def __init__(self, store: Store, seen: Callable[[Reader | Writer], SeenRuns]) -> None:
        self._store = store
        self._seen = seen

    async def write(self, work: Callable[[Writer], T]) -> T:
        """See `Store.write`."""
        return await self._store.write(lambda writer: work(cast("Writer", self._seen(writer))))

    async def read(self, work: Callable[[Reader], T]) -> T:
        """See `Store.read`."""
        return await self._store.read(lambda reader: work(cast("Reader", self._seen(reader))))

    async def changed(self, seconds: float, *, jobs: bool = False) -> bool:
        """See `Store.changed`."""
        return await self._store.changed(seconds, jobs=jobs)

    async def close(self) -> None:
        """See `Store.close`. The store is everybody's, so it stays open."""
