"""What is asked of a run (commands), what happened (events), and what has to happen next (actions).

Commands are refused or answered with events; events are facts and are kept for ever. An event's class
name is its kind in the record, so a class is never renamed and a field never changes its meaning.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeAlias, Union

from procedo.core.model import Json, Mode
from procedo.core.state import (
    Arrival,
    Execution,
    Gate,
    GateKind,
    Held,
    Parent,
    Pending,
    Phase,
    Principal,
    Status,
    Verdict,
    Vote,
)

__all__ = [
    "ACTIONS",
    "COMMANDS",
    "EVENTS",
    "Action",
    "Command",
    "Event",
]


# --- commands ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Start:
    """Begin a run. `mode` and `host_agent` are the effective ones; ids and the marker come from the caller's `Ids`.

    `pins` are the digests of the procedures that it may run as sub-runs, by name. A run that takes up a
    failed one (`retry_of`) has `adopted` outputs by step number and begins at other places than the first step.
    """

    run_id: str
    inputs: Json
    by: Principal
    mode: Mode
    host_agent: str
    marker: str
    key: str | None = None
    parent: Parent | None = None
    retry_of: str | None = None
    pins: Mapping[str, str] = field(default_factory=dict)
    adopted: Mapping[int, Json] = field(default_factory=dict)
    begin_at: tuple[Arrival, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """The result of an execution, told by whoever performs it. `status` is completed, failed or skipped."""

    execution_id: str
    status: Phase
    output: Json
    by: Principal


@dataclass(frozen=True, slots=True)
class Begin:
    """The claim number `fence` is about to start the effect of an execution."""

    execution_id: str
    fence: int
    repeatable: bool


@dataclass(frozen=True, slots=True)
class Finish:
    """The result of work that the server did itself, under the claim number `fence`."""

    execution_id: str
    fence: int
    status: Phase
    output: Json = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Judge:
    """The verdict of a verifier on a claimed output: `pass`, `fail` or `cannot_evaluate`."""

    execution_id: str
    verdict: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Ask:
    """A session asks for a decision about one of its tool calls and parks.

    `kind` is `tool_call`, or `interrupted` for a call that may or may not have happened. `content` is what
    the approver sees: tool, arguments, acting and delegating agent.
    """

    execution_id: str
    fence: int
    call: str
    kind: GateKind
    why: str
    content: Json
    policy: str | None = None


@dataclass(frozen=True, slots=True)
class Decide:
    """An answer at a gate. `revision` and `digest` name the presentation that was seen, when the door knows them."""

    gate_id: str
    verdict: Verdict
    by: Principal
    value: Json = None
    comment: str = ""
    revision: int | None = None
    digest: str | None = None
    lasting: bool = False


@dataclass(frozen=True, slots=True)
class Cancel:
    """End the run."""

    reason: str
    by: Principal


@dataclass(frozen=True, slots=True)
class Hold:
    """An operator's pause at the next step boundary."""

    by: Principal
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Release:
    """End an operator's pause."""

    by: Principal


@dataclass(frozen=True, slots=True)
class Reopen:
    """Run a step again that failed or was passed over, while the run is live."""

    step: int
    by: Principal


@dataclass(frozen=True, slots=True)
class Tick:
    """Let time act: deadlines, back-offs, timers, and slots that have become free."""


Command: TypeAlias = Union[Start, Report, Begin, Finish, Judge, Ask, Decide, Cancel, Hold, Release, Reopen, Tick]
COMMANDS: Final[tuple[type[Any], ...]] = (
    Start, Report, Begin, Finish, Judge, Ask, Decide, Cancel, Hold, Release, Reopen, Tick,
)  # fmt: skip


# --- events --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunStarted:
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
    key: str | None = None
    parent: Parent | None = None
    retry_of: str | None = None
    pins: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepVisited:
    """A step was reached: counts against the visit limit."""

    step: int


@dataclass(frozen=True, slots=True)
class StepPassedOver:
    """A precondition was false: the step was not executed, and routing goes on."""

    step: int
    reason: str


@dataclass(frozen=True, slots=True)
class ArrivalPended:
    """A step was chosen that cannot begin yet."""

    pending: Pending


@dataclass(frozen=True, slots=True)
class ArrivalReleased:
    """A pending arrival goes on."""

    pending: Pending


@dataclass(frozen=True, slots=True)
class DispatchHeld:
    """A dispatch is held back; `slot` names the limit and its holders when it waits for a slot."""

    held: Held
    slot: str = ""


@dataclass(frozen=True, slots=True)
class DispatchesReleased:
    """Everything held back goes on."""


@dataclass(frozen=True, slots=True)
class GateOpened:
    """A decision is asked for."""

    gate: Gate


@dataclass(frozen=True, slots=True)
class VoteCast:
    """A principal answered, and the quorum is not reached."""

    gate_id: str
    vote: Vote


@dataclass(frozen=True, slots=True)
class VoteRetracted:
    """A principal took an answer back."""

    gate_id: str
    identity: str
    by: Principal


@dataclass(frozen=True, slots=True)
class GateResolved:
    """A gate has its answer. `value` is the amended value where the answer was to amend."""

    gate_id: str
    verdict: Verdict
    by: Principal
    comment: str = ""
    value: Json = None
    value_digest: str = ""
    lasting: bool = False
    expired: bool = False


@dataclass(frozen=True, slots=True)
class GateReminded:
    """Nobody answered in time; the question was put again, and its clock began anew."""

    gate_id: str
    escalated: bool
    due_at: datetime | None


@dataclass(frozen=True, slots=True)
class GateWithdrawn:
    """The run ended or moved on, so the question is void."""

    gate_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class FanOpened:
    """A `for_each` begins over these items."""

    arrival: Arrival
    items: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class ItemOpened:
    """The next item of a `for_each` was dispatched."""

    step: int
    item: int


@dataclass(frozen=True, slots=True)
class FanGathered:
    """Every item of a `for_each` has its result; together they are the step's output."""

    step: int
    execution_id: str
    output: Json


@dataclass(frozen=True, slots=True)
class FanAbandoned:
    """A `for_each` ends early because an item failed for good; its other items are given up."""

    step: int
    reason: str


@dataclass(frozen=True, slots=True)
class ExecutionOpened:
    """A step is given to its performer."""

    execution: Execution


@dataclass(frozen=True, slots=True)
class EffectStarted:
    """A side effect is about to happen."""

    execution_id: str
    fence: int


@dataclass(frozen=True, slots=True)
class EffectRepeated:
    """An interrupted effect may happen again: it is declared repeatable, or a person said so."""

    execution_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class ExecutionHalted:
    """An execution waits for the decision at a gate."""

    execution_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class ExecutionResumed:
    """A person has answered about a tool call: the session goes on. The time that it waited is given back."""

    execution_id: str
    due_at: datetime | None


@dataclass(frozen=True, slots=True)
class ExecutionExtended:
    """An execution that exceeded its time was given more."""

    execution_id: str
    due_at: datetime | None


@dataclass(frozen=True, slots=True)
class OutputClaimed:
    """A result was reported and waits for its verification."""

    execution_id: str
    output: Json
    digest: str
    by: str


@dataclass(frozen=True, slots=True)
class ExecutionCompleted:
    """An execution has a good result."""

    execution_id: str
    output: Json
    digest: str
    by: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExecutionFailed:
    """An attempt failed; `output` is what was reported, `reason` what was wrong."""

    execution_id: str
    reason: str
    digest: str
    by: str
    output: Json = None


@dataclass(frozen=True, slots=True)
class ExecutionSkipped:
    """Its performer reported the step as skipped: the success path is taken, without an output."""

    execution_id: str
    digest: str
    by: str
    output: Json = None


@dataclass(frozen=True, slots=True)
class Routed:
    """Where a step handed on to, and by which rule. No targets: the branch ends."""

    step: int
    targets: tuple[int, ...]
    rule: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunHeld:
    """An operator paused the run."""

    by: Principal
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RunReleased:
    """An operator ended the pause."""

    by: Principal


@dataclass(frozen=True, slots=True)
class RunCompleted:
    """The run reached its end."""

    output: Json


@dataclass(frozen=True, slots=True)
class RunFailed:
    """The run cannot go on."""

    reason: str


@dataclass(frozen=True, slots=True)
class RunCancelled:
    """Somebody ended the run; `denied` when that was a denial at a gate."""

    reason: str
    by: Principal
    denied: bool = False


Event: TypeAlias = Union[
    RunStarted, StepVisited, StepPassedOver, ArrivalPended, ArrivalReleased, DispatchHeld, DispatchesReleased,
    GateOpened, VoteCast, VoteRetracted, GateResolved, GateReminded, GateWithdrawn, FanOpened, ItemOpened,
    FanGathered, FanAbandoned, ExecutionOpened, EffectStarted, EffectRepeated, ExecutionHalted, ExecutionResumed, ExecutionExtended,
    OutputClaimed, ExecutionCompleted, ExecutionFailed, ExecutionSkipped, Routed, RunHeld, RunReleased,
    RunCompleted, RunFailed, RunCancelled,
]  # fmt: skip
EVENTS: Final[tuple[type[Any], ...]] = (
    RunStarted, StepVisited, StepPassedOver, ArrivalPended, ArrivalReleased, DispatchHeld, DispatchesReleased,
    GateOpened, VoteCast, VoteRetracted, GateResolved, GateReminded, GateWithdrawn, FanOpened, ItemOpened,
    FanGathered, FanAbandoned, ExecutionOpened, EffectStarted, EffectRepeated, ExecutionHalted, ExecutionResumed, ExecutionExtended,
    OutputClaimed, ExecutionCompleted, ExecutionFailed, ExecutionSkipped, Routed, RunHeld, RunReleased,
    RunCompleted, RunFailed, RunCancelled,
)  # fmt: skip


# --- actions -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StepOffer:
    """The step inside an action, with its *resolved* agent. `body` has its bindings filled in, foreign text framed."""

    number: int
    title: str
    kind: str
    agent: str
    body: str = ""
    suggested_tools: tuple[str, ...] = ()
    calls: tuple[Json, ...] = ()
    output_schema: Json = None
    attempt: int = 1
    note: str = ""


@dataclass(frozen=True, slots=True)
class ExecuteStep:
    """A step is for the caller's own agent."""

    run_id: str
    execution_id: str
    step: StepOffer
    context: Mapping[str, Json]
    due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class WaitApproval:
    """A gate is open. `gate` holds what is asked, of whom, and since when."""

    run_id: str
    gate_id: str
    step: StepOffer
    gate: Gate


@dataclass(frozen=True, slots=True)
class DeterministicStep:
    """A step without a model whose work the calling program does."""

    run_id: str
    execution_id: str
    step: StepOffer
    input: Json
    due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class CheckpointWait:
    """A checkpoint; the state is committed and can be resumed elsewhere from the state file."""

    run_id: str
    gate_id: str
    step: StepOffer
    gate: Gate


@dataclass(frozen=True, slots=True)
class PendingStep:
    """Routing chose a step that cannot begin yet, or a dispatch waits for a slot or the end of a pause."""

    run_id: str
    sop_name: str
    step: int
    reason: str
    satisfiable: bool = True
    due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Delegated:
    """The server, another agent's session, a sub-run or a timer is at work."""

    run_id: str
    execution_id: str
    step: StepOffer
    agent: str
    since: datetime
    due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """The run is final: completed, failed or cancelled."""

    run_id: str
    sop_name: str
    status: Status
    output: Json = None
    reason: str = ""
    by: str = ""


Action: TypeAlias = Union[ExecuteStep, WaitApproval, DeterministicStep, CheckpointWait, PendingStep, Delegated, Ended]
ACTIONS: Final[tuple[type[Any], ...]] = (
    ExecuteStep, WaitApproval, DeterministicStep, CheckpointWait, PendingStep, Delegated, Ended,
)  # fmt: skip
