"""What a run is at one moment: frozen values, changed only by `evolve`.

A run is a set of things under way, so forks and joins are ordinary: open executions, open gates,
arrivals that wait for dependencies, and dispatches held back by a pause or a full slot. The status is
derived from them and stored nowhere in here. A run that was loaded for one command holds only the
step states and outputs which that command can need; reading another one is a `KeyError`, never a guess.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from procedo.core.execution import Arrival, Closing, Execution, Performer, Phase
from procedo.core.gate import Gate, GateKind, Verdict, Vote
from procedo.core.model import EMPTY, Json, Mode, Scope
from procedo.core.principal import Principal, PrincipalKind, Source
from procedo.core.reach import BOUNDLESS, Reaches

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


class Pending(Struct, frozen=True):
    """An arrival that cannot be dispatched yet: dependencies are missing, or its back-off lasts until `due_at`."""

    arrival: Arrival
    missing: tuple[int, ...] = ()
    due_at: datetime | None = None


class Held(Struct, frozen=True):
    """A dispatch held back by an operator's pause or because no slot is free. `approved`: its gate is passed."""

    arrival: Arrival
    approved: bool = False


class Fan(Struct, frozen=True):
    """A `for_each` under way: its items, the next one to open, and the finished execution of each index."""

    arrival: Arrival
    items: tuple[Json, ...]
    following: int = 0
    done: Mapping[int, str] = field(default_factory=dict)
    outputs: Mapping[int, Json] = field(default_factory=dict)


class StepState(Struct, frozen=True):
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


class Pause(Struct, frozen=True):
    """An operator's pause."""

    by: str
    at: datetime
    reason: str = ""


class Parent(Struct, frozen=True):
    """The execution of another run for which this run works."""

    run: str
    execution: str
    depth: int


class End(Struct, frozen=True):
    """How the run ended. `denied` marks a cancellation that was a denial at a gate."""

    status: Status
    at: datetime
    by: str
    output: Json = None
    reason: str = ""
    denied: bool = False


class Run(Struct, frozen=True):
    """One execution of a procedure.

    `revision` counts transitions and `seq` events. `executions`, `gates`, `pending` and `fans` hold what
    is open plus whatever a command named; `steps` holds the step states that the command may need.
    `can_ask`, `route` and `ceiling` are of the surface where it was started, and hold for everything in it. `reach` are
    the limits of everybody who started it or moved it on.
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
    reach: Reaches = BOUNDLESS
    key: str | None = None
    parent: Parent | None = None
    retry_of: str | None = None
    pins: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    lineage: frozenset[str] = frozenset()
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
