"""A store whose commits are watched: what was written is told to watchers, when it is committed and not before."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar, cast

from procedo.core.messages import Event
from procedo.core.notice import Telling
from procedo.core.session import CallRow, Message, SessionRow, TurnRow
from procedo.core.state import Run
from procedo.errors import StoreError
from procedo.ports import Attribution, Job, Reader, Store, Writer
from procedo.telemetry.happenings import Commit, Move, Watcher, Written

__all__ = ["WatchedStore", "tell"]

T = TypeVar("T")

_log: Final = logging.getLogger("procedo.telemetry")


class _Noting:
    """A writer that notes what is written through it."""

    def __init__(self, inner: Writer, commit: Commit) -> None:
        self._inner = inner
        self._commit = commit

    def __getattr__(self, name: str) -> Any:
        """Everything else is the writer's own."""
        return getattr(self._inner, name)

    def save(self, before: Run | None, after: Run, events: Sequence[Event], who: Attribution, now: datetime) -> Run:
        """See `Writer.save`."""
        saved = self._inner.save(before, after, events, who, now)
        self._commit.moves.append(Move(before, saved, tuple(events), who, now, time.time_ns()))
        return saved

    def put_session(
        self,
        row: SessionRow,
        messages: Sequence[Message] = (),
        turns: Sequence[TurnRow] = (),
        calls: Sequence[CallRow] = (),
    ) -> None:
        """See `Writer.put_session`."""
        self._inner.put_session(row, messages, turns, calls)
        self._commit.sessions.append(Written(row, tuple(turns), tuple(calls)))

    def put_telling(self, telling: Telling) -> None:
        """See `Writer.put_telling`."""
        self._inner.put_telling(telling)
        self._commit.tellings.append(telling)

    def put_jobs(self, jobs: Sequence[Job]) -> None:
        """See `Writer.put_jobs`."""
        self._inner.put_jobs(jobs)
        self._commit.jobs += [(len(self._commit.moves) - 1, job) for job in jobs]


def tell(watchers: Sequence[Watcher], commit: Commit) -> None:
    """Show a commit to watchers. A fault of one is told to the log, and neither the others nor the writer feel it."""
    for watcher in watchers:
        try:
            watcher.committed(commit)
        except Exception:  # noqa: BLE001  # what is committed is committed, whoever fails to tell of it
            _log.exception("a commit could not be told by %s", type(watcher).__name__)


class WatchedStore:
    """A `Store`."""

    def __init__(self, store: Store, watchers: Sequence[Watcher]) -> None:
        self._store = store
        self._watchers = tuple(watchers)
        self._late: set[asyncio.Task[None]] = set()

    async def write(self, work: Callable[[Writer], T]) -> T:
        """See `Store.write`."""
        commit = Commit(time.time_ns())
        try:
            result = await self._store.write(lambda writer: work(cast("Writer", _Noting(writer, commit))))
        except asyncio.CancelledError:
            # The commit itself often is why its writer is stopped, and is to be told nevertheless.
            task = asyncio.create_task(self._tell_late(commit))
            self._late.add(task)
            task.add_done_callback(self._late.discard)
            raise
        if commit.told:
            tell(self._watchers, commit)
        return result

    async def _tell_late(self, commit: Commit) -> None:
        """Find out what became of a transaction whose writer was cancelled, and tell what was committed."""

        def revisions(writer: Writer) -> dict[str, int]:
            # This transaction comes after that one, which by now has been committed, rolled back, or never begun.
            found = {move.after.id: writer.run(move.after.id) for move in commit.moves}
            return {run_id: run.revision for run_id, run in found.items() if run is not None}

        try:
            known = await self._store.write(revisions)
        except StoreError as error:
            _log.debug("it is not known whether a transition was committed: %s", error)
            return
        if commit.moves and all(known.get(move.after.id, 0) >= move.after.revision for move in commit.moves):
            tell(self._watchers, commit)

    async def settled(self) -> None:
        """Wait until everything is told."""
        while self._late:
            await asyncio.wait(self._late)

    async def read(self, work: Callable[[Reader], T]) -> T:
        """See `Store.read`."""
        return await self._store.read(work)

    async def changed(self, seconds: float, *, jobs: bool = False) -> bool:
        """See `Store.changed`."""
        return await self._store.changed(seconds, jobs=jobs)

    async def close(self) -> None:
        """See `Store.close`."""
        await self._store.close()
