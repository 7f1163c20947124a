"""What became of telling people about gates, in SQLite."""

import sqlite3
from typing import Any, Final

from procedo.core.notice import Occasion, Telling
from procedo.stores.jsontext import instant, moment

__all__ = ["NoticeReader", "NoticeWriter"]

_TELLINGS: Final = """SELECT runs.id, gate, route, occasion, at, attempts, error, given_up
                      FROM tellings JOIN runs USING (run)"""
_PUT: Final = """INSERT INTO tellings SELECT run, ?, ?, ?, ?, ?, ?, ? FROM runs WHERE id = ?
                 ON CONFLICT DO UPDATE SET occasion = excluded.occasion, at = excluded.at,
                 attempts = excluded.attempts, error = excluded.error, given_up = excluded.given_up"""


def _telling(row: tuple[Any, ...]) -> Telling:
    run_id, gate, route, occasion, at, attempts, error, given_up = row
    return Telling(run_id, gate, route, Occasion(occasion), instant(at), attempts, error, bool(given_up))


class NoticeReader:
    """The part of a `Reader` that tells what became of notices."""

    _connection: sqlite3.Connection

    def tellings(self, run_id: str | None = None) -> tuple[Telling, ...]:
        """See `Reader.tellings`."""
        if run_id is None:
            rows = self._connection.execute(f"{_TELLINGS} WHERE error <> '' ORDER BY at, gate, route")
        else:
            rows = self._connection.execute(f"{_TELLINGS} WHERE runs.id = ? ORDER BY gate, route", (run_id,))
        return tuple(map(_telling, rows))


class NoticeWriter(NoticeReader):
    """The part of a `Writer` that keeps what became of notices."""

    def put_telling(self, telling: Telling) -> None:
        """See `Writer.put_telling`."""
        at, given_up = moment(telling.at), int(telling.given_up)
        row = (telling.gate_id, telling.route, telling.occasion.value, at, telling.attempts, telling.error, given_up)
        self._connection.execute(_PUT, (*row, telling.run_id))
