"""The verbs that only look: at runs, gates and records, each in one consistent snapshot."""

from collections.abc import Mapping

from procedo.core.altered import altered
from procedo.core.session import SessionRow, Transcript
from procedo.core.state import Status
from procedo.ports import Filter, OpenGate, Reader, Record, Store, Summary
from procedo.references import check_name, gate_of
from procedo.sopfile.library import Library
from procedo.surface import History, Surface
from procedo.transition import Snapshot, Transitions

__all__ = ["Looking"]


class Looking:
    """What there is, as one caller sees it: `store` and `library` hold nothing else."""

    def __init__(self, store: Store, library: Library, transitions: Transitions) -> None:
        self._store = store
        self._library = library
        self._transitions = transitions

    async def look(self, run_id: str) -> Snapshot:
        """A run exactly as it is stored."""
        return await self._store.read(lambda reader: self._look(reader, run_id))

    async def gate(self, reference: str) -> tuple[OpenGate, Snapshot]:
        """A gate by id or short code, and its run. Raises `NotFound`, or `Refused` for a code of several gates."""

        def work(reader: Reader) -> tuple[OpenGate, Snapshot]:
            found = gate_of(reader, reference)
            return found, self._look(reader, found.run_id)

        return await self._store.read(work)

    async def inbox(self, surface: Surface, *, mine: bool = False) -> tuple[OpenGate, ...]:
        """Every open gate, the one that waits longest first; `mine` leaves out those that the caller may not decide."""

        def work(reader: Reader) -> tuple[OpenGate, ...]:
            found = reader.open_gates()
            if not mine:
                return found
            return tuple(g for g in found if self._transitions.may_decide(reader, g, surface.principal))

        return await self._store.read(work)

    async def list(self, wanted: Filter) -> tuple[Summary, ...]:
        """Runs, most recently active first. Raises `NotFound` for a procedure that nobody knows."""

        def work(reader: Reader) -> tuple[Summary, ...]:
            found = reader.runs(wanted)
            if wanted.sop is not None and not found:
                check_name(wanted.sop, {entry.name for entry in self._library.entries()}, reader)
            return found

        return await self._store.read(work)

    async def history(self, run_id: str) -> History:
        """Everything that is known of a run."""

        def work(reader: Reader) -> History:
            snapshot = self._look(reader, run_id)
            executions, gates = reader.executions(run_id), reader.gates(run_id)
            snapshot = altered(snapshot, sessions=_sessions(reader, run_id))
            records, sessions = reader.records(run_id), reader.sessions(run_id)
            return History(snapshot, executions, gates, records, sessions, reader.children(run_id))

        return await self._store.read(work)

    async def timeline(self, run_id: str, after: int = 0, limit: int | None = None) -> tuple[Record, ...]:
        """The record of a run behind line `after`, at most so many lines. Raises `NotFound`."""

        def work(reader: Reader) -> tuple[Record, ...]:
            self._look(reader, run_id)
            return reader.records(run_id, after, limit)

        return await self._store.read(work)

    async def accounted(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with what the agents of the run and of its sub-runs have used."""
        found = await self._store.read(lambda reader: _sessions(reader, snapshot.run.id))
        return altered(snapshot, sessions=found)

    async def transcript(self, run_id: str, execution_id: str) -> Transcript | None:
        """What the agent of an execution said and did; None when it was not carried out by one. Raises `NotFound`."""

        def work(reader: Reader) -> Transcript | None:
            self._look(reader, run_id)
            return reader.session(run_id, execution_id)

        return await self._store.read(work)

    async def counts(self) -> Mapping[Status, int]:
        """How many runs have each status."""
        return await self._store.read(lambda reader: reader.counts())

    def _look(self, reader: Reader, run_id: str) -> Snapshot:
        sop, run = self._transitions.load(reader, run_id)
        return self._transitions.snapshot(reader, sop, run)


def _sessions(reader: Reader, run_id: str) -> tuple[SessionRow, ...]:
    """The sessions of a run and of everything that it started."""
    below = (row for child in reader.children(run_id) for row in _sessions(reader, child.run_id))
    return (*reader.sessions(run_id), *below)
