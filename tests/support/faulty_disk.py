"""A disk that fails at one chosen write, whichever it is."""

import sqlite3
from pathlib import Path
from typing import Any, Final

__all__ = ["FaultyDisk"]

_WRITES: Final = ("BEGIN IMMEDIATE", "INSERT", "UPDATE", "DELETE", "COMMIT")


class FaultyDisk:
    """Fails at the `nth` write from now on, once; 0 fails nowhere. `failed` is the statement that failed."""

    def __init__(self) -> None:
        self.nth = 0
        self.failed = ""

    def _meet(self, sql: str) -> None:
        if self.nth and sql.lstrip().startswith(_WRITES):
            self.nth -= 1
            if not self.nth:
                self.failed = " ".join(sql.split()[:3])
                raise sqlite3.OperationalError("disk I/O error")

    def connect(self, path: Path, **options: Any) -> sqlite3.Connection:
        """A connection to a file on this disk."""
        disk = self

        class Connection(sqlite3.Connection):
            def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
                disk._meet(sql)
                return super().execute(sql, *parameters)

            def executemany(self, sql: str, parameters: Any, /) -> sqlite3.Cursor:
                disk._meet(sql)
                return super().executemany(sql, parameters)

        made: sqlite3.Connection = sqlite3.connect(path, factory=Connection, **options)
        return made
