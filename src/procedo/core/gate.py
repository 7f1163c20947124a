"""A decision that a principal must take. One kind of thing, one inbox."""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from procedo.core.execution import Arrival
from procedo.core.model import Json
from procedo.core.principal import Principal

__all__ = ["Gate", "GateKind", "Verdict", "Vote"]


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


class Vote(Struct, frozen=True):
    """One principal's answer while a quorum is not reached. `digest` is of the value that it is for."""

    identity: str
    principal: Principal
    verdict: Verdict
    digest: str
    at: datetime
    value: Json = None
    comment: str = ""


class Gate(Struct, frozen=True):
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
    glass_broken: bool = False
    withdrawn: str = ""

    @property
    def named_policy(self) -> str | None:
        """The policy that it stands under, unless that is the built-in rule that a person decides."""
        return None if self.policy in (None, "human") else self.policy

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
