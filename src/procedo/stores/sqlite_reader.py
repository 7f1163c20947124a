"""Reads inside one SQLite transaction."""

import sqlite3
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from procedo.core.admission import Load
from procedo.core.altered import altered
from procedo.core.model import EMPTY, Json
from procedo.core.state import Arrival, Execution, Fan, Gate, Run, Status, StepState
from procedo.ports import Definition, Filter, OpenGate, Record, StoredKey, Summary
from procedo.stores import sqlite_jobs
from procedo.stores.codec import Body, Origin, decode
from procedo.stores.head import COLUMNS, SUMMARY, run_of, summary
from procedo.stores.jsontext import instant, moment, parsed
from procedo.stores.ledger import missing, records
from procedo.stores.recent import Known, Recent
from procedo.stores.sqlite_access import AccessReader
from procedo.stores.sqlite_notices import NoticeReader
from procedo.stores.sqlite_sessions import SessionReader

__all__ = ["SqliteReader"]

_HEAD: Final = (*(f"runs.{name}" for name in COLUMNS), "runs.last_output", "runs.last_output_of")
_RUN: Final = (
    f"SELECT run, origins.format, origins.data, {', '.join(_HEAD)} FROM runs JOIN origins USING (run) WHERE id = ?"  # noqa: S608  # names of our own columns
)
_NAMES: Final = (*COLUMNS, "last_output", "last_output_of")
_SUMMARIES: Final = f"SELECT {SUMMARY} FROM runs"  # noqa: S608  # names of our own columns
_GATES: Final = "SELECT runs.id, runs.sop, runs.digest, gates.format, gates.data FROM gates JOIN runs USING (run)"


def _outcome(data: str) -> Json:
    """The output in the stored text of a closed execution."""
    closing = parsed(data).get("closing")
    return None if closing is None else closing.get("output")


def _open_gate(row: tuple[str, str, str, int, str]) -> OpenGate:
    run_id, sop, digest, version, data = row
    return OpenGate(run_id, sop, digest, decode(Gate, parsed(data), version))


class SqliteReader(AccessReader, NoticeReader, SessionReader):
    """A `Reader` on one connection; lives as long as its transaction."""

    def __init__(self, connection: sqlite3.Connection, recent: Recent) -> None:
        self._connection = connection
        self._recent = recent
        self._known: dict[str, Known] = {}

    # --- one run ---------------------------------------------------------------------------------

    def run(self, run_id: str) -> Run | None:
        """See `Reader.run`."""
        known = self._find(run_id)
        return None if known is None else known.run

    def _find(self, run_id: str) -> Known | None:
        """A run as it is in this transaction."""
        if run_id in self._known:
            return self._known[run_id]
        known = self._recent.get(run_id)
        if known is not None:
            row = self._connection.execute("SELECT head_hash FROM runs WHERE run = ?", (known.number,)).fetchone()
            if row is None or row[0] != known.head["head_hash"]:
                known = None
        known = known or self._read(run_id)
        if known is not None:
            self._known[run_id] = known
        return known

    def _read(self, run_id: str) -> Known | None:
        row = self._connection.execute(_RUN, (run_id,)).fetchone()
        if row is None:
            return None
        number, version, origin = row[:3]
        head = dict(zip(_NAMES, row[3:], strict=True))
        body = decode(Body, parsed(head["body"]), head["format"])
        run = run_of(
            head,
            body,
            decode(Origin, parsed(origin), version),
            self._last_output(number, head),
            {id_: self._execution(number, id_) for id_ in body.executions},
            {id_: self._gate(number, id_) for id_ in body.gates},
            self._fans(number) if head["fans"] else EMPTY,
        )
        return Known(number, head, run, EMPTY, EMPTY)

    def _number(self, run_id: str) -> int | None:
        known = self._known.get(run_id) or self._recent.get(run_id)
        if known is not None:
            return known.number
        row = self._connection.execute("SELECT run FROM runs WHERE id = ?", (run_id,)).fetchone()
        return None if row is None else row[0]

    def _last_output(self, number: int, head: Mapping[str, Any]) -> Json:
        if head["last_output_of"] is None:
            return None if head["last_output"] is None else parsed(head["last_output"])
        return self._output(number, head["last_output_of"])

    def _output(self, number: int, execution_id: str) -> Json:
        sql = "SELECT data FROM executions WHERE run = ? AND id = ?"
        row = self._connection.execute(sql, (number, execution_id)).fetchone()
        return None if row is None else _outcome(row[0])

    def _stored_execution(self, number: int | None, execution_id: str) -> Execution | None:
        sql = "SELECT format, data FROM executions WHERE run = ? AND id = ?"
        row = self._connection.execute(sql, (number, execution_id)).fetchone()
        return None if row is None else decode(Execution, parsed(row[1]), row[0])

    def _execution(self, number: int, execution_id: str) -> Execution:
        found = self._stored_execution(number, execution_id)
        if found is None:
            raise missing(f"execution {execution_id}")
        return found

    def _gate(self, number: int | None, gate_id: str) -> Gate:
        row = self._connection.execute(
            "SELECT format, data FROM gates WHERE id = ? AND run = ?", (gate_id, number)
        ).fetchone()
        if row is None:
            raise missing(f"gate {gate_id}")
        return decode(Gate, parsed(row[1]), row[0])

    def _fans(self, number: int) -> Mapping[int, Fan]:
        sql = "SELECT step, following, format, arrival, items FROM fans WHERE run = ? ORDER BY step"
        fans = {}
        for step, following, version, arrival, items in self._connection.execute(sql, (number,)).fetchall():
            done, outputs = self._fan_items(number, step)
            where = decode(Arrival, parsed(arrival), version)
            fans[step] = Fan(where, tuple(parsed(items)), following, done, outputs)
        return fans

    def _fan_items(self, number: int, step: int) -> tuple[dict[int, str], dict[int, Json]]:
        sql = """SELECT i.item, i.execution, i.output, e.data
                 FROM fan_items AS i LEFT JOIN executions AS e ON e.run = i.run AND e.id = i.execution
                 WHERE i.run = ? AND i.step = ? ORDER BY i.item"""
        done: dict[int, str] = {}
        outputs: dict[int, Json] = {}
        for item, execution, output, data in self._connection.execute(sql, (number, step)):
            done[item] = execution
            outputs[item] = parsed(output) if output is not None else _outcome(data)
        return done, outputs

    def with_steps(self, run: Run, steps: Iterable[int]) -> Run:
        """See `Reader.with_steps`."""
        number = self._number(run.id)
        known = self._fresh(run)
        fresh = EMPTY if known is None else known.steps
        sql = """SELECT s.visits, s.executions, s.completed, s.output, s.opened_seq, s.completed_seq, e.data
                 FROM steps AS s LEFT JOIN executions AS e ON e.run = s.run AND e.id = s.completed
                 WHERE s.run = ? AND s.step = ?"""
        states = dict(run.steps)
        for step in steps:
            if step in fresh:
                states[step] = fresh[step]
                continue
            row = self._connection.execute(sql, (number, step)).fetchone()
            if row is None:
                states[step] = StepState()
                continue
            visits, executions, completed, output, opened_seq, completed_seq, data = row
            value = parsed(output) if output is not None else None if data is None else _outcome(data)
            states[step] = StepState(visits, executions, completed, value, opened_seq, completed_seq)
        return altered(run, steps=states)

    def _fresh(self, run: Run) -> Known | None:
        """What is known of a run at this very revision."""
        known = self._known.get(run.id)
        return known if known is not None and known.run.head_hash == run.head_hash else None

    def with_executions(self, run: Run, ids: Iterable[str]) -> Run:
        """See `Reader.with_executions`."""
        number = self._number(run.id)
        known = self._fresh(run)
        fresh = EMPTY if known is None else known.executions
        executions = dict(run.executions)
        for execution_id in ids:
            if execution_id not in executions:
                found = fresh.get(execution_id) or self._stored_execution(number, execution_id)
                if found is not None:
                    executions[execution_id] = found
        return altered(run, executions=executions)

    def with_gate(self, run: Run, gate_id: str) -> Run:
        """See `Reader.with_gate`."""
        if gate_id in run.gates:
            return run
        sql = "SELECT format, data FROM gates WHERE id = ? AND run = ?"
        row = self._connection.execute(sql, (gate_id, self._number(run.id))).fetchone()
        if row is None:
            return run
        return altered(run, gates={**run.gates, gate_id: decode(Gate, parsed(row[1]), row[0])})

    def executions(self, run_id: str) -> tuple[Execution, ...]:
        """See `Reader.executions`."""
        sql = "SELECT format, data FROM executions WHERE run = ? ORDER BY ord"
        rows = self._connection.execute(sql, (self._number(run_id),))
        return tuple(decode(Execution, parsed(data), version) for version, data in rows)

    def gates(self, run_id: str) -> tuple[Gate, ...]:
        """See `Reader.gates`."""
        sql = "SELECT format, data FROM gates WHERE run = ? ORDER BY ord"
        rows = self._connection.execute(sql, (self._number(run_id),))
        return tuple(decode(Gate, parsed(data), version) for version, data in rows)

    def records(self, run_id: str, after: int = 0, limit: int | None = None) -> tuple[Record, ...]:
        """See `Reader.records`."""
        number = self._number(run_id)
        return () if number is None else records(self._connection, run_id, number, after, limit)

    # --- across runs -----------------------------------------------------------------------------

    def find_gate(self, reference: str) -> tuple[OpenGate, ...]:
        """See `Reader.find_gate`."""
        sql = (
            f"{_GATES} WHERE gates.id = ?1 OR gates.code = ?1 ORDER BY gates.open DESC, gates.run DESC, gates.ord DESC"
        )
        return tuple(map(_open_gate, self._connection.execute(sql, (reference,))))

    def open_gates(self) -> tuple[OpenGate, ...]:
        """See `Reader.open_gates`."""
        sql = f"{_GATES} WHERE gates.open = 1 ORDER BY gates.waiting_since, gates.id"
        found = map(_open_gate, self._connection.execute(sql))
        return tuple(one for one in found if one.gate.open)

    def runs(self, wanted: Filter) -> tuple[Summary, ...]:
        """See `Reader.runs`."""
        # Live runs are few and are sorted; ended ones come in order from their index, as many as are asked for.
        tests, values = [], []
        for column, value in (("sop", wanted.sop), ("status", wanted.status)):
            if value is not None:
                tests.append(f" AND {column} = ?")
                values.append(str(value))
        found = []
        if wanted.live is not False:
            sql = f"{_SUMMARIES} WHERE ended_at IS NULL{''.join(tests)} ORDER BY active_at DESC, run DESC LIMIT ?"
            found += self._connection.execute(sql, (*values, wanted.limit)).fetchall()
        if wanted.live is not True:
            sql = f"{_SUMMARIES} WHERE ended_at IS NOT NULL{''.join(tests)} ORDER BY ended_at DESC, run DESC LIMIT ?"
            found += self._connection.execute(sql, (*values, wanted.limit)).fetchall()
        summaries = [summary(row) for row in found]
        summaries.sort(key=lambda one: one.active_at, reverse=True)
        return tuple(summaries[: wanted.limit])

    def counts(self, sop: str | None = None) -> Mapping[Status, int]:
        """See `Reader.counts`."""
        test, values = ("", ()) if sop is None else (" AND sop = ?", (sop,))
        found = dict.fromkeys(Status, 0)
        for state in ("IS NULL", "IS NOT NULL"):
            sql = f"SELECT status, count(*) FROM runs WHERE ended_at {state}{test} GROUP BY status"  # noqa: S608  # two constants
            for status, count in self._connection.execute(sql, values):
                found[Status(status)] += count
        return found

    def sops(self) -> tuple[str, ...]:
        """See `Reader.sops`."""
        return tuple(name for (name,) in self._connection.execute("SELECT DISTINCT sop FROM runs ORDER BY sop"))

    def children(self, run_id: str) -> tuple[Summary, ...]:
        """See `Reader.children`."""
        rows = self._connection.execute(f"{_SUMMARIES} WHERE parent_run = ? ORDER BY run", (run_id,))
        return tuple(map(summary, rows))

    def load(self, sop: str, key: str | None, window_start: datetime | None) -> Load:
        """See `Reader.load`."""
        live = "SELECT id FROM runs WHERE sop = ? AND ended_at IS NULL AND slot = ? ORDER BY run"
        last = "SELECT max(ended_at) FROM runs WHERE sop = ? AND status = 'completed' AND ended_at IS NOT NULL"
        completed = self._connection.execute(last, (sop,)).fetchone()[0]
        return Load(
            executing=self._ids(live, sop, 1),
            executing_total=self._ids("SELECT id FROM runs WHERE slot = 1 ORDER BY run"),
            parked=self._ids(live, sop, 0),
            last_completed_at=None if completed is None else instant(completed),
            key_holder=None if key is None else self._key_holder(sop, key),
            window_starts=0 if window_start is None else self._starts_since(sop, window_start),
        )

    def _ids(self, sql: str, *values: Any) -> tuple[str, ...]:
        return tuple(row[0] for row in self._connection.execute(sql, values))

    def _key_holder(self, sop: str, key: str) -> str | None:
        sql = "SELECT id FROM runs WHERE sop = ? AND key = ? AND ended_at IS NULL ORDER BY run LIMIT 1"
        row = self._connection.execute(sql, (sop, key)).fetchone()
        return None if row is None else row[0]

    def _starts_since(self, sop: str, start: datetime) -> int:
        sql = "SELECT count(*) FROM runs WHERE sop = ? AND started_at > ?"
        return int(self._connection.execute(sql, (sop, moment(start))).fetchone()[0])

    def slot_waiters(self) -> tuple[str, ...]:
        """See `Reader.slot_waiters`."""
        return self._ids("SELECT id FROM runs WHERE slot_since IS NOT NULL ORDER BY slot_since, run")

    def due_runs(self, now: datetime) -> tuple[str, ...]:
        """See `Reader.due_runs`."""
        return self._ids("SELECT id FROM runs WHERE due_at <= ? ORDER BY due_at, run", moment(now))

    def run_ids(self) -> tuple[str, ...]:
        """See `Reader.run_ids`."""
        return self._ids("SELECT id FROM runs ORDER BY run")

    def definition(self, digest: str) -> Definition | None:
        """See `Reader.definition`."""
        row = self._connection.execute("SELECT name, files FROM definitions WHERE digest = ?", (digest,)).fetchone()
        return None if row is None else Definition(digest, row[0], parsed(row[1]))

    def key(self, scope: str, key: str) -> StoredKey | None:
        """See `Reader.key`."""
        sql = "SELECT digest, run_id FROM keys WHERE scope = ? AND key = ?"
        row = self._connection.execute(sql, (scope, key)).fetchone()
        return None if row is None else StoredKey(scope, key, row[0], row[1])

    def next_job_at(self, now: datetime) -> datetime | None:
        """See `Reader.next_job_at`."""
        return sqlite_jobs.next_at(self._connection, now)

    def jobs_waiting(self, now: datetime) -> Mapping[str, int]:
        """See `Reader.jobs_waiting`."""
        return sqlite_jobs.waiting(self._connection, now)
