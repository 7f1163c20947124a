"""Telling clients that something is to be read again, after the commit that changed it, whoever committed.

A piece of news is an address or the name of a list, never data. It comes from looking: while anybody listens, what
they listen to is looked at after every change of the store, and now and then because files change without a word.
So the commits of other processes are news as well, and nothing can be told before it is stored.
"""

import logging
from collections import Counter
from collections.abc import AsyncIterator, Hashable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Final

import anyio
from mcp.server.connection import Connection
from mcp.server.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    SubscriptionBus,
)

from procedo.errors import StoreError
from procedo.ports import Reader
from procedo.sopfile.library import Entry
from procedo.surfaces import links
from procedo.surfaces.mcp.callers import Whole
from procedo.surfaces.mcp.resources import parameters

__all__ = ["News"]

_LOG: Final = logging.getLogger(__name__)
_LOOK_EVERY_S: Final = 1.0
"""How often files are looked at while somebody listens."""
_SEND_S: Final = 1.0
"""How long one client may keep the others waiting."""


class News:
    """Publishes on `bus` for clients of the newer revision, and tells older ones over their own connection."""

    def __init__(self, app: Whole, bus: SubscriptionBus) -> None:
        self._app = app
        self._bus = bus
        self._listeners = 0
        self._somebody = anyio.Event()
        self._joined = anyio.Event()
        self._followed: Counter[str] = Counter()
        self._known: dict[str, Hashable] = {}
        self._procedures: Mapping[str, Hashable] = {}
        self._looked_at = 0.0
        self._older: dict[Connection, set[str]] = {}

    @asynccontextmanager
    async def followed(self, uris: Iterable[str]) -> AsyncIterator[None]:
        """While the block lasts somebody listens, to these addresses and to changes of lists."""
        mine = list(dict.fromkeys(uris))
        await self._begin(mine)
        try:
            yield
        finally:
            self._end(mine)

    async def join(self, connection: Connection) -> None:
        """A client of an older revision is there: it is told of lists until its connection closes."""
        if connection not in self._older:
            self._older[connection] = set()
            connection.exit_stack.callback(self._leave, connection)
            await self._begin([])

    async def subscribe(self, connection: Connection, uri: str) -> None:
        """An older client follows an address."""
        await self.join(connection)
        if uri not in self._older[connection]:
            self._older[connection].add(uri)
            await self._begin([uri])

    def unsubscribe(self, connection: Connection, uri: str) -> None:
        """An older client follows an address no longer."""
        if uri in self._older.get(connection, ()):
            self._older[connection].remove(uri)
            self._end([uri])

    def _leave(self, connection: Connection) -> None:
        for uri in self._older.pop(connection, ()):
            self._end([uri])
        self._end([])

    async def _begin(self, uris: list[str]) -> None:
        # Counted first: whoever follows the same address meanwhile keeps what it knows of it.
        self._followed.update(uris)
        self._listeners += 1
        if self._listeners == 1:
            self._procedures = self._files()
        fresh = [uri for uri in uris if uri not in self._known]
        try:
            for uri, state in (await self._look_at(fresh)).items():
                self._known.setdefault(uri, state)
        except StoreError as error:
            _LOG.warning("what is followed cannot be read: %s", error)
        self._somebody.set()
        self._joined.set()

    def _end(self, uris: list[str]) -> None:
        self._followed.subtract(uris)
        for uri in uris:
            if self._followed[uri] <= 0:
                del self._followed[uri]
                self._known.pop(uri, None)
        self._listeners -= 1
        if not self._listeners:
            self._somebody = anyio.Event()

    async def run(self) -> None:
        """Look and tell until cancelled. While nobody listens, nothing is looked at."""
        while True:
            await self._somebody.wait()
            try:
                await self._pause()
                events = await self._changes()
            except StoreError as error:
                _LOG.warning("changes cannot be seen: %s", error)
                await anyio.sleep(_LOOK_EVERY_S)
                continue
            for event in events:
                await self._bus.publish(event)
                await self._tell_older(event)

    async def _pause(self) -> None:
        """Until the store has changed, or it is time to look at the files."""
        if any("run_id" in parameters(uri) for uri in self._followed):
            await self._app.store.changed(_LOOK_EVERY_S)
            return
        self._joined = anyio.Event()
        with anyio.move_on_after(_LOOK_EVERY_S):
            await self._joined.wait()

    async def _changes(self) -> list[ServerEvent]:
        events = list[ServerEvent]()
        if anyio.current_time() - self._looked_at >= _LOOK_EVERY_S * 0.9:
            before, self._procedures = self._procedures, self._files()
            if before != self._procedures:
                events += [PromptsListChanged(), ResourcesListChanged()]
        for uri, state in (await self._look_at(list(self._followed))).items():
            if uri in self._followed and self._known.get(uri, state) != state:
                events.append(ResourceUpdated(uri=uri))
            if uri in self._followed:
                self._known[uri] = state
        return events

    def _files(self) -> Mapping[str, Hashable]:
        self._looked_at = anyio.current_time()
        return {entry.name: _content(entry) for entry in self._app.library.entries()}

    async def _look_at(self, uris: list[str]) -> Mapping[str, Hashable]:
        if not uris:
            return {}
        procedures = self._procedures

        def work(reader: Reader) -> Mapping[str, Hashable]:
            return {uri: _state(reader, uri, procedures) for uri in uris}

        return await self._app.store.read(work)

    async def _tell_older(self, event: ServerEvent) -> None:
        async with anyio.create_task_group() as group:
            for connection, uris in list(self._older.items()):
                if not isinstance(event, ResourceUpdated) or event.uri in uris:
                    group.start_soon(_send, connection, event)


async def _send(connection: Connection, event: ServerEvent) -> None:
    with anyio.move_on_after(_SEND_S):
        match event:
            case ResourceUpdated():
                await connection.send_resource_updated(event.uri)
            case PromptsListChanged():
                await connection.send_prompt_list_changed()
            case ResourcesListChanged():
                await connection.send_resource_list_changed()


def _content(entry: Entry) -> Hashable:
    """What makes a procedure the same as before."""
    return (tuple(sorted(entry.files.items())), tuple(map(str, entry.problems)))


def _state(reader: Reader, uri: str, procedures: Mapping[str, Hashable]) -> Hashable:
    """Something that differs when the resource does."""
    named = parameters(uri)
    if uri == links.CATALOGUE:
        return tuple(procedures.items())
    if "name" in named:
        return procedures.get(named["name"])
    if "run_id" not in named:
        return None
    run_id = named["run_id"]
    if "/transcript/" in uri:
        return tuple(
            (s.fence, s.active_at, s.state, s.turns, s.calls)
            for s in reader.sessions(run_id)
            if s.execution_id == named["execution"]
        )
    return _run_state(reader, run_id)


def _run_state(reader: Reader, run_id: str) -> Hashable:
    run = reader.run(run_id)
    if run is None:
        return None
    below = tuple(_run_state(reader, child.run_id) for child in reader.children(run_id) if not child.status.final)
    return (run.revision, below)
