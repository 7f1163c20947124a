"""What is kept of a session: its head, its messages, its model turns and its tool calls. Pure.

A session is its rows. A row is written before an effect and again with its result, so that after a crash
every state that the session can have been in is one of these.
"""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from procedo.core.altered import altered
from procedo.core.model import Json

__all__ = [
    "CallRow",
    "CallState",
    "Message",
    "Outcome",
    "SessionRow",
    "SessionState",
    "Transcript",
    "TurnRow",
    "cut_off",
    "ended",
]

_NOBODY: Final = (1 << 63) - 1
"""A fence that no claim has: whoever holds one is told that the session is no longer theirs."""


class SessionState(StrEnum):
    """Where a session stands; all but the first two are ends. Exhausted is not completed."""

    RUNNING = "running"
    PARKED = "parked"
    COMPLETED = "completed"
    FAILED = "failed"
    REFUSED = "refused"
    CANCELLED = "cancelled"
    EXHAUSTED = "exhausted"

    @property
    def final(self) -> bool:
        """True for an end."""
        return self not in (SessionState.RUNNING, SessionState.PARKED)


class CallState(StrEnum):
    """How far a tool call has come."""

    WAITING = "waiting"
    STARTED = "started"
    DONE = "done"


class Outcome(StrEnum):
    """How a tool call ended. `interrupted`: it may or may not have acted."""

    SUCCESS = "success"
    FAILED = "failed"
    DENIED = "denied"
    INTERRUPTED = "interrupted"


class SessionRow(Struct, frozen=True):
    """The head of a session. Sums are of its answered model turns; costs are decimal text in USD.

    `contract` is the recorded contract without its secrets; `unmeasured` counts turns whose tokens are not
    known and `unpriced` those whose cost is not. `seconds` is the time at work, waiting for people excluded.
    """

    run_id: str
    execution_id: str
    agent: str
    delegating: str
    root: str
    depth: int
    runner: str
    fence: int
    started_at: datetime
    active_at: datetime
    state: SessionState = SessionState.RUNNING
    reason: str = ""
    contract: Json = None
    contract_digest: str = ""
    scripted: bool = False
    seconds: float = 0.0
    turns: int = 0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    unmeasured: int = 0
    unpriced: int = 0
    cost_usd: str = "0"
    output: Json = None


class Message(Struct, frozen=True):
    """One request or response, as the model library writes it; `library` is the version that did."""

    seq: int
    kind: str
    data: Json
    library: str
    at: datetime


class TurnRow(Struct, frozen=True):
    """One request to the model. Tokens None: unmeasured; cost None: unknown.

    `answered` False: it is under way, or its process ended (`lost`): what that cost is not known, and it is sent again.
    """

    turn: int
    request_digest: str
    model_asked: str
    at: datetime
    answered: bool = False
    provider: str = ""
    model: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: str | None = None
    finish_reason: str | None = None
    seconds: float = 0.0
    scripted: bool = False
    lost: bool = False


class CallRow(Struct, frozen=True):
    """One tool call, by turn and index. `text` is what the model was told.

    `full` is the result as it came, where the model was told another: cut, or with control characters spelled out.
    `digest` is of the tool and its arguments: what approvals are bound to and repeats are known by.
    """

    turn: int
    index: int
    call_id: str
    tool: str
    offered: str
    schema: str
    arguments: Json
    digest: str
    at: datetime
    state: CallState = CallState.WAITING
    verdict: str = ""
    outcome: Outcome | None = None
    text: str = ""
    full: str = ""
    left_out: int = 0
    attempts: int = 0
    amended: bool = False
    started_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def key(self) -> str:
        """What gates name it by."""
        return f"{self.turn}.{self.index}"


class Transcript(Struct, frozen=True):
    """A session with everything in it, in order."""

    session: SessionRow
    messages: tuple[Message, ...] = ()
    turns: tuple[TurnRow, ...] = ()
    calls: tuple[CallRow, ...] = field(default=())


def cut_off(calls: Iterable[CallRow], why: str, at: datetime) -> tuple[CallRow, ...]:
    """The calls of these that were started and have no result, as interrupted: each may or may not have acted."""
    told = f"{why}; it may have acted"
    return tuple(
        altered(call, state=CallState.DONE, outcome=Outcome.INTERRUPTED, text=told, ended_at=at)
        for call in calls
        if call.state is CallState.STARTED
    )


def ended(transcript: Transcript, reason: str, at: datetime) -> tuple[SessionRow, tuple[CallRow, ...]] | None:
    """The head and calls of a session that others have ended, or None when it has its own end already.

    A request that was under way has used tokens that nobody counted.
    """
    row = transcript.session
    if row.state.final:
        return None
    lost = sum(1 for turn in transcript.turns if not turn.answered and not turn.lost)
    closed = altered(
        row,
        state=SessionState.CANCELLED,
        reason=reason,
        active_at=at,
        fence=_NOBODY,
        unmeasured=row.unmeasured + lost,
        unpriced=row.unpriced + lost,
    )
    return closed, cut_off(transcript.calls, "cancelled while it ran", at)
