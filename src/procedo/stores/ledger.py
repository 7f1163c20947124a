"""The record in SQLite: one row for each transition, with its events and the end of the hash chain.

A transition usually makes three to five events that share time, identities and revision. One row keeps them
in a third of the space and costs one statement. Their JSON is deflated with a dictionary of the words that
every record has, which makes a quarter of it; `procedo audit export` gives the record as plain lines.
"""

import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from procedo.core.messages import Event
from procedo.core.model import Json
from procedo.errors import StoreError
from procedo.ports import Attribution, Record
from procedo.stores.chain import GENESIS, Link, linked, recorded
from procedo.stores.codec import FORMAT, encode_event
from procedo.stores.jsontext import canonical, instant, moment, parsed

__all__ = ["append", "missing", "prepared", "records"]

# Part of the format: a changed word would make every stored record unreadable. What comes last is found best.
_WORDS: Final = Path(__file__).with_name("words.txt").read_bytes()

_INSERT: Final = "INSERT INTO transitions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_SELECT: Final = """SELECT revision, seq, at, acting, delegating, root, format, events, hash FROM transitions
                    WHERE run = ? AND seq > ? ORDER BY revision"""


def prepared(common: Link, last_seq: int, events: Sequence[Event], before: bytes) -> tuple[Any, ...]:
    """The row of a transition, without the number of its run; its last value is the new end of the chain."""
    told = [encode_event(event) for event in events]
    head = linked(common, last_seq - len(events) + 1, told, before)[-1]
    written = ",".join([f'["{kind}",{data}]' for kind, data in told])
    who = common.who
    delegating = None if who.delegating == who.acting else who.delegating
    root = None if who.root == who.acting else who.root
    at = moment(common.at)
    return (common.revision, last_seq, at, who.acting, delegating, root, FORMAT, _deflated(f"[{written}]"), head)


def _deflated(events: str) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, -12, 5, zlib.Z_DEFAULT_STRATEGY, _WORDS)
    return packer.compress(events.encode()) + packer.flush()


def _inflated(events: bytes) -> str:
    unpacker = zlib.decompressobj(-12, _WORDS)
    try:
        plain = unpacker.decompress(events) + unpacker.flush()
        if not unpacker.eof or unpacker.unused_data:
            raise _damaged("its events are cut off")
        return plain.decode()
    except (zlib.error, UnicodeDecodeError) as error:
        raise _damaged(str(error)) from error


def _damaged(reason: str) -> StoreError:
    message = f"A stored record is damaged: {reason}."
    return StoreError("unreadable_record", message, "Run `procedo audit verify`.")


def missing(what: str) -> StoreError:
    """The error for a row that the run's head names and that is not there."""
    return _damaged(f"the row of {what} is missing")


def append(connection: sqlite3.Connection, number: int, row: tuple[Any, ...]) -> None:
    """Write a prepared transition of the run with that number."""
    connection.execute(_INSERT, (number, *row))


def _told(events: bytes) -> list[tuple[str, Json]]:
    """The kinds and data of a stored transition."""
    value = parsed(_inflated(events))
    if not isinstance(value, list) or not value:
        raise _damaged("it has no events")
    if not all(isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str) for entry in value):
        raise _damaged("an event is not whole")
    return [(kind, data) for kind, data in value]


def _rows(connection: sqlite3.Connection, run_id: str, number: int, after: int) -> Iterator[Record]:
    before = _before(connection, number, after)
    for revision, last, at, acting, delegating, root, version, events, head in connection.execute(
        _SELECT, (number, after)
    ):
        if version != FORMAT:
            raise _damaged(f"its format is {version}, and this procedo reads format {FORMAT}")
        told = _told(events)
        common = Link(run_id, revision, instant(at), Attribution(acting, delegating or acting, root or acting))
        first = last - len(told) + 1
        written = [(kind, canonical(data)) for kind, data in told]
        links = [*linked(common, first, written, before)[:-1], head]
        before = head
        for seq, ((kind, data), hashed) in enumerate(zip(told, links, strict=True), first):
            if seq > after:
                yield recorded(common, seq, kind, data, hashed)


def _before(connection: sqlite3.Connection, number: int, after: int) -> bytes:
    """The end of the chain before the transition that holds the record after `after`."""
    sql = "SELECT hash FROM transitions WHERE run = ? AND seq <= ? ORDER BY revision DESC LIMIT 1"
    row = connection.execute(sql, (number, after)).fetchone()
    return GENESIS if row is None else bytes(row[0])


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
