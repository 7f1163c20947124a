"""What a run is at one moment: frozen values, changed only by `evolve`.

A run is a set of things under way, so forks and joins are ordinary: open executions, open gates,
arrivals that wait for dependencies, and dispatches held back by a pause or a full slot. The status is
derived from them and stored nowhere in here. A run that was loaded for one command holds only the
step states and outputs which that command can need; reading another one is a `KeyError`, never a guess.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from procedo.core.model import EMPTY, Json, Mode, Scope
from procedo.core.principal import Principal, PrincipalKind, Source

__all__ = [
    "Arrival",
    "Closing",
    "End",
    "Execution",
    "Fan",
    "Gate",
    "GateKind",
    "Held",
    "Parent",
    "Pause",
    "Pending",
    "Performer",
    "Phase",
    "Principal",
    "PrincipalKind",
    "Run",
    "Source",
    "Status",
    "StepState",
    "Verdict",
    "Vote",
]


class Status(StrEnum):
    """The status of a run. The last three are final."""

    RUNNING = "running"
    WAITING_APPROVAL = "waiting_approval"
    PAUSED_CHECKPOINT = "paused_checkpoint"
    PENDING = "pending"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        """True when nothing can move the run any more."""
        return self in _FINAL


_FINAL: Final = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})


class Performer(StrEnum):
    """Who does the work of an execution."""

    HOST = "host"
    PROGRAM = "program"
    AGENT = "agent"
    SERVER = "server"
    CHILD = "child"
    TIMER = "timer"


class Phase(StrEnum):
    """Where an execution stands. The last four are closed."""

    OPEN = "open"
    VERIFYING = "verifying"
    HALTED = "halted"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"

    @property
    def closed(self) -> bool:
        """True when the execution has its result."""
        return self in _CLOSED


_CLOSED: Final = frozenset({Phase.COMPLETED, Phase.FAILED, Phase.SKIPPED, Phase.CANCELLED})


@dataclass(frozen=True, slots=True)
class Arrival:
    """Why a step is dispatched, and with what.

    `sources` are the executions whose outputs are its input; empty means the run's inputs, several mean
    an object keyed by step number. `attempt` counts from 1 within one visit; `reason` is why the
    attempt before it failed; `item` is the index in a `for_each`; `guidance` comes from a revise, and
    `redraft` is the gate that the new draft is for.
    """

    step: int
    sources: tuple[str, ...] = ()
    attempt: int = 1
    reason: str = ""
    item: int | None = None
    guidance: str = ""
    redraft: str = ""


@dataclass(frozen=True, slots=True)
class Closing:
    """How an execution ended: by whom, when, with what. `digest` identifies the report for replays."""

    at: datetime
    by: str
    digest: str
    output: Json = None
    reason: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Execution:
    """One attempt of one step. `id` is `<step>.<n>`; `fence` is the number of the claim that last began its effect."""

    id: str
    arrival: Arrival
    performer: Performer
    agent: str
    opened_at: datetime
    phase: Phase = Phase.OPEN
    due_at: datetime | None = None
    input: Json = None
    fence: int = 0
    effect_started: bool = False
    claimed: Json = None
    claim_digest: str = ""
    claim_by: str = ""
    closing: Closing | None = None

    @property
    def step(self) -> int:
        """The number of its step."""
        return self.arrival.step


class GateKind(StrEnum):
    """What a gate asks about. One kind of thing, one inbox."""

    APPROVAL = "approval"
    CHECKPOINT = "checkpoint"
    TOOL_CALL = "tool_call"
    INTERRUPTED = "interrupted"
    VERIFY = "verify"
    TIMEOUT = "timeout"


class Verdict(StrEnum):
    """What a principal may answer at a gate; each kind of gate takes some of them (`approval.ANSWERS`)."""

    APPROVE = "approve"
    DENY = "deny"
    AMEND = "amend"
    REVISE = "revise"
    REPEAT = "repeat"
    SKIP = "skip"
    FAIL = "fail"
    RETRACT = "retract"


@dataclass(frozen=True, slots=True)
class Vote:
    """One principal's answer while a quorum is not reached. `digest` is of the value that it is for."""

    identity: str
    principal: Principal
    verdict: Verdict
    digest: str
    at: datetime
    value: Json = None
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Gate:
    """A decision that a principal must take.

    `content` is what is being approved and `digest` its hash; `revision` counts presentations.
    `execution` is set when the gate concerns an execution that is under way, and `call` names the tool call
    inside its session. `draft` is the execution of a model that made the content, when it can be asked for
    another one, and `redrafting` tells that it is at it. `value` is the amended value of a decided gate.
    `own_limit`: it has a limit of its own beside its policy's, at whose end it is denied. `lasting` extends a
    decision about a tool call to the same call later in the session.
    """

    id: str
    code: str
    kind: GateKind
    arrival: Arrival
    prompt: str
    content: Json
    digest: str
    opened_at: datetime
    waiting_since: datetime
    policy: str | None = None
    execution: str | None = None
    call: str = ""
    revision: int = 1
    due_at: datetime | None = None
    own_limit: bool = False
    reminders: int = 0
    draft: str = ""
    revises: int = 0
    redrafting: bool = False
    votes: tuple[Vote, ...] = ()
    verdict: Verdict | None = None
    decided_by: Principal | None = None
    decided_at: datetime | None = None
    comment: str = ""
    value: Json = None
    value_digest: str = ""
    lasting: bool = False
    expired: bool = False
    withdrawn: str = ""

    @property
    def live(self) -> bool:
        """True until it is answered or withdrawn."""
        return self.verdict is None and not self.withdrawn

    @property
    def open(self) -> bool:
        """True while an answer is taken: it is live, and no new draft is being made."""
        return self.live and not self.redrafting

    @property
    def step(self) -> int:
        """The number of the step that it guards."""
        return self.arrival.step


@dataclass(frozen=True, slots=True)
class Pending:
    """An arrival that cannot be dispatched yet: dependencies are missing, or its back-off lasts until `due_at`."""

    arrival: Arrival
    missing: tuple[int, ...] = ()
    due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """A dispatch held back by an operator's pause or because no slot is free. `approved`: its gate is passed."""

    arrival: Arrival
    approved: bool = False


@dataclass(frozen=True, slots=True)
class Fan:
    """A `for_each` under way: its items, the next one to open, and the finished execution of each index."""

    arrival: Arrival
    items: tuple[Json, ...]
    following: int = 0
    done: Mapping[int, str] = field(default_factory=dict)
    outputs: Mapping[int, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepState:
    """What the run knows about one step: how often it was visited and executed, and its last good output.

    `output` is that of `completed`; `opened_seq` and `completed_seq` are event numbers, by which a join
    tells a fresh result from one of an earlier round.
    """

    visits: int = 0
    executions: int = 0
    completed: str | None = None
    output: Json = None
    opened_seq: int = 0
    completed_seq: int = 0


@dataclass(frozen=True, slots=True)
class Pause:
    """An operator's pause."""

    by: str
    at: datetime
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Parent:
    """The execution of another run for which this run works."""

    run: str
    execution: str
    depth: int


@dataclass(frozen=True, slots=True)
class End:
    """How the run ended. `denied` marks a cancellation that was a denial at a gate."""

    status: Status
    at: datetime
    by: str
    output: Json = None
    reason: str = ""
    denied: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of a procedure.

    `revision` counts transitions and `seq` events. `executions`, `gates`, `pending` and `fans` hold what
    is open plus whatever a command named; `steps` holds the step states that the command may need.
    `can_ask`, `route` and `ceiling` are of the surface where it was started, and hold for everything in it.
    """

    id: str
    sop: str
    digest: str
    version: str
    mode: Mode
    host_agent: str
    starter: Principal
    marker: str
    inputs: Json
    started_at: datetime
    active_at: datetime
    revision: int = 0
    seq: int = 0
    head_hash: str = ""
    can_ask: bool = False
    route: str = ""
    ceiling: tuple[Scope, ...] = ()
    key: str | None = None
    parent: Parent | None = None
    retry_of: str | None = None
    pins: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    executors: frozenset[str] = frozenset()
    executions: Mapping[str, Execution] = field(default_factory=lambda: EMPTY)
    gates: Mapping[str, Gate] = field(default_factory=lambda: EMPTY)
    gate_count: int = 0
    pending: tuple[Pending, ...] = ()
    held: tuple[Held, ...] = ()
    slot_reason: str = ""
    slot_since: datetime | None = None
    fans: Mapping[int, Fan] = field(default_factory=lambda: EMPTY)
    steps: Mapping[int, StepState] = field(default_factory=lambda: EMPTY)
    last_output: Json = None
    pause: Pause | None = None
    end: End | None = None

    @property
    def open_executions(self) -> tuple[Execution, ...]:
        """Executions without a result, oldest first."""
        return tuple(e for e in self.executions.values() if not e.phase.closed)

    @property
    def open_gates(self) -> tuple[Gate, ...]:
        """Undecided gates, oldest first."""
        return tuple(g for g in self.gates.values() if g.open)

    @property
    def status(self) -> Status:
        """Derived, so that it cannot disagree with what is open."""
        if self.end is not None:
            return self.end.status
        if self.pause is not None:
            return Status.PAUSED
        if any(e.phase is not Phase.HALTED for e in self.open_executions):
            return Status.RUNNING
        gates = self.open_gates
        if any(gate.kind is GateKind.CHECKPOINT for gate in gates):
            return Status.PAUSED_CHECKPOINT
        if gates:
            return Status.WAITING_APPROVAL
        return Status.PENDING

    @property
    def holds_slot(self) -> bool:
        """True while the run counts against `max_concurrent`: something executes, or waits for its back-off.

        A run that waits for a sub-run holds none, since the sub-run has its own.
        """
        if self.end is not None:
            return False
        if any(e.phase is not Phase.HALTED and e.performer is not Performer.CHILD for e in self.open_executions):
            return True
        return self.status is Status.PENDING and not self.slot_reason

    @property
    def due_at(self) -> datetime | None:
        """The next moment at which time alone changes the run."""
        if self.end is not None:
            return None
        times = [e.due_at for e in self.open_executions if e.due_at and e.phase is not Phase.HALTED]
        times += [g.due_at for g in self.open_gates if g.due_at]
        times += [p.due_at for p in self.pending if p.due_at]
        return min(times, default=None)
