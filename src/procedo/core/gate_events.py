"""What happened at gates; see `events` for the rules about events."""

from datetime import datetime

from msgspec import Struct

from procedo.core.execution import Arrival
from procedo.core.gate import Gate, Verdict, Vote
from procedo.core.model import Json
from procedo.core.principal import Principal

__all__ = [
    "AutoApproved",
    "GateOpened",
    "GatePresented",
    "GateReminded",
    "GateResolved",
    "GateWithdrawn",
    "GlassBroken",
    "RevisionAsked",
    "RevisionFailed",
    "VoteCast",
    "VoteRetracted",
]


class GateOpened(Struct, frozen=True):
    """A decision is asked for."""

    gate: Gate


class VoteCast(Struct, frozen=True):
    """A principal answered, and the quorum is not reached."""

    gate_id: str
    vote: Vote


class VoteRetracted(Struct, frozen=True):
    """A principal took an answer back."""

    gate_id: str
    identity: str
    by: Principal


class GlassBroken(Struct, frozen=True):
    """A person with that permission decides alone; `overridden` is what the policy had against it."""

    gate_id: str
    by: Principal
    reason: str
    policy: str
    overridden: str


class AutoApproved(Struct, frozen=True):
    """A policy approves by itself, as the configuration says of it by name."""

    gate_id: str
    policy: str


class GateResolved(Struct, frozen=True):
    """A gate has its answer, under the policy of that name. `value` is the amended value where it was to amend."""

    gate_id: str
    verdict: Verdict
    by: Principal
    comment: str = ""
    value: Json = None
    value_digest: str = ""
    lasting: bool = False
    expired: bool = False
    policy: str = ""


class RevisionAsked(Struct, frozen=True):
    """An approver asked for a new draft, with guidance; the gate waits for it and takes no answer meanwhile."""

    gate_id: str
    by: Principal
    guidance: str


class GatePresented(Struct, frozen=True):
    """A new draft stands at the gate: another revision, and answers to the one before are void."""

    gate_id: str
    arrival: Arrival
    draft: str
    prompt: str
    content: Json
    digest: str
    due_at: datetime | None


class RevisionFailed(Struct, frozen=True):
    """No new draft came about; the old one can be answered again."""

    gate_id: str
    reason: str
    due_at: datetime | None


class GateReminded(Struct, frozen=True):
    """Nobody answered in time; the question was put again, and its clock began anew."""

    gate_id: str
    escalated: bool
    due_at: datetime | None


class GateWithdrawn(Struct, frozen=True):
    """The run ended or moved on, so the question is void."""

    gate_id: str
    reason: str
