"""Opening the file: who may have it, how safe it is, which schema it has. Refuses rather than guesses."""

import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from procedo.errors import StoreError

__all__ = [
    "APPLICATION_ID",
    "SCHEMA_VERSION",
    "Connect",
    "immediate",
    "migrations",
    "open_connection",
    "store_error",
    "stored_version",
]

APPLICATION_ID: Final = 0x70726364
"""`prcd`, in the file's header: a file of anybody else is never written to."""

SCHEMA_VERSION: Final = 6

_SLICE_MS: Final = 100
_WAL_PAGES: Final = 4000
_WAL_BYTES: Final = 16 * 1024 * 1024

Connect = Callable[..., sqlite3.Connection]

_HINTS: Final = {
    "SQLITE_FULL": "Free some space on that disk; nothing was lost, and work goes on where it stopped.",
    "SQLITE_READONLY": "Make the file and its folder writable for the user that runs procedo.",
    "SQLITE_CANTOPEN": "Check that the folder exists and that the user that runs procedo may write there.",
    "SQLITE_IOERR": "The disk or file system reported an error: check it before going on.",
    "SQLITE_CORRUPT": "Stop every procedo, copy the file away, then restore a backup or run `sqlite3 FILE .recover`.",
    "SQLITE_NOTADB": "Move that file away, or choose another workspace.",
    "SQLITE_BUSY": "Look for a hung procedo, a backup program or an open sqlite3 shell on it (see `fuser FILE`).",
}


def store_error(error: sqlite3.Error, path: Path | str) -> StoreError:
    """What a database error means for a person."""
    name = getattr(error, "sqlite_errorname", None) or type(error).__name__
    hint = next((text for prefix, text in _HINTS.items() if name.startswith(prefix)), "Nothing was changed.")
    return StoreError(name.lower(), f"The store {path} cannot keep or give the record: {error} ({name}).", hint)


def busy(error: sqlite3.Error) -> bool:
    """True when somebody else holds a lock, so that trying again is right."""
    return str(getattr(error, "sqlite_errorname", "")).startswith(("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL"))


def immediate(
    connection: sqlite3.Connection, path: Path | str, patience_s: float, closing: Callable[[], bool] = lambda: False
) -> None:
    """Begin an immediate transaction, trying again while another process writes, for so many seconds.

    Raises `StoreError` when the lock was held for longer, or when the store is being closed.
    """
    until = time.monotonic() + patience_s
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if not busy(error):
                raise
            if closing():
                raise StoreError("store_closed", f"The store {path} was closed meanwhile.") from error
            if time.monotonic() >= until:
                message = f"Another process has been writing to {path} for more than {patience_s:g} s."
                raise StoreError("store_busy", message, _HINTS["SQLITE_BUSY"]) from error
            # Two writers that wait in step would meet again and again.
            time.sleep(random.uniform(0.0005, 0.005))  # noqa: S311  # no secret
        else:
            return


def migrations() -> list[tuple[int, str]]:
    """The numbered steps from an empty file to today's schema."""
    folder = Path(__file__).with_name("migrations")
    return sorted((int(entry.name[:4]), entry.read_text("utf-8")) for entry in folder.glob("*.sql"))


def _statements(script: str) -> Iterator[str]:
    """The statements of a script, one by one: `executescript` would commit what is open."""
    pending = ""
    for line in script.splitlines(keepends=True):
        if not pending and (not line.strip() or line.lstrip().startswith("--")):
            continue
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
    if pending.strip():
        yield pending


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])


def _check_owner(connection: sqlite3.Connection, path: Path) -> int:
    """The schema version of the file; raises when it is somebody else's or from the future."""
    owner, version = _number(connection, "application_id"), _number(connection, "user_version")
    empty = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0
    if owner != APPLICATION_ID and not (empty and owner == 0 and version == 0):
        message = f"{path} is a database of another program."
        raise StoreError("not_our_file", message, "Move that file away, or choose another workspace.")
    if version > SCHEMA_VERSION:
        message = f"{path} has schema version {version}, and this procedo knows versions up to {SCHEMA_VERSION}."
        raise StoreError("newer_schema", message, "A newer procedo wrote it: update this one.")
    return version


def _migrate(connection: sqlite3.Connection, path: Path, patience_s: float) -> None:
    """Bring the file to today's schema; each step and its record are one commit."""
    if _check_owner(connection, path) == SCHEMA_VERSION:
        return
    for number, script in migrations():
        immediate(connection, path, patience_s)
        try:
            # Another process may have been here while we waited.
            if _check_owner(connection, path) < number:
                for statement in _statements(script):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {number}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _write_ahead(connection: sqlite3.Connection, path: Path, patience_s: float) -> None:
    """Turn the write-ahead log on. Only one process can do that at a time, so others are waited for."""
    until = time.monotonic() + patience_s
    while True:
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        except sqlite3.OperationalError as error:
            if not busy(error) or time.monotonic() >= until:
                raise
            time.sleep(random.uniform(0.0005, 0.005))  # noqa: S311  # no secret
        else:
            break
    if mode != "wal":
        message = f"{path} cannot use a write-ahead log: its file system offers no shared memory (mode {mode!r})."
        raise StoreError("no_wal", message, "Put the workspace on a local disk.")


def _prepare_file(path: Path) -> None:
    """Make folder and file readable for their owner alone; the log files take over the mode of the file."""
    if not path.parent.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    if path.stat().st_mode & 0o077:
        path.chmod(0o600)


def _connected(path: Path, connect: Connect) -> sqlite3.Connection:
    connection = connect(
        path, timeout=_SLICE_MS / 1000, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    for pragma in (
        # A transition touches half a dozen pages; small ones make its commit cheaper. Counts for a new file only.
        "page_size = 2048",
        "foreign_keys = ON",
        "recursive_triggers = ON",
        "trusted_schema = OFF",
        "synchronous = FULL",
        f"wal_autocheckpoint = {_WAL_PAGES}",
        f"journal_size_limit = {_WAL_BYTES}",
    ):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def open_connection(
    path: Path, patience_s: float, connect: Connect = sqlite3.connect, *, reading: bool = False
) -> sqlite3.Connection:
    """A connection to the store's file, which is made and migrated as needed.

    Raises `StoreError` when the file cannot be written durably, is not ours, or is newer than this procedo.
    """
    opened: list[Any] = []
    try:
        if not reading:
            _prepare_file(path)
        connection = _connected(path, connect)
        opened.append(connection)
        if reading:
            connection.execute(f"PRAGMA busy_timeout = {int(patience_s * 1000)}")
            connection.execute("PRAGMA query_only = ON")
        else:
            _check_owner(connection, path)
            _write_ahead(connection, path, patience_s)
            _migrate(connection, path, patience_s)
            _check_writable(connection, path, patience_s)
    except BaseException as error:
        for connection in opened:
            connection.close()
        if isinstance(error, sqlite3.Error):
            raise store_error(error, path) from error
        if isinstance(error, OSError):
            reason = error.strerror or str(error)
            raise StoreError(
                "cannot_open", f"The store {path} cannot be opened: {reason}.", _HINTS["SQLITE_CANTOPEN"]
            ) from error
        raise
    return connection


def stored_version(path: Path) -> int | None:
    """The schema version of a store as it lies there, which changes nothing. None: unreadable, or none of ours."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=0)) as connection:
            return _check_owner(connection, path)
    except (sqlite3.Error, StoreError):
        return None


def _check_writable(connection: sqlite3.Connection, path: Path, patience_s: float) -> None:
    """Find out now, and not at the first report, that the file cannot be written."""
    immediate(connection, path, patience_s)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("ROLLBACK")
