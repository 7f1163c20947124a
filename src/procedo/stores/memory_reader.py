"""What a store in memory holds, and reads of it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from datetime import datetime

from msgspec import Struct, field

from procedo.core.access import Login, Token
from procedo.core.admission import Load
from procedo.core.altered import altered
from procedo.core.notice import Telling
from procedo.core.state import Execution, Gate, Run, Status, StepState
from procedo.ports import Definition, Filter, Job, OpenGate, Record, StoredKey, Summary
from procedo.stores.head import summary_of
from procedo.stores.memory_sessions import MemorySessionReader, Sessions

__all__ = ["Contents", "Kept", "MemoryReader", "StoredJob"]


class Kept(Struct):
    """All that is kept of one run. The mappings only grow."""

    number: int
    run: Run
    executions: dict[str, Execution] = field(default_factory=dict)
    gates: dict[str, Gate] = field(default_factory=dict)
    steps: dict[int, StepState] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)


class StoredJob(Struct, frozen=True):
    """A job with its state; the same as a row of the jobs table."""

    number: int
    job: Job
    ready_at: datetime | None
    owner: str | None = None
    fence: int = 0
    done: bool = False


class Contents(Struct):
    """Everything in the store."""

    runs: dict[str, Kept] = field(default_factory=dict)
    definitions: dict[str, Definition] = field(default_factory=dict)
    keys: dict[tuple[str, str], StoredKey] = field(default_factory=dict)
    jobs: dict[str, StoredJob] = field(default_factory=dict)
    tokens: dict[str, Token] = field(default_factory=dict)
    logins: dict[str, Login] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    tellings: dict[tuple[str, str, str], Telling] = field(default_factory=dict)
    sessions: Sessions = field(default_factory=Sessions)
    numbers: int = 0


class MemoryReader(MemorySessionReader):
    """A `Reader` of the contents."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._sessions = contents.sessions

    def _live(self) -> list[Kept]:
        return [kept for kept in self._contents.runs.values() if kept.run.end is None]

    def run(self, run_id: str) -> Run | None:
        """See `Reader.run`."""
        kept = self._contents.runs.get(run_id)
        return None if kept is None else kept.run

    def with_steps(self, run: Run, steps: Iterable[int]) -> Run:
        """See `Reader.with_steps`."""
        kept = self._contents.runs.get(run.id)
        known = {} if kept is None else kept.steps
        return altered(run, steps={**run.steps, **{step: known.get(step, StepState()) for step in steps}})

    def with_executions(self, run: Run, ids: Iterable[str]) -> Run:
        """See `Reader.with_executions`."""
        kept = self._contents.runs.get(run.id)
        known = {} if kept is None else kept.executions
        found = {id_: known[id_] for id_ in ids if id_ in known}
        return altered(run, executions={**run.executions, **found, **run.executions})

    def with_gate(self, run: Run, gate_id: str) -> Run:
        """See `Reader.with_gate`."""
        kept = self._contents.runs.get(run.id)
        if kept is None or gate_id in run.gates or gate_id not in kept.gates:
            return run
        return altered(run, gates={**run.gates, gate_id: kept.gates[gate_id]})

    def _opened(self, kept: Kept, gate: Gate) -> OpenGate:
        return OpenGate(kept.run.id, kept.run.sop, kept.run.digest, gate)

    def find_gate(self, reference: str) -> tuple[OpenGate, ...]:
        """See `Reader.find_gate`."""
        wanted = reference.casefold()
        found = [
            self._opened(kept, gate)
            for kept in reversed(self._contents.runs.values())
            for gate in reversed(kept.gates.values())
            if gate.id == reference or gate.code.casefold() == wanted
        ]
        return tuple(sorted(found, key=lambda one: not one.gate.open))

    def executions(self, run_id: str) -> tuple[Execution, ...]:
        """See `Reader.executions`."""
        kept = self._contents.runs.get(run_id)
        return () if kept is None else tuple(kept.executions.values())

    def gates(self, run_id: str) -> tuple[Gate, ...]:
        """See `Reader.gates`."""
        kept = self._contents.runs.get(run_id)
        return () if kept is None else tuple(kept.gates.values())

    def open_gates(self) -> tuple[OpenGate, ...]:
        """See `Reader.open_gates`."""
        found = [self._opened(kept, gate) for kept in self._live() for gate in kept.run.open_gates]
        return tuple(sorted(found, key=lambda one: (one.gate.waiting_since, one.gate.id)))

    def runs(self, wanted: Filter) -> tuple[Summary, ...]:
        """See `Reader.runs`."""
        found = [
            summary_of(kept.run)
            for kept in reversed(self._contents.runs.values())
            if wanted.sop in (None, kept.run.sop)
            and wanted.status in (None, kept.run.status)
            and wanted.live in (None, kept.run.end is None)
        ]
        found.sort(key=lambda one: one.active_at, reverse=True)
        return tuple(found[: wanted.limit])

    def counts(self, sop: str | None = None) -> Mapping[Status, int]:
        """See `Reader.counts`."""
        counts = dict.fromkeys(Status, 0)
        for kept in self._contents.runs.values():
            if sop in (None, kept.run.sop):
                counts[kept.run.status] += 1
        return counts

    def sops(self) -> tuple[str, ...]:
        """See `Reader.sops`."""
        return tuple(sorted({kept.run.sop for kept in self._contents.runs.values()}))

    def children(self, run_id: str) -> tuple[Summary, ...]:
        """See `Reader.children`."""
        runs = (kept.run for kept in self._contents.runs.values())
        return tuple(summary_of(run) for run in runs if run.parent is not None and run.parent.run == run_id)

    def _tree(self, run_id: str) -> Set[str]:
        parents = self._parents()
        top = run_id
        while (above := parents.get(top)) in parents and above is not None:
            top = above
        found, further = {top}, {top}
        while further:
            further = {run for run, parent in parents.items() if parent in further}
            found |= further
        return found

    def _parents(self) -> Mapping[str, str | None]:
        runs = (kept.run for kept in self._contents.runs.values())
        return {run.id: None if run.parent is None else run.parent.run for run in runs}

    def load(self, sop: str, key: str | None, window_start: datetime | None) -> Load:
        """See `Reader.load`."""
        live = [kept.run for kept in self._live()]
        mine = [run for run in live if run.sop == sop]
        ends = [kept.run.end for kept in self._contents.runs.values() if kept.run.sop == sop]
        starts = [kept.run.started_at for kept in self._contents.runs.values() if kept.run.sop == sop]
        holders = [run.id for run in mine if run.key == key]
        return Load(
            executing=tuple(run.id for run in mine if run.holds_slot),
            executing_total=tuple(run.id for run in live if run.holds_slot),
            parked=tuple(run.id for run in mine if not run.holds_slot),
            last_completed_at=max((e.at for e in ends if e and e.status is Status.COMPLETED), default=None),
            key_holder=holders[0] if key is not None and holders else None,
            window_starts=0 if window_start is None else sum(start > window_start for start in starts),
        )

    def slot_waiters(self) -> tuple[str, ...]:
        """See `Reader.slot_waiters`."""
        waiting = [(kept.run.slot_since, kept.number, kept.run.id) for kept in self._live() if kept.run.slot_since]
        return tuple(run_id for _, _, run_id in sorted(waiting))

    def due_runs(self, now: datetime) -> tuple[str, ...]:
        """See `Reader.due_runs`."""
        due = [(kept.run.due_at, kept.number, kept.run.id) for kept in self._live() if kept.run.due_at]
        return tuple(run_id for at, _, run_id in sorted(due) if at <= now)

    def definition(self, digest: str) -> Definition | None:
        """See `Reader.definition`."""
        return self._contents.definitions.get(digest)

    def records(self, run_id: str, after: int = 0, limit: int | None = None) -> tuple[Record, ...]:
        """See `Reader.records`."""
        kept = self._contents.runs.get(run_id)
        if kept is None:
            return ()
        return tuple(kept.records[after : None if limit is None else after + limit])

    def run_ids(self) -> tuple[str, ...]:
        """See `Reader.run_ids`."""
        return tuple(self._contents.runs)

    def key(self, scope: str, key: str) -> StoredKey | None:
        """See `Reader.key`."""
        return self._contents.keys.get((scope, key))

    def next_job_at(self, now: datetime) -> datetime | None:
        """See `Reader.next_job_at`."""
        waiting = [stored.ready_at or now for stored in self._contents.jobs.values() if not stored.done]
        return max(now, min(waiting)) if waiting else None

    def jobs_waiting(self, now: datetime) -> Mapping[str, int]:
        """See `Reader.jobs_waiting`."""
        stored = self._contents.jobs.values()
        return Counter(one.job.kind for one in stored if not one.done and (one.ready_at or now) <= now)

    def owner(self, run_id: str) -> str | None:
        """See `Reader.owner`."""
        return self._contents.owners.get(run_id)

    def owned(self, owner: str, wanted: Filter) -> tuple[Summary, ...]:
        """See `Reader.owned`."""
        every = self.runs(altered(wanted, limit=len(self._contents.runs)))
        return tuple(one for one in every if self.owner(one.run_id) == owner)[: wanted.limit]

    def owned_counts(self, owner: str, sop: str | None = None) -> Mapping[Status, int]:
        """See `Reader.owned_counts`."""
        counts = dict.fromkeys(Status, 0)
        for kept in self._contents.runs.values():
            if sop in (None, kept.run.sop) and self.owner(kept.run.id) == owner:
                counts[kept.run.status] += 1
        return counts

    def tokens(self) -> tuple[Token, ...]:
        """See `Reader.tokens`."""
        return tuple(self._contents.tokens.values())

    def token(self, digest: str) -> Token | None:
        """See `Reader.token`."""
        return next((token for token in self.tokens() if token.digest == digest), None)

    def login(self, digest: str) -> Login | None:
        """See `Reader.login`."""
        return self._contents.logins.get(digest)

    def tellings(self, run_id: str | None = None) -> tuple[Telling, ...]:
        """See `Reader.tellings`."""
        found = self._contents.tellings.values()
        if run_id is None:
            failed = [one for one in found if one.error]
            return tuple(sorted(failed, key=lambda one: (one.at, one.gate_id, one.route)))
        own = [one for one in found if one.run_id == run_id]
        return tuple(sorted(own, key=lambda one: (one.gate_id, one.route)))
