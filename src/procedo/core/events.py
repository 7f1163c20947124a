"""What happened in a run: facts that are kept for ever.

A class name is an event's kind in the record, so a class is never renamed and a field never changes its
meaning; a new field has a default that says what its absence meant.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias, Union, get_args

from msgspec import Struct, field

from procedo.core.gate_events import (
    AutoApproved,
    GateOpened,
    GatePresented,
    GateReminded,
    GateResolved,
    GateWithdrawn,
    GlassBroken,
    RevisionAsked,
    RevisionFailed,
    VoteCast,
    VoteRetracted,
)
from procedo.core.model import Json, Mode, Scope
from procedo.core.reach import BOUNDLESS, Reaches
from procedo.core.state import Arrival, Execution, Held, Parent, Pending, Principal

__all__ = [
    "EVENTS",
    "ArrivalPended",
    "ArrivalReleased",
    "AutoApproved",
    "DispatchHeld",
    "DispatchesReleased",
    "EffectRepeated",
    "EffectStarted",
    "Event",
    "ExecutionCompleted",
    "ExecutionExtended",
    "ExecutionFailed",
    "ExecutionHalted",
    "ExecutionOpened",
    "ExecutionResumed",
    "ExecutionSkipped",
    "FanAbandoned",
    "FanGathered",
    "FanOpened",
    "GateOpened",
    "GatePresented",
    "GateReminded",
    "GateResolved",
    "GateWithdrawn",
    "GlassBroken",
    "ItemOpened",
    "OutputClaimed",
    "ReachNarrowed",
    "RevisionAsked",
    "RevisionFailed",
    "Routed",
    "RunCancelled",
    "RunCompleted",
    "RunFailed",
    "RunHeld",
    "RunReleased",
    "RunStarted",
    "SessionBegan",
    "StepPassedOver",
    "StepVisited",
    "VoteCast",
    "VoteRetracted",
]


class RunStarted(Struct, frozen=True):
    """A run exists."""

    run_id: str
    sop: str
    digest: str
    version: str
    mode: Mode
    host_agent: str
    by: Principal
    marker: str
    inputs: Json
    can_ask: bool = False
    route: str = ""
    ceiling: tuple[Scope, ...] = ()
    reach: Reaches = BOUNDLESS
    key: str | None = None
    parent: Parent | None = None
    retry_of: str | None = None
    pins: Mapping[str, str] = field(default_factory=dict)
    lineage: frozenset[str] = frozenset()


class ReachNarrowed(Struct, frozen=True):
    """Somebody with these limits moved the run on, which keeps within them from here on."""

    reach: Reaches


class StepVisited(Struct, frozen=True):
    """A step was reached: counts against the visit limit."""

    step: int


class StepPassedOver(Struct, frozen=True):
    """A precondition was false: the step was not executed, and routing goes on."""

    step: int
    reason: str


class ArrivalPended(Struct, frozen=True):
    """A step was chosen that cannot begin yet."""

    pending: Pending


class ArrivalReleased(Struct, frozen=True):
    """A pending arrival goes on."""

    pending: Pending


class DispatchHeld(Struct, frozen=True):
    """A dispatch is held back; `slot` names the limit and its holders when it waits for a slot."""

    held: Held
    slot: str = ""


class DispatchesReleased(Struct, frozen=True):
    """Everything held back goes on."""


class FanOpened(Struct, frozen=True):
    """A `for_each` begins over these items."""

    arrival: Arrival
    items: tuple[Json, ...]


class ItemOpened(Struct, frozen=True):
    """The next item of a `for_each` was dispatched."""

    step: int
    item: int


class FanGathered(Struct, frozen=True):
    """Every item of a `for_each` has its result; together they are the step's output."""

    step: int
    execution_id: str
    output: Json


class FanAbandoned(Struct, frozen=True):
    """A `for_each` ends early because an item failed for good; its other items are given up."""

    step: int
    reason: str


class ExecutionOpened(Struct, frozen=True):
    """A step is given to its performer."""

    execution: Execution


class EffectStarted(Struct, frozen=True):
    """A side effect is about to happen."""

    execution_id: str
    fence: int


class SessionBegan(Struct, frozen=True):
    """An agent was assembled and takes an execution up, at first or again. `contract` is the digest of its contract."""

    execution_id: str
    fence: int
    agent: str
    delegating: str
    depth: int
    contract: str
    scripted: bool = False


class EffectRepeated(Struct, frozen=True):
    """An interrupted effect may happen again: it is declared repeatable, or a person said so."""

    execution_id: str
    reason: str


class ExecutionHalted(Struct, frozen=True):
    """An execution waits for the decision at a gate."""

    execution_id: str
    reason: str


class ExecutionResumed(Struct, frozen=True):
    """A person has answered about a tool call: the session goes on. The time that it waited is given back."""

    execution_id: str
    due_at: datetime | None


class ExecutionExtended(Struct, frozen=True):
    """An execution that exceeded its time was given more."""

    execution_id: str
    due_at: datetime | None


class OutputClaimed(Struct, frozen=True):
    """A result was reported and waits for its verification."""

    execution_id: str
    output: Json
    digest: str
    by: str


class ExecutionCompleted(Struct, frozen=True):
    """An execution has a good result."""

    execution_id: str
    output: Json
    digest: str
    by: str
    notes: tuple[str, ...] = ()


class ExecutionFailed(Struct, frozen=True):
    """An attempt failed; `output` is what was reported, `reason` what was wrong."""

    execution_id: str
    reason: str
    digest: str
    by: str
    output: Json = None


class ExecutionSkipped(Struct, frozen=True):
    """Its performer reported the step as skipped: the success path is taken, without an output."""

    execution_id: str
    digest: str
    by: str
    output: Json = None


class Routed(Struct, frozen=True):
    """Where a step handed on to, and by which rule. No targets: the branch ends."""

    step: int
    targets: tuple[int, ...]
    rule: str
    notes: tuple[str, ...] = ()


class RunHeld(Struct, frozen=True):
    """An operator paused the run."""

    by: Principal
    reason: str = ""


class RunReleased(Struct, frozen=True):
    """An operator ended the pause."""

    by: Principal


class RunCompleted(Struct, frozen=True):
    """The run reached its end."""

    output: Json


class RunFailed(Struct, frozen=True):
    """The run cannot go on."""

    reason: str


class RunCancelled(Struct, frozen=True):
    """Somebody ended the run; `denied` when that was a denial at a gate."""

    reason: str
    by: Principal
    denied: bool = False


Event: TypeAlias = Union[
    RunStarted,
    ReachNarrowed,
    StepVisited,
    StepPassedOver,
    ArrivalPended,
    ArrivalReleased,
    DispatchHeld,
    DispatchesReleased,
    GateOpened,
    VoteCast,
    VoteRetracted,
    GlassBroken,
    AutoApproved,
    GateResolved,
    RevisionAsked,
    GatePresented,
    RevisionFailed,
    GateReminded,
    GateWithdrawn,
    FanOpened,
    ItemOpened,
    FanGathered,
    FanAbandoned,
    ExecutionOpened,
    EffectStarted,
    SessionBegan,
    EffectRepeated,
    ExecutionHalted,
    ExecutionResumed,
    ExecutionExtended,
    OutputClaimed,
    ExecutionCompleted,
    ExecutionFailed,
    ExecutionSkipped,
    Routed,
    RunHeld,
    RunReleased,
    RunCompleted,
    RunFailed,
    RunCancelled,
]
EVENTS: Final[tuple[type[Any], ...]] = get_args(Event)
