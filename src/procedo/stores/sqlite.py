"""The store in one SQLite file, shared by any number of processes on one machine.

Two connections, each with a thread of its own: writers wait for the lock of the file in theirs, and readers
never wait for writers. A whole transaction runs as one function in one of them.
"""

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from procedo.errors import StoreError
from procedo.ports import Reader, Writer
from procedo.stores.connection import Connect, immediate, open_connection, store_error
from procedo.stores.lane import Lane
from procedo.stores.recent import Recent
from procedo.stores.sqlite_reader import SqliteReader
from procedo.stores.sqlite_writer import SqliteWriter
from procedo.stores.watch import Watch

__all__ = ["SqliteStore"]

T = TypeVar("T")

PATIENCE_S: Final = 30.0
"""How long a transaction waits for another process that writes."""


class SqliteStore:
    """A `Store` in one SQLite file. Made by `open`."""

    def __init__(self, path: Path, patience_s: float, connect: Connect, remembered: int) -> None:
        self._path = path
        self._patience_s = patience_s
        self._connect = connect
        self._writing = Lane("procedo-write")
        self._reading = Lane("procedo-read")
        self._closing = threading.Event()
        self._connections: dict[Lane, sqlite3.Connection] = {}
        self._recent = Recent(remembered)
        self._watch = Watch(self._outside_version)

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        patience_s: float = PATIENCE_S,
        connect: Connect = sqlite3.connect,
        remembered: int = 64,
    ) -> "SqliteStore":
        """Open the store, making the file (0600) and its folder (0700) when they are missing.

        Raises `StoreError` when the record could not be kept there: there is no other place it falls back to.
        `patience_s` is how long a transaction waits for another process that writes; `remembered` how many live
        runs need not be read again as long as nobody else moves them.
        """
        store = cls(path, patience_s, connect, remembered)
        try:
            await store._writing.run(lambda: store._open(store._writing, reading=False))
            await store._reading.run(lambda: store._open(store._reading, reading=True))
            await store._watch.look()
        except BaseException:
            await store.close()
            raise
        return store

    def _open(self, lane: Lane, *, reading: bool) -> None:
        self._connections[lane] = open_connection(self._path, self._patience_s, self._connect, reading=reading)

    async def write(self, work: Callable[[Writer], T]) -> T:
        """See `Store.write`. A caller that is cancelled meanwhile does not learn whether it was committed."""
        self._check_open()
        seen = self._watch.generation
        result, jobs = await self._writing.run(lambda: self._transact(work))
        self._watch.saw_own(seen, jobs=jobs)
        return result

    async def read(self, work: Callable[[Reader], T]) -> T:
        """See `Store.read`."""
        self._check_open()
        seen = self._watch.generation
        result = await self._reading.run(lambda: self._inspect(work))
        self._watch.saw(seen)
        return result

    async def changed(self, seconds: float, *, jobs: bool = False) -> bool:
        """See `Store.changed`. Counts from this task's last `read` or `write`, so that nothing falls in between."""
        self._check_open()
        return await self._watch.changed(seconds, jobs=jobs)

    async def close(self) -> None:
        """See `Store.close`. Transactions that were begun are ended first."""
        if self._closing.is_set():
            return
        self._closing.set()
        for lane in (self._reading, self._writing):
            await lane.run(lambda lane=lane: self._shut(lane))  # type: ignore[misc]  # the default binds the loop variable
            lane.stop()

    def _check_open(self) -> None:
        if self._closing.is_set():
            raise StoreError("store_closed", f"The store {self._path} is closed.")

    def _shut(self, lane: Lane) -> None:
        connection = self._connections.pop(lane, None)
        if connection is not None:
            connection.close()

    # --- in the lanes' threads -------------------------------------------------------------------

    def _transact(self, work: Callable[[Writer], T]) -> tuple[T, bool]:
        """What `work` returns, and whether it put jobs."""
        connection = self._connections[self._writing]
        try:
            immediate(connection, self._path, self._patience_s, self._closing.is_set)
            try:
                writer = SqliteWriter(connection, self._recent)
                result = work(writer)
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise store_error(error, self._path) from error
        except UnicodeEncodeError as error:
            raise StoreError("no_text", f"A name or key cannot be kept: {error}.", "Use valid Unicode.") from error
        self._recent.keep(writer.saved)
        self._watch.committed(jobs=writer.put_some_jobs)
        return result, writer.put_some_jobs

    def _inspect(self, work: Callable[[Reader], T]) -> T:
        connection = self._connections[self._reading]
        try:
            connection.execute("BEGIN")
            try:
                return work(SqliteReader(connection, self._recent))
            finally:
                # Nothing was written; and unlike a commit this cannot fail and leave the snapshot open for ever.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise store_error(error, self._path) from error

    def _outside_version_now(self) -> int:
        # The writing connection's number moves with commits of others only, never with its own.
        return int(self._connections[self._writing].execute("PRAGMA data_version").fetchone()[0])

    async def _outside_version(self) -> int:
        self._check_open()
        return await self._writing.run(self._outside_version_now)
