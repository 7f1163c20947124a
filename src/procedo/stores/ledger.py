"""The record in SQLite: one row for each transition, with its events and the end of the hash chain.

A transition usually makes three to five events that share time, identities and revision. One row keeps them
in a third of the space, and costs one statement.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, Final

from procedo.core.messages import Event
from procedo.core.model import Json
from procedo.errors import StoreError
from procedo.ports import Attribution, Record
from procedo.stores.chain import GENESIS, Link, execution_of, linked
from procedo.stores.codec import FORMAT, canonical, encode, instant, moment, parsed

__all__ = ["append", "prepared", "records"]

_INSERT: Final = "INSERT INTO transitions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_SELECT: Final = """SELECT revision, seq, at, acting, delegating, root, format, events, hash FROM transitions
                    WHERE run = ? AND seq > ? ORDER BY revision"""


def prepared(common: Link, last_seq: int, events: Sequence[Event], before: bytes) -> tuple[Any, ...]:
    """The row of a transition, without the number of its run; its last value is the new end of the chain."""
    told = []
    for event in events:
        data = encode(event)
        told.append((type(event).__name__, data, canonical(data)))
    head = linked(common, last_seq - len(events) + 1, told, before)[-1]
    written = ",".join(f'["{kind}",{data}]' for kind, _, data in told)
    who = common.who
    delegating = None if who.delegating == who.acting else who.delegating
    root = None if who.root == who.acting else who.root
    at = moment(common.at)
    return (common.revision, last_seq, at, who.acting, delegating, root, FORMAT, f"[{written}]", head)


def append(connection: sqlite3.Connection, number: int, row: tuple[Any, ...]) -> None:
    """Write a prepared transition of the run with that number."""
    connection.execute(_INSERT, (number, *row))


def _told(events: str) -> list[tuple[str, Json]]:
    """The kinds and data of a stored transition."""
    value = parsed(events)
    if not isinstance(value, list) or not value:
        raise StoreError("unreadable_record", "A stored transition has no events.", "Run `procedo audit verify`.")
    for entry in value:
        if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[0], str):
            raise StoreError("unreadable_record", "A stored event is damaged.", "Run `procedo audit verify`.")
    return [(kind, data) for kind, data in value]


def _rows(connection: sqlite3.Connection, run_id: str, number: int, after: int) -> Iterator[Record]:
    before = _before(connection, number, after)
    for revision, last, at, acting, delegating, root, version, events, head in connection.execute(
        _SELECT, (number, after)
    ):
        if version != FORMAT:
            raise StoreError("unreadable_record", f"A record has format {version}.", "Update procedo to read it.")
        told = _told(events)
        common = Link(run_id, revision, instant(at), Attribution(acting, delegating or acting, root or acting))
        first = last - len(told) + 1
        written = [(kind, data, canonical(data)) for kind, data in told]
        links = [*linked(common, first, written, before)[:-1], head]
        before = head
        for seq, ((kind, data), hashed) in enumerate(zip(told, links, strict=True), first):
            if seq > after:
                yield _record(common, seq, kind, data, hashed)


def _before(connection: sqlite3.Connection, number: int, after: int) -> bytes:
    """The end of the chain before the transition that holds the record after `after`."""
    sql = "SELECT hash FROM transitions WHERE run = ? AND seq <= ? ORDER BY revision DESC LIMIT 1"
    row = connection.execute(sql, (number, after)).fetchone()
    return GENESIS if row is None else bytes(row[0])


def _record(common: Link, seq: int, kind: str, data: Json, hashed: bytes) -> Record:
    return Record(
        run_id=common.run_id,
        seq=seq,
        revision=common.revision,
        at=common.at,
        kind=kind,
        data=data,
        acting=common.who.acting,
        delegating=common.who.delegating,
        root=common.who.root,
        execution_id=execution_of(data),
        hash=hashed.hex(),
    )


def records(
    connection: sqlite3.Connection, run_id: str, number: int, after: int, limit: int | None
) -> tuple[Record, ...]:
    """The records of a run after a number, in order."""
    found: list[Record] = []
    for record in _rows(connection, run_id, number, after):
        if limit is not None and len(found) >= limit:
            break
        found.append(record)
    return tuple(found)
