"""What the engine room needs of the outside, as Protocols. No implementation lives here.

A store gives two things: `write` runs a function inside one immediate transaction, `read` inside one
consistent snapshot. The function is synchronous and short, so that no transaction is ever open across
a wait, and a caller cannot forget to commit or to roll back.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Protocol, TypeVar

from msgspec import Struct

from procedo.capability import Capabilities, Capability, CapabilityCall, OutcomeUnknown
from procedo.core.access import Login, Token
from procedo.core.admission import Load
from procedo.core.messages import Event
from procedo.core.model import Json
from procedo.core.notice import Telling
from procedo.core.session import CallRow, Message, SessionRow, Transcript, TurnRow
from procedo.core.state import Execution, Gate, Run, Status
from procedo.listing import Filter, Summary

__all__ = [
    "Attribution",
    "Capabilities",
    "Capability",
    "CapabilityCall",
    "Carrier",
    "Claim",
    "Clock",
    "Definition",
    "Filter",
    "Ids",
    "Job",
    "Notice",
    "Notifier",
    "OpenGate",
    "OutcomeUnknown",
    "Reader",
    "Record",
    "Store",
    "StoredKey",
    "Summary",
    "Undelivered",
    "Writer",
]

T = TypeVar("T")


class Clock(Protocol):
    """Time as an argument."""

    def now(self) -> datetime:
        """The present moment, in UTC."""

    async def sleep(self, seconds: float) -> None:
        """Wait that long."""


class Ids(Protocol):
    """Identity as an argument."""

    def run_id(self) -> str:
        """A new unguessable run id (128 random bits)."""

    def marker(self) -> str:
        """A new random marker for framing foreign text."""


class Attribution(Struct, frozen=True):
    """Who stands behind a transition: acting, delegating and root principal keys; `command` is not recorded."""

    acting: str
    delegating: str
    root: str
    command: str = ""


class Definition(Struct, frozen=True):
    """A procedure's files as they were when a run started, by relative name."""

    digest: str
    name: str
    files: Mapping[str, str]


class Record(Struct, frozen=True):
    """One line of the audit record. `hash` covers everything before it in its run."""

    run_id: str
    seq: int
    revision: int
    at: datetime
    kind: str
    data: Json
    acting: str
    delegating: str
    root: str
    execution_id: str | None
    hash: str


class Job(Struct, frozen=True):
    """An effect: something that has to happen outside a transition. The same id is emitted once only.

    `subject` is an execution or gate id. It becomes due at `due_at` (None: at once).
    """

    id: str
    kind: str
    run_id: str
    subject: str = ""
    due_at: datetime | None = None
    payload: Json = None


class Claim(Struct, frozen=True):
    """A worker's claim on a job until `until`. `fence` grows with each claim; only the newest one counts."""

    job: Job
    fence: int
    until: datetime
    attempts: int


class StoredKey(Struct, frozen=True):
    """An idempotency key: the digest of the arguments it came with, and the run it made."""

    scope: str
    key: str
    digest: str
    run_id: str


class OpenGate(Struct, frozen=True):
    """An undecided gate with the run it belongs to."""

    run_id: str
    sop: str
    digest: str
    gate: Gate


class Reader(Protocol):
    """Reads inside one snapshot."""

    def run(self, run_id: str) -> Run | None:
        """A run with everything that is open in it, without step states."""

    def with_steps(self, run: Run, steps: Iterable[int]) -> Run:
        """The run with the states (and last good outputs) of these steps; a step never visited gets an empty state."""

    def with_executions(self, run: Run, ids: Iterable[str]) -> Run:
        """The run with these executions, closed ones included; an id that does not exist is left out."""

    def with_gate(self, run: Run, gate_id: str) -> Run:
        """The run with this gate, decided or not, when it exists."""

    def find_gate(self, reference: str) -> tuple[OpenGate, ...]:
        """Gates, decided ones included, whose id or short code is `reference`; open ones first."""

    def executions(self, run_id: str) -> tuple[Execution, ...]:
        """Every execution of a run in the order of opening."""

    def gates(self, run_id: str) -> tuple[Gate, ...]:
        """Every gate of a run in the order of opening."""

    def open_gates(self) -> tuple[OpenGate, ...]:
        """Every undecided gate, the one that waits longest first."""

    def runs(self, wanted: Filter) -> tuple[Summary, ...]:
        """Runs, the most recently active first."""

    def counts(self, sop: str | None = None) -> Mapping[Status, int]:
        """How many runs have each status."""

    def sops(self) -> tuple[str, ...]:
        """The names of all procedures that have runs."""

    def children(self, run_id: str) -> tuple[Summary, ...]:
        """Runs that work for executions of this run."""

    def load(self, sop: str, key: str | None, window_start: datetime | None) -> Load:
        """The facts that admission decides on."""

    def slot_waiters(self) -> tuple[str, ...]:
        """Ids of live runs that wait for a slot, the one that waits longest first."""

    def due_runs(self, now: datetime) -> tuple[str, ...]:
        """Ids of live runs that time alone changes now."""

    def definition(self, digest: str) -> Definition | None:
        """The files of a pinned procedure."""

    def records(self, run_id: str, after: int = 0, limit: int | None = None) -> tuple[Record, ...]:
        """Audit records of a run with a number greater than `after`, in order."""

    def run_ids(self) -> tuple[str, ...]:
        """Every run, oldest first."""

    def key(self, scope: str, key: str) -> StoredKey | None:
        """A known idempotency key."""

    def next_job_at(self, now: datetime) -> datetime | None:
        """When the next job becomes claimable: due, and its claim (if any) run out."""

    def jobs_waiting(self, now: datetime) -> Mapping[str, int]:
        """How many jobs of each kind are claimable now: due, and held by nobody."""

    def owner(self, run_id: str) -> str | None:
        """The principal key of whom a run belongs to; None for one that belongs to this server's operators."""

    def owned(self, owner: str, wanted: Filter) -> tuple[Summary, ...]:
        """Runs of one owner, the most recently active first."""

    def owned_counts(self, owner: str, sop: str | None = None) -> Mapping[Status, int]:
        """How many runs of one owner have each status."""

    def tokens(self) -> tuple[Token, ...]:
        """Every token, ended ones included, the oldest first."""

    def token(self, digest: str) -> Token | None:
        """The token whose secret has this digest, also when it has ended."""

    def session(self, run_id: str, execution_id: str) -> Transcript | None:
        """The session of an execution with everything in it."""

    def sessions(self, run_id: str) -> tuple[SessionRow, ...]:
        """The heads of all sessions of a run, oldest first."""

    def used_in_tree(self, run_id: str) -> tuple[int, Decimal]:
        """Tokens and USD of the sessions of a run, of every run above it, and of all that those have started."""

    def spent_since(self, agent: str, since: datetime) -> tuple[Decimal, int]:
        """What an agent's model turns have cost since then in USD, and how many of them have no known cost."""

    def tellings(self, run_id: str | None = None) -> tuple[Telling, ...]:
        """What became of telling people about a run's gates; without a run, every telling that failed so far."""

    def login(self, digest: str) -> Login | None:
        """The login whose secret has this digest, also when it has expired."""


class Writer(Reader, Protocol):
    """Reads and writes inside one immediate transaction."""

    def save(self, before: Run | None, after: Run, events: Sequence[Event], who: Attribution, now: datetime) -> Run:
        """Write events and projection together; returns the run with its new hash.

        `after.revision` must be one more than the stored revision (1 for a new run), else `Conflict`;
        a run that has ended never changes. Rows that did not change between `before` and `after` are not written.
        """

    def put_definition(self, definition: Definition) -> None:
        """Keep a procedure's files; the same digest again changes nothing."""

    def put_key(self, key: StoredKey) -> None:
        """Remember an idempotency key."""

    def put_owner(self, run_id: str, owner: str) -> None:
        """Let a run belong to a principal key, for ever."""

    def put_token(self, token: Token) -> None:
        """Keep a token; of one that is known, only `revoked_at` changes."""

    def put_login(self, login: Login) -> None:
        """Keep a login, and forget those that expired before it was made."""

    def drop_login(self, digest: str) -> None:
        """Forget a login."""

    def put_session(
        self,
        row: SessionRow,
        messages: Sequence[Message] = (),
        turns: Sequence[TurnRow] = (),
        calls: Sequence[CallRow] = (),
    ) -> None:
        """Write the head of a session with rows of it; a turn or call that is known is replaced.

        Raises `Conflict` when the session was begun under a newer claim than `row.fence`.
        """

    def end_session(self, run_id: str, execution_id: str, reason: str, at: datetime) -> None:
        """End a session as cancelled that has no end of its own, with calls that run as interrupted.

        Nobody writes to it any more.
        """

    def put_telling(self, telling: Telling) -> None:
        """Keep what became of telling a route about a gate, in place of what was kept for both before."""

    def take_action(self, agent: str, call: str, limit: int, since: datetime, now: datetime) -> bool:
        """Count one action of an agent unless `limit` are counted since then; the same call is counted once."""

    def put_jobs(self, jobs: Sequence[Job]) -> None:
        """Add jobs of the embedded carrier; an id that was ever added changes nothing."""

    def claim_job(self, owner: str, now: datetime, until: datetime) -> Claim | None:
        """Claim the job that has been due longest and that nobody holds; its fence grows by one."""

    def renew_job(self, claim: Claim, now: datetime, until: datetime) -> bool:
        """Prolong a claim; False when it is no longer the newest, or the job is gone."""

    def finish_job(self, claim: Claim) -> bool:
        """Mark a job as done; False when the claim is no longer the newest."""

    def postpone_job(self, claim: Claim, due_at: datetime) -> bool:
        """Give a job back until `due_at`; False when the claim is no longer the newest."""

    def prune(self, ended_before: datetime) -> int:
        """Delete runs that ended before, with their records; returns how many.

        A sub-run stays as long as a run above it: what it used counts there.
        """

    def touch(self) -> None:
        """Change what belongs to no run and no record, so that this transaction has something to commit."""


class Store(Protocol):
    """The only truth."""

    async def write(self, work: Callable[[Writer], T]) -> T:
        """Run `work` in one immediate transaction: commits when it returns, rolls back when it raises.

        Raises `StoreError` when the record cannot be kept.
        """

    async def read(self, work: Callable[[Reader], T]) -> T:
        """Run `work` on one consistent snapshot."""

    async def changed(self, seconds: float, *, jobs: bool = False) -> bool:
        """Wait until anybody, in any process, has committed; False after that many seconds.

        With `jobs`, commits that are known to have put no job, and to have given none back, do not count.
        """

    async def close(self) -> None:
        """Close the store; later calls raise `StoreError`."""


class Carrier(Protocol):
    """Carries effects, at least once. Whatever it does comes back as an idempotent command with its fence."""

    async def install(self) -> None:
        """Prepare what the carrier needs."""

    def emit(self, writer: Writer, jobs: Sequence[Job]) -> None:
        """Hand over jobs inside our own transaction."""

    async def run_worker(self, perform: Callable[[Claim], Awaitable[None]]) -> None:
        """Claim and perform jobs until cancelled; an error of one job never ends the worker."""


class Notice(Struct, frozen=True):
    """Something that people are told. `id` is the same when it is delivered again; `text` says it for people."""

    id: str
    route: str
    at: datetime
    title: str
    text: str
    data: Json


class Undelivered(Exception):
    """Raised by a notifier: the notice did not reach its place, or that is not known. Says why, without secrets."""


class Notifier(Protocol):
    """Tells people who are not at any door of ours."""

    def objections(self) -> Mapping[str, str]:
        """Routes over which nothing can be delivered as things stand, and why."""

    async def deliver(self, notice: Notice) -> None:
        """Deliver a notice over its route. Raises `Undelivered`."""
