"""What one committed transaction did, as far as anybody watches it. Plain values; no outside."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct, field

from procedo.core.messages import Event
from procedo.core.notice import Telling
from procedo.core.session import CallRow, SessionRow, TurnRow
from procedo.core.state import Run
from procedo.ports import Attribution, Job

__all__ = ["Commit", "Move", "Watcher", "Written"]


class Move(Struct, frozen=True):
    """One transition. `before` None: the run began. `decided_ns` is when it was written, in ns since the epoch."""

    before: Run | None
    after: Run
    events: Sequence[Event]
    who: Attribution
    at: datetime
    decided_ns: int


class Written(Struct, frozen=True):
    """Rows of an agent's session that were written together."""

    row: SessionRow
    turns: Sequence[TurnRow]
    calls: Sequence[CallRow]


class Commit(Struct):
    """One transaction that was committed. `jobs` holds each job with the number of the move that asked for it."""

    began_ns: int
    moves: list[Move] = field(default_factory=list)
    sessions: list[Written] = field(default_factory=list)
    tellings: list[Telling] = field(default_factory=list)
    jobs: list[tuple[int, Job]] = field(default_factory=list)

    @property
    def told(self) -> bool:
        """True when anybody may want to know of it."""
        return bool(self.moves or self.sessions or self.tellings)


class Watcher(Protocol):
    """Looks at what was committed."""

    def committed(self, commit: Commit) -> None:
        """Called in the task that wrote, after the commit and before the writer goes on."""
