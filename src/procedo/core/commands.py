"""What is asked of a run.

A command is refused, or answered with events. It carries who asks as the transport knows them.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, Union, get_args

from msgspec import Struct, field

from procedo.core.model import Json, Mode, Scope
from procedo.core.reach import BOUNDLESS, Reaches
from procedo.core.state import Arrival, GateKind, Parent, Phase, Principal, Verdict

__all__ = [
    "COMMANDS",
    "MOVING",
    "Acting",
    "Ask",
    "Begin",
    "Cancel",
    "Command",
    "Decide",
    "Finish",
    "Hold",
    "Judge",
    "Release",
    "Reopen",
    "Report",
    "Start",
    "Tick",
]


class Start(Struct, frozen=True):
    """Begin a run. `mode` and `host_agent` are the effective ones; ids and the marker come from the caller's `Ids`.

    `can_ask`, `route` and `ceiling` are of the surface where it was started: whether a person can be asked
    there, the operator's route in words, and the scopes beyond which nothing in the run may go. `reach` are the limits
    of whoever starts it, and of the runs that it comes from.

    `pins` are the digests of the procedures that it may run as sub-runs, by name. `lineage` holds the principal keys
    of everybody who acted in the runs that this one comes from. A run that takes up a
    failed one (`retry_of`) has `adopted` outputs by step number and begins at other places than the first step.
    """

    run_id: str
    inputs: Json
    by: Principal
    mode: Mode
    host_agent: str
    marker: str
    can_ask: bool = False
    route: str = ""
    ceiling: tuple[Scope, ...] = ()
    reach: Reaches = BOUNDLESS
    key: str | None = None
    parent: Parent | None = None
    retry_of: str | None = None
    pins: Mapping[str, str] = field(default_factory=dict)
    lineage: frozenset[str] = frozenset()
    adopted: Mapping[int, Json] = field(default_factory=dict)
    begin_at: tuple[Arrival, ...] = ()


class Report(Struct, frozen=True):
    """The result of an execution, told by whoever performs it. `status` is completed, failed or skipped.

    `reach`, here and in other commands that move a run on, are the limits of whoever does it: the run takes them over.
    """

    execution_id: str
    status: Phase
    output: Json
    by: Principal
    reach: Reaches = BOUNDLESS


class Acting(Struct, frozen=True):
    """An agent that was assembled: for whom it acts, how deep, and the digest of what it may do.

    `scripted` marks an agent whose answers come from a file.
    """

    agent: str
    delegating: str
    depth: int
    contract: str
    scripted: bool = False


class Begin(Struct, frozen=True):
    """The claim number `fence` is about to start the effect of an execution; `acting` is the agent that does."""

    execution_id: str
    fence: int
    repeatable: bool
    acting: Acting | None = None


class Finish(Struct, frozen=True):
    """The result of work that the server did itself, under the claim number `fence`; `acting` is who did it."""

    execution_id: str
    fence: int
    status: Phase
    output: Json = None
    reason: str = ""
    acting: str = "system"
    reach: Reaches = BOUNDLESS


class Judge(Struct, frozen=True):
    """The verdict of a verifier on a claimed output: `pass`, `fail` or `cannot_evaluate`."""

    execution_id: str
    verdict: str
    reason: str = ""


class Ask(Struct, frozen=True):
    """A session asks for a decision about one of its tool calls and parks.

    `kind` is `tool_call`, or `interrupted` for a call that may or may not have happened. `content` is what
    the approver sees: tool, arguments, acting and delegating agent. After `timeout_s` seconds without an
    answer the call is denied; 0 leaves the limit to the policy.
    """

    execution_id: str
    fence: int
    call: str
    kind: GateKind
    why: str
    content: Json
    policy: str | None = None
    timeout_s: float = 0.0


class Decide(Struct, frozen=True):
    """An answer at a gate. `revision` and `digest` name the presentation that was seen, when the door knows them.

    With `break_glass` a person with that permission decides alone, whatever group, quorum and roles the policy has.
    """

    gate_id: str
    verdict: Verdict
    by: Principal
    value: Json = None
    comment: str = ""
    revision: int | None = None
    digest: str | None = None
    lasting: bool = False
    break_glass: bool = False
    reach: Reaches = BOUNDLESS


class Cancel(Struct, frozen=True):
    """End the run."""

    reason: str
    by: Principal


class Hold(Struct, frozen=True):
    """An operator's pause at the next step boundary."""

    by: Principal
    reason: str = ""


class Release(Struct, frozen=True):
    """End an operator's pause."""

    by: Principal
    reach: Reaches = BOUNDLESS


class Reopen(Struct, frozen=True):
    """Run a step again that failed or was passed over, while the run is live."""

    step: int
    by: Principal
    reach: Reaches = BOUNDLESS


class Tick(Struct, frozen=True):
    """Let time act: deadlines, back-offs, timers, and slots that have become free."""


Command: TypeAlias = Union[
    Start,
    Report,
    Begin,
    Finish,
    Judge,
    Ask,
    Decide,
    Cancel,
    Hold,
    Release,
    Reopen,
    Tick,
]
COMMANDS: Final[tuple[type[Any], ...]] = get_args(Command)
MOVING: Final = (Report, Finish, Decide, Release, Reopen)
"""Those with which somebody moves a run on."""
