"""A workspace with small procedures, opened as often as a test likes: each opening is a process's view of one file."""

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Final

from host import HOST
from moved_clock import MovedClock

from procedo.app import App, open_app
from procedo.core.state import Principal, PrincipalKind, Source
from procedo.runs import Snapshot, Surface

__all__ = ["CLOSED", "Shop", "broken", "finished", "person"]

# Failures that a disk could cause: the row cannot be written.
CLOSED: Final = "the disk refuses"


def person(name: str) -> Surface:
    return Surface(Principal(Source.CLI, name, PrincipalKind.HUMAN), can_ask=True)


class Shop:
    """A workspace folder and its time."""

    def __init__(self, root: Path, config: str = "") -> None:
        self.root = root
        self.clock = MovedClock()
        self.configure(config)

    def configure(self, config: str) -> None:
        (self.root / "procedo.toml").write_text(config, encoding="utf-8")

    def sop(self, name: str, steps: str, header: str = "", mode: str = "auto") -> Path:
        folder = self.root / "sops" / name
        folder.mkdir(parents=True, exist_ok=True)
        head = f'[sop]\nname = "{name}"\ndescription = "About {name}."\nexecution_mode = "{mode}"\n{header}\n'
        (folder / "SOP.toml").write_text(head, encoding="utf-8")
        (folder / "SOP.md").write_text(f"# {name}\n\n## Steps\n\n{steps}\n", encoding="utf-8")
        return folder

    @asynccontextmanager
    async def opened(self, *, worker: bool = False) -> AsyncIterator[App]:
        async with open_app(self.root, worker=worker, clock=self.clock) as app:
            yield app

    @property
    def file(self) -> Path:
        return self.root / ".procedo" / "procedo.db"


@contextmanager
def broken(shop: Shop, table: str, operation: str = "INSERT") -> Iterator[None]:
    """While the block lasts, rows of one table cannot be written, in whatever process."""
    with closing(sqlite3.connect(shop.file, isolation_level=None)) as connection:
        connection.execute(
            f"CREATE TRIGGER broken BEFORE {operation} ON {table} BEGIN SELECT RAISE(ABORT, '{CLOSED}'); END"
        )
        try:
            yield
        finally:
            connection.execute("DROP TRIGGER broken")


async def finished(app: App, name: str, *outputs: object) -> Snapshot:
    """A run whose steps are reported one after the other as completed."""
    snapshot = await app.runs.start(name, None, HOST)
    for output in outputs:
        (execution,) = snapshot.run.open_executions
        snapshot = await app.runs.advance(snapshot.run.id, execution.id, "completed", output, HOST)
    return snapshot
