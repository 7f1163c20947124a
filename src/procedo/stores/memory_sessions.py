"""Sessions of agents in a store in memory."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence, Set
from datetime import datetime
from decimal import Decimal
from typing import Any

from msgspec import Struct, field

from procedo.core.session import CallRow, Message, SessionRow, Transcript, TurnRow, ended
from procedo.stores.sqlite_sessions import lost

__all__ = ["MemorySessionReader", "MemorySessionWriter", "Sessions"]


class Sessions(Struct):
    """Every session by run and execution, and the actions that were counted."""

    transcripts: dict[tuple[str, str], Transcript] = field(default_factory=dict)
    actions: dict[str, tuple[str, datetime]] = field(default_factory=dict)


def _merged(old: Sequence[Any], new: Sequence[Any], key: Callable[[Any], Any]) -> tuple[Any, ...]:
    rows = {key(row): row for row in old} | {key(row): row for row in new}
    return tuple(rows[place] for place in sorted(rows))


class MemorySessionReader(ABC):
    """The part of a `Reader` that tells what sessions did."""

    _sessions: Sessions

    @abstractmethod
    def _tree(self, run_id: str) -> Set[str]:
        """The ids of a run, of every run above it, and of all that those have started."""

    def session(self, run_id: str, execution_id: str) -> Transcript | None:
        """See `Reader.session`."""
        return self._sessions.transcripts.get((run_id, execution_id))

    def sessions(self, run_id: str) -> tuple[SessionRow, ...]:
        """See `Reader.sessions`."""
        found = [t.session for (run, _), t in self._sessions.transcripts.items() if run == run_id]
        return tuple(sorted(found, key=lambda row: (row.started_at, row.execution_id)))

    def used_in_tree(self, run_id: str) -> tuple[int, Decimal]:
        """See `Reader.used_in_tree`."""
        tree = self._tree(run_id)
        found = [t.session for (run, _), t in self._sessions.transcripts.items() if run in tree]
        tokens = sum(row.input_tokens + row.output_tokens for row in found)
        return tokens, sum((Decimal(row.cost_usd) for row in found), Decimal(0))

    def spent_since(self, agent: str, since: datetime) -> tuple[Decimal, int]:
        """See `Reader.spent_since`."""
        turns = [
            turn
            for transcript in self._sessions.transcripts.values()
            for turn in transcript.turns
            if transcript.session.agent == agent and turn.at >= since
        ]
        known = [Decimal(turn.cost_usd) for turn in turns if turn.cost_usd is not None]
        return sum(known, Decimal(0)), len(turns) - len(known)


class MemorySessionWriter(MemorySessionReader):
    """The part of a `Writer` that keeps what sessions do; `_put` is undone when the transaction fails."""

    _put: Callable[[dict[Any, Any], Any, Any], None]

    def put_session(
        self,
        row: SessionRow,
        messages: Sequence[Message] = (),
        turns: Sequence[TurnRow] = (),
        calls: Sequence[CallRow] = (),
    ) -> None:
        """See `Writer.put_session`."""
        place = (row.run_id, row.execution_id)
        known = self._sessions.transcripts.get(place) or Transcript(row)
        if known.session.fence > row.fence:
            raise lost(row)
        merged = Transcript(
            row,
            _merged(known.messages, messages, lambda message: message.seq),
            _merged(known.turns, turns, lambda turn: turn.turn),
            _merged(known.calls, calls, lambda call: (call.turn, call.index)),
        )
        self._put(self._sessions.transcripts, place, merged)

    def end_session(self, run_id: str, execution_id: str, reason: str, at: datetime) -> None:
        """See `Writer.end_session`."""
        known = self.session(run_id, execution_id)
        if known is not None and (found := ended(known, reason, at)) is not None:
            self.put_session(found[0], calls=found[1])

    def take_action(self, agent: str, call: str, limit: int, since: datetime, now: datetime) -> bool:
        """See `Writer.take_action`."""
        if call in self._sessions.actions:
            return True
        if sum(1 for who, at in self._sessions.actions.values() if who == agent and at > since) >= limit:
            return False
        self._put(self._sessions.actions, call, (agent, now))
        return True
