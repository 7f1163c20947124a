"""What has to happen next in a run, as actions for its caller; `actions` makes them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias, Union, get_args

from msgspec import Struct

from procedo.core.model import Json
from procedo.core.state import Gate, Status

__all__ = [
    "ACTIONS",
    "Action",
    "CheckpointWait",
    "Delegated",
    "DeterministicStep",
    "Ended",
    "ExecuteStep",
    "PendingStep",
    "StepOffer",
    "WaitApproval",
]


class StepOffer(Struct, frozen=True):
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


class ExecuteStep(Struct, frozen=True):
    """A step is for the caller's own agent."""

    run_id: str
    execution_id: str
    step: StepOffer
    context: Mapping[str, Json]
    due_at: datetime | None = None


class WaitApproval(Struct, frozen=True):
    """A gate is open. `gate` holds what is asked, of whom, and since when."""

    run_id: str
    gate_id: str
    step: StepOffer
    gate: Gate


class DeterministicStep(Struct, frozen=True):
    """A step without a model whose work the calling program does."""

    run_id: str
    execution_id: str
    step: StepOffer
    input: Json
    due_at: datetime | None = None


class CheckpointWait(Struct, frozen=True):
    """A checkpoint; the state is committed and can be resumed elsewhere from the state file."""

    run_id: str
    gate_id: str
    step: StepOffer
    gate: Gate


class PendingStep(Struct, frozen=True):
    """Routing chose a step that cannot begin yet, or a dispatch waits for a slot or the end of a pause."""

    run_id: str
    sop_name: str
    step: int
    reason: str
    satisfiable: bool = True
    due_at: datetime | None = None


class Delegated(Struct, frozen=True):
    """The server, another agent's session, a sub-run or a timer is at work."""

    run_id: str
    execution_id: str
    step: StepOffer
    agent: str
    since: datetime
    due_at: datetime | None = None


class Ended(Struct, frozen=True):
    """The run is final: completed, failed or cancelled."""

    run_id: str
    sop_name: str
    status: Status
    output: Json = None
    reason: str = ""
    by: str = ""


Action: TypeAlias = Union[
    ExecuteStep,
    WaitApproval,
    DeterministicStep,
    CheckpointWait,
    PendingStep,
    Delegated,
    Ended,
]
ACTIONS: Final[tuple[type[Any], ...]] = get_args(Action)
