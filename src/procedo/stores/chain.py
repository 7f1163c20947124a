"""The hash chain over a run's record: each link covers the one before it and the whole of its own line.

A link is the SHA-256 of the previous link (32 zero bytes before the first) followed by the canonical JSON of
the record without its hash and without `execution_id`, which only repeats what its data say: sorted keys, no
blanks, ASCII. Whoever has an exported record can check it
with a few lines in any language.
"""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from procedo.core.model import Json
from procedo.ports import Attribution, Record
from procedo.stores.jsontext import canonical, moment, quoted

__all__ = ["GENESIS", "Link", "link", "linked", "recorded"]

GENESIS: Final = bytes(32)


class Link(Struct, frozen=True):
    """What the records of one transition have in common."""

    run_id: str
    revision: int
    at: datetime
    who: Attribution


def _execution_of(data: Json) -> str | None:
    """The execution that an event is about, from its data."""
    if not isinstance(data, dict):
        return None
    for holder in ("execution", "gate"):
        inner = data.get(holder)
        if isinstance(inner, dict):
            found = inner.get("id" if holder == "execution" else "execution")
            return found if isinstance(found, str) else None
    found = data.get("execution_id")
    return found if isinstance(found, str) else None


def recorded(common: Link, seq: int, kind: str, data: Json, hashed: bytes) -> Record:
    """One line of a transition as it is read; `hashed` is its link."""
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
        execution_id=_execution_of(data),
        hash=hashed.hex(),
    )


def linked(common: Link, first_seq: int, events: Sequence[tuple[str, str]], before: bytes) -> list[bytes]:
    """The links of one transition's events, each given as its kind and the canonical text of its data."""
    who = common.who
    head = f'{{"acting":{quoted(who.acting)},"at":"{moment(common.at)}","data":'
    middle = f',"delegating":{quoted(who.delegating)},"kind":"'
    tail = f'","revision":{common.revision},"root":{quoted(who.root)},"run_id":{quoted(common.run_id)},"seq":'
    links = []
    for seq, (kind, data) in enumerate(events, first_seq):
        line = f"{head}{data}{middle}{kind}{tail}{seq}}}"
        before = hashlib.sha256(before + line.encode()).digest()
        links.append(before)
    return links


def link(record: Record, before: bytes) -> bytes:
    """The link that a record must carry after `before`."""
    line = {
        "acting": record.acting,
        "at": moment(record.at),
        "data": record.data,
        "delegating": record.delegating,
        "kind": record.kind,
        "revision": record.revision,
        "root": record.root,
        "run_id": record.run_id,
        "seq": record.seq,
    }
    return hashlib.sha256(before + canonical(line).encode()).digest()
