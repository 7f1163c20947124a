"""Writes inside one immediate SQLite transaction."""

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, Final

from procedo.core.messages import Event
from procedo.core.model import EMPTY, Json
from procedo.core.state import Execution, Fan, Run
from procedo.errors import StoreError
from procedo.ports import Attribution, Claim, Definition, Job, StoredKey
from procedo.stores import sqlite_jobs
from procedo.stores.chain import GENESIS, Link
from procedo.stores.codec import FORMAT, Origin, encode
from procedo.stores.head import COLUMNS, columns
from procedo.stores.jsontext import moment, text
from procedo.stores.ledger import append, prepared
from procedo.stores.recent import Known, Recent
from procedo.stores.revision import Position, as_loaded, check, key_taken, sealed
from procedo.stores.sqlite_access import AccessWriter
from procedo.stores.sqlite_notices import NoticeWriter
from procedo.stores.sqlite_reader import SqliteReader
from procedo.stores.sqlite_sessions import SessionWriter

__all__ = ["SqliteWriter"]

_INLINE: Final = 512
"""Outputs up to this many characters are kept in the head row; longer ones stay with their execution only."""

_PUT_EXECUTION: Final = """INSERT INTO executions VALUES (?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET format = excluded.format, data = excluded.data"""
_PUT_GATE: Final = """INSERT INTO gates VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET open = excluded.open, waiting_since = excluded.waiting_since,
    format = excluded.format, data = excluded.data"""
_PUT_STEP: Final = """INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET visits = excluded.visits, executions = excluded.executions,
    completed = excluded.completed, output = excluded.output,
    opened_seq = excluded.opened_seq, completed_seq = excluded.completed_seq"""


_PUT_ITEM: Final = """INSERT INTO fan_items VALUES (?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET execution = excluded.execution, output = excluded.output"""
_STILL_NEEDED: Final = """WITH RECURSIVE needed(run, id) AS (
        SELECT below.run, below.id
        FROM pruning CROSS JOIN runs AS below USING (run) CROSS JOIN runs AS above ON above.id = below.parent_run
        WHERE above.run NOT IN (SELECT run FROM pruning)
        UNION SELECT below.run, below.id FROM needed CROSS JOIN runs AS below ON below.parent_run = needed.id
    )
    SELECT run FROM needed"""
"""Runs to be pruned that work for one which stays, as `core.retention` has it."""


@cache
def _update_head(changed: tuple[str, ...]) -> str:
    # Only columns that change are named: SQLite rewrites every index of a column that an UPDATE mentions.
    return f"UPDATE runs SET {', '.join(f'{name} = ?' for name in changed)} WHERE run = ?"  # noqa: S608  # our columns


def _own_output(output: Json, execution: Execution | None) -> str | None:
    """The text to keep of an output, or None when it is the very one that its execution keeps."""
    if execution is not None and execution.closing is not None and execution.closing.output is output:
        return None
    return text(output)


def _position(head: Mapping[str, Any]) -> Position:
    return Position(head["revision"], head["seq"], head["head_hash"].hex(), head["ended_at"] is not None)


def _last_output(run: Run) -> dict[str, str | None]:
    """The columns of the run's last output."""
    written = text(run.last_output)
    if len(written) > _INLINE:
        for execution in run.executions.values():
            if execution.closing is not None and execution.closing.output is run.last_output:
                return {"last_output": None, "last_output_of": execution.id}
    return {"last_output": written, "last_output_of": None}


class SqliteWriter(SqliteReader, AccessWriter, NoticeWriter, SessionWriter):
    """A `Writer` on one connection; lives as long as its transaction."""

    def __init__(self, connection: sqlite3.Connection, recent: Recent) -> None:
        super().__init__(connection, recent)
        self._saved: dict[str, Known] = {}
        self.put_some_jobs = False
        """Whether there is a job now that could be claimed earlier than was known before."""

    @property
    def saved(self) -> Mapping[str, Known]:
        """The runs that were saved in this transaction; true once it is committed."""
        return self._saved

    def save(self, before: Run | None, after: Run, events: Sequence[Event], who: Attribution, now: datetime) -> Run:
        """See `Writer.save`."""
        known = self._find(after.id)
        check(None if known is None else _position(known.head), before, after, events)
        previous = GENESIS if known is None else known.head["head_hash"]
        row = prepared(Link(after.id, after.revision, now, who), after.seq, events, previous)
        values = dict(zip(COLUMNS, columns(after, row[-1]), strict=True))
        if before is None or after.last_output is not before.last_output:
            values |= _last_output(after)
        number = self._begin(after, values) if known is None else self._overwrite(known, values)
        append(self._connection, number, row)
        self._put_executions(number, before, after)
        self._put_steps(number, before, after)
        self._put_gates(number, before, after)
        self._put_fans(number, before, after)
        after = sealed(after, row[-1])
        head = {"last_output": None, "last_output_of": None, **({} if known is None else known.head), **values}
        self._known[after.id] = self._saved[after.id] = Known(
            number, head, as_loaded(after), after.executions, after.steps
        )
        return after

    def _begin(self, run: Run, values: dict[str, Any]) -> int:
        sql = f"INSERT INTO runs ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})"  # noqa: S608  # columns
        number = self._connection.execute(sql, tuple(values.values())).lastrowid
        if number is None:
            raise StoreError("no_row", f"Run {run.id} was not stored.")
        origin = (number, FORMAT, encode(Origin.of(run)))
        self._connection.execute("INSERT INTO origins VALUES (?, ?, ?)", origin)
        return number

    def _overwrite(self, known: Known, values: dict[str, Any]) -> int:
        changed = {name: value for name, value in values.items() if known.head[name] != value}
        self._connection.execute(_update_head(tuple(changed)), (*changed.values(), known.number))
        return known.number

    def _put_executions(self, number: int, before: Run | None, after: Run) -> None:
        known = EMPTY if before is None else before.executions
        ord_ = 0 if before is None else before.seq
        rows = []
        for execution in after.executions.values():
            if known.get(execution.id) is not execution:
                ord_ += execution.id not in known
                rows.append((number, execution.id, ord_, FORMAT, encode(execution)))
        if rows:
            self._connection.executemany(_PUT_EXECUTION, rows)

    def _put_gates(self, number: int, before: Run | None, after: Run) -> None:
        known = EMPTY if before is None else before.gates
        ord_ = 0 if before is None else before.seq
        rows = []
        for gate in after.gates.values():
            if known.get(gate.id) is not gate:
                ord_ += gate.id not in known
                since = moment(gate.waiting_since)
                rows.append((gate.id, number, ord_, gate.code, gate.live, since, FORMAT, encode(gate)))
        if rows:
            self._connection.executemany(_PUT_GATE, rows)

    def _put_steps(self, number: int, before: Run | None, after: Run) -> None:
        known = EMPTY if before is None else before.steps
        rows = []
        for step, state in after.steps.items():
            if known.get(step) is not state:
                output = None
                if state.completed is not None:
                    output = _own_output(state.output, after.executions.get(state.completed))
                counts = (state.visits, state.executions, state.completed, output)
                rows.append((number, step, *counts, state.opened_seq, state.completed_seq))
        if rows:
            self._connection.executemany(_PUT_STEP, rows)

    def _put_fans(self, number: int, before: Run | None, after: Run) -> None:
        known = EMPTY if before is None else before.fans
        for step in known.keys() - after.fans.keys():
            self._drop_fan(number, step)
        for step, fan in after.fans.items():
            old = known.get(step)
            if old is fan:
                continue
            if old is not None and (old.items is not fan.items or old.arrival != fan.arrival):
                self._drop_fan(number, step)
                old = None
            self._put_fan(number, step, old, fan, after)

    def _drop_fan(self, number: int, step: int) -> None:
        self._connection.execute("DELETE FROM fans WHERE run = ? AND step = ?", (number, step))

    def _put_fan(self, number: int, step: int, old: Fan | None, fan: Fan, run: Run) -> None:
        if old is None:
            row = (number, step, fan.following, FORMAT, encode(fan.arrival), text(fan.items))
            self._connection.execute("INSERT INTO fans VALUES (?, ?, ?, ?, ?, ?)", row)
        elif old.following != fan.following:
            sql = "UPDATE fans SET following = ? WHERE run = ? AND step = ?"
            self._connection.execute(sql, (fan.following, number, step))
        done = EMPTY if old is None else old.done
        rows = []
        for item, execution_id in fan.done.items():
            if done.get(item) != execution_id:
                output = _own_output(fan.outputs[item], run.executions.get(execution_id))
                rows.append((number, step, item, execution_id, output))
        if rows:
            self._connection.executemany(_PUT_ITEM, rows)

    # --- beside the run --------------------------------------------------------------------------

    def put_definition(self, definition: Definition) -> None:
        """See `Writer.put_definition`."""
        row = (definition.digest, definition.name, text(definition.files))
        self._connection.execute("INSERT INTO definitions VALUES (?, ?, ?) ON CONFLICT DO NOTHING", row)

    def put_key(self, key: StoredKey) -> None:
        """See `Writer.put_key`."""
        known = self.key(key.scope, key.key)
        if known is None:
            row = (key.scope, key.key, key.digest, key.run_id)
            self._connection.execute("INSERT INTO keys VALUES (?, ?, ?, ?)", row)
        elif known != key:
            raise key_taken(known)

    def put_jobs(self, jobs: Sequence[Job]) -> None:
        """See `Writer.put_jobs`."""
        self.put_some_jobs = True
        sqlite_jobs.put(self._connection, jobs)

    def claim_job(self, owner: str, now: datetime, until: datetime) -> Claim | None:
        """See `Writer.claim_job`."""
        return sqlite_jobs.claim(self._connection, owner, now, until)

    def renew_job(self, claim: Claim, now: datetime, until: datetime) -> bool:
        """See `Writer.renew_job`."""
        del now  # only the fence counts: a claim that ran out and that nobody else took is still the newest
        return sqlite_jobs.renew(self._connection, claim, until)

    def finish_job(self, claim: Claim) -> bool:
        """See `Writer.finish_job`."""
        return sqlite_jobs.finish(self._connection, claim)

    def postpone_job(self, claim: Claim, due_at: datetime) -> bool:
        """See `Writer.postpone_job`."""
        self.put_some_jobs = True
        return sqlite_jobs.postpone(self._connection, claim, due_at)

    def touch(self) -> None:
        """See `Writer.touch`."""
        self._connection.execute("INSERT INTO pulse VALUES (1, 1) ON CONFLICT DO UPDATE SET beats = beats + 1")

    def prune(self, ended_before: datetime) -> int:
        """See `Writer.prune`."""
        run = self._connection.execute
        run("INSERT INTO pruning SELECT run FROM runs WHERE ended_at < ?", (moment(ended_before),))
        run(f"DELETE FROM pruning WHERE run IN ({_STILL_NEEDED})")  # noqa: S608  # a constant
        mine = "IN (SELECT id FROM runs JOIN pruning USING (run))"
        run(f"DELETE FROM jobs WHERE run_id {mine}")  # noqa: S608  # a constant
        run(f"DELETE FROM keys WHERE run_id {mine}")  # noqa: S608  # a constant
        count = run("DELETE FROM runs WHERE run IN (SELECT run FROM pruning)").rowcount
        run("DELETE FROM pruning")
        # A run keeps its own definition and those of the sub-procedures that it pinned.
        run(
            """DELETE FROM definitions WHERE digest NOT IN (SELECT digest FROM runs)
               AND digest NOT IN (SELECT value FROM origins, json_each(origins.data, '$.pins'))"""
        )
        self._known.clear()
        return count
