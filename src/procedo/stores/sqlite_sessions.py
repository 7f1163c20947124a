"""Sessions of agents in SQLite."""

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, TypeVar

from msgspec import Struct

from procedo.core.session import CallRow, Message, SessionRow, Transcript, TurnRow, ended
from procedo.errors import Conflict
from procedo.stores.codec import FORMAT, decode, encode
from procedo.stores.jsontext import moment, parsed

__all__ = ["SessionReader", "SessionWriter", "lost"]

T = TypeVar("T")

_OF: Final = "JOIN runs USING (run) WHERE runs.id = ? AND execution = ?"

# Rows above and below are found by their indexes, so runs that have nothing to do with this one cost nothing.
_USED_IN_TREE: Final = """
    WITH RECURSIVE
    above(id, parent) AS (
        SELECT id, parent_run FROM runs WHERE id = ?
        UNION SELECT runs.id, runs.parent_run FROM above CROSS JOIN runs ON runs.id = above.parent
    ),
    tree(run, id) AS (
        SELECT runs.run, runs.id FROM above CROSS JOIN runs USING (id)
        UNION SELECT runs.run, runs.id FROM tree CROSS JOIN runs ON runs.parent_run = tree.id
    )
    SELECT format, json_extract(data, '$.input_tokens'), json_extract(data, '$.output_tokens'),
           json_extract(data, '$.cost_usd')
    FROM tree CROSS JOIN sessions USING (run)
"""


class _Used(Struct, frozen=True):
    """The part of a session's head that budgets are held by: the rest is long, and this is read before every turn."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: str = "0"


def lost(row: SessionRow) -> Conflict:
    """What a worker is told whose claim is no longer the newest."""
    return Conflict("stale", f"Session {row.execution_id} of {row.run_id} was taken over; claim {row.fence} is old.")


class SessionReader:
    """The part of a `Reader` that tells what sessions did."""

    _connection: sqlite3.Connection

    def session(self, run_id: str, execution_id: str) -> Transcript | None:
        """See `Reader.session`."""
        heads = self._rows(SessionRow, f"sessions {_OF}", run_id, execution_id)
        if not heads:
            return None
        return Transcript(
            heads[0],
            tuple(self._rows(Message, f"session_messages {_OF} ORDER BY session_messages.seq", run_id, execution_id)),
            tuple(self._rows(TurnRow, f"session_turns {_OF} ORDER BY turn", run_id, execution_id)),
            tuple(self._rows(CallRow, f"session_calls {_OF} ORDER BY turn, place", run_id, execution_id)),
        )

    def sessions(self, run_id: str) -> tuple[SessionRow, ...]:
        """See `Reader.sessions`."""
        found = self._rows(SessionRow, "sessions JOIN runs USING (run) WHERE runs.id = ?", run_id)
        return tuple(sorted(found, key=lambda row: (row.started_at, row.execution_id)))

    def used_in_tree(self, run_id: str) -> tuple[int, Decimal]:
        """See `Reader.used_in_tree`."""
        tokens, usd = 0, Decimal(0)
        for version, *numbers in self._connection.execute(_USED_IN_TREE, (run_id,)):
            # What equals its default is not written.
            pairs = zip(_Used.__struct_fields__, numbers, strict=True)
            told = {name: number for name, number in pairs if number is not None}
            used = decode(_Used, told, version)
            tokens += used.input_tokens + used.output_tokens
            usd += Decimal(used.cost_usd)
        return tokens, usd

    def spent_since(self, agent: str, since: datetime) -> tuple[Decimal, int]:
        """See `Reader.spent_since`."""
        sql = "SELECT cost_usd FROM session_turns WHERE agent = ? AND at >= ?"
        costs = [row[0] for row in self._connection.execute(sql, (agent, moment(since)))]
        known = [Decimal(cost) for cost in costs if cost is not None]
        return sum(known, Decimal(0)), len(costs) - len(known)

    def _rows(self, kind: type[T], source: str, *values: Any) -> list[T]:
        name = source.partition(" ")[0]
        sql = f"SELECT {name}.format, {name}.data FROM {source}"  # noqa: S608  # names of our own tables
        return [decode(kind, parsed(data), version) for version, data in self._connection.execute(sql, values)]


class SessionWriter(SessionReader):
    """The part of a `Writer` that keeps what sessions do."""

    def put_session(
        self,
        row: SessionRow,
        messages: Sequence[Message] = (),
        turns: Sequence[TurnRow] = (),
        calls: Sequence[CallRow] = (),
    ) -> None:
        """See `Writer.put_session`."""
        run = self._connection.execute("SELECT run FROM runs WHERE id = ?", (row.run_id,)).fetchone()
        sql = f"SELECT fence FROM sessions {_OF}"  # noqa: S608  # names of our own tables
        known = self._connection.execute(sql, (row.run_id, row.execution_id)).fetchone()
        if run is None or (known is not None and known[0] > row.fence):
            raise lost(row)
        place = (run[0], row.execution_id)
        self._connection.execute(
            """INSERT INTO sessions VALUES (?, ?, ?, ?, ?)
               ON CONFLICT DO UPDATE SET fence = excluded.fence, format = excluded.format, data = excluded.data""",
            (*place, row.fence, FORMAT, encode(row)),
        )
        self._connection.executemany(
            "INSERT INTO session_messages VALUES (?, ?, ?, ?, ?)",
            [(*place, message.seq, FORMAT, encode(message)) for message in messages],
        )
        self._connection.executemany(
            """INSERT INTO session_turns VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE
               SET cost_usd = excluded.cost_usd, format = excluded.format, data = excluded.data""",
            [(*place, t.turn, row.agent, moment(t.at), t.cost_usd, FORMAT, encode(t)) for t in turns],
        )
        self._connection.executemany(
            """INSERT INTO session_calls VALUES (?, ?, ?, ?, ?, ?)
               ON CONFLICT DO UPDATE SET format = excluded.format, data = excluded.data""",
            [(*place, c.turn, c.index, FORMAT, encode(c)) for c in calls],
        )

    def end_session(self, run_id: str, execution_id: str, reason: str, at: datetime) -> None:
        """See `Writer.end_session`."""
        known = self.session(run_id, execution_id)
        if known is not None and (found := ended(known, reason, at)) is not None:
            self.put_session(found[0], calls=found[1])

    def take_action(self, agent: str, call: str, limit: int, since: datetime, now: datetime) -> bool:
        """See `Writer.take_action`."""
        if self._connection.execute("SELECT 1 FROM actions WHERE call = ?", (call,)).fetchone() is not None:
            return True
        sql = "SELECT count(*) FROM actions WHERE agent = ? AND at > ?"
        if self._connection.execute(sql, (agent, moment(since))).fetchone()[0] >= limit:
            return False
        self._connection.execute("DELETE FROM actions WHERE agent = ? AND at <= ?", (agent, moment(since)))
        self._connection.execute("INSERT INTO actions VALUES (?, ?, ?)", (call, agent, moment(now)))
        return True
