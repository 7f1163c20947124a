"""The embedded carrier's jobs in SQLite. A job that is done stays as a small stub, so its id is never taken again."""

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from procedo.ports import Claim, Job
from procedo.stores.jsontext import instant, moment, parsed, text

__all__ = ["claim", "finish", "next_at", "postpone", "put", "renew", "waiting"]

_MINE: Final = "WHERE id = ? AND fence = ? AND owner IS NOT NULL AND done = 0"
_PUT: Final = """INSERT INTO jobs (id, kind, run_id, subject, due_at, payload, ready_at) VALUES (?, ?, ?, ?, ?, ?, ?)
                 ON CONFLICT (id) DO NOTHING"""


def put(connection: sqlite3.Connection, jobs: Sequence[Job]) -> None:
    """Add jobs; an id that was ever added changes nothing."""
    rows = []
    for job in jobs:
        due = None if job.due_at is None else moment(job.due_at)
        payload = None if job.payload is None else text(job.payload)
        rows.append((job.id, job.kind, job.run_id, job.subject, due, payload, due or ""))
    connection.executemany(_PUT, rows)


def claim(connection: sqlite3.Connection, owner: str, now: datetime, until: datetime) -> Claim | None:
    """Claim the job that has been ready longest."""
    sql = """SELECT job, id, kind, run_id, subject, due_at, payload, fence FROM jobs
             WHERE done = 0 AND ready_at <= ? ORDER BY ready_at, job LIMIT 1"""
    row = connection.execute(sql, (moment(now),)).fetchone()
    if row is None:
        return None
    number, job_id, kind, run_id, subject, due_at, payload, fence = row
    taken = "UPDATE jobs SET owner = ?, fence = fence + 1, ready_at = ? WHERE job = ?"
    connection.execute(taken, (owner, moment(until), number))
    due = None if due_at is None else instant(due_at)
    job = Job(job_id, kind, run_id, subject, due, None if payload is None else parsed(payload))
    return Claim(job, fence + 1, until, fence + 1)


def renew(connection: sqlite3.Connection, mine: Claim, until: datetime) -> bool:
    """Prolong a claim; False when it is not the newest."""
    sql = f"UPDATE jobs SET ready_at = ? {_MINE}"  # noqa: S608  # a constant
    return connection.execute(sql, (moment(until), mine.job.id, mine.fence)).rowcount == 1


def finish(connection: sqlite3.Connection, mine: Claim) -> bool:
    """Mark a job as done; False when the claim is not the newest."""
    sql = f"UPDATE jobs SET done = 1, owner = NULL, payload = NULL, ready_at = '' {_MINE}"  # noqa: S608  # a constant
    return connection.execute(sql, (mine.job.id, mine.fence)).rowcount == 1


def postpone(connection: sqlite3.Connection, mine: Claim, due_at: datetime) -> bool:
    """Give a job back until `due_at`; False when the claim is not the newest."""
    sql = f"UPDATE jobs SET owner = NULL, due_at = ?, ready_at = ? {_MINE}"  # noqa: S608  # a constant
    due = moment(due_at)
    return connection.execute(sql, (due, due, mine.job.id, mine.fence)).rowcount == 1


def next_at(connection: sqlite3.Connection, now: datetime) -> datetime | None:
    """When the next job becomes claimable; a job that is ready already gives `now`."""
    row = connection.execute("SELECT ready_at FROM jobs WHERE done = 0 ORDER BY ready_at, job LIMIT 1").fetchone()
    if row is None:
        return None
    return max(now, instant(row[0])) if row[0] else now


def waiting(connection: sqlite3.Connection, now: datetime) -> dict[str, int]:
    """How many jobs of each kind are claimable now."""
    sql = "SELECT kind, count(*) FROM jobs WHERE done = 0 AND ready_at <= ? GROUP BY kind"
    return dict(connection.execute(sql, (moment(now),)).fetchall())
