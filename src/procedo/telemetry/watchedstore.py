"""A store whose commits are watched: what was written is told to watchers, when it is committed and not before."""

import logging
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar, cast

from procedo.core.messages import Event
from procedo.core.notice import Telling
from procedo.core.session import CallRow, Message, SessionRow, TurnRow
from procedo.core.state import Run
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
    """A `Store`. A caller that is cancelled while it writes is the one case in which a commit is not told."""

    def __init__(self, store: Store, watchers: Sequence[Watcher]) -> None:
        self._store = store
        self._watchers = tuple(watchers)

    async def write(self, work: Callable[[Writer], T]) -> T:
        """See `Store.write`."""
        commit = Commit(time.time_ns())
        result = await self._store.write(lambda writer: work(cast("Writer", _Noting(writer, commit))))
        if commit.told:
            tell(self._watchers, commit)
        return result

    async def read(self, work: Callable[[Reader], T]) -> T:
        """See `Store.read`."""
        return await self._store.read(work)

    async def changed(self, seconds: float, *, jobs: bool = False) -> bool:
        """See `Store.changed`."""
        return await self._store.changed(seconds, jobs=jobs)

    async def close(self) -> None:
        """See `Store.close`."""
        await self._store.close()
