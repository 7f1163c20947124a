"""One attempt of one step: why it was made, who does it, how it ended."""

from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import Struct

from procedo.core.model import Json

__all__ = ["Arrival", "Closing", "Execution", "Performer", "Phase"]


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


class Arrival(Struct, frozen=True):
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


class Closing(Struct, frozen=True):
    """How an execution ended: by whom, when, with what. `digest` identifies the report for replays."""

    at: datetime
    by: str
    digest: str
    output: Json = None
    reason: str = ""
    notes: tuple[str, ...] = ()


class Execution(Struct, frozen=True):
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
