"""Whether the record is whole, and the run is what its record makes of it.

Every hash is recomputed, every number must be in its place, the end where the run says it is. Then the events are
applied once more from the first to the last: a run, execution, step or gate that was changed in the file, past
its record, differs from what comes out.
"""

from collections.abc import Sequence

from msgspec import Struct

from procedo.core.altered import altered
from procedo.core.evolve import evolve
from procedo.core.state import Run
from procedo.errors import StoreError
from procedo.ports import Reader, Record, Store
from procedo.stores.chain import GENESIS, link
from procedo.stores.codec import decode_event

__all__ = ["Verified", "verify"]


class Verified(Struct, frozen=True):
    """How many records a run has, and what is broken in them; nothing, when the chain holds."""

    records: int
    broken: tuple[str, ...]


def _break_in(records: Sequence[Record]) -> tuple[str, ...]:
    """The first place where the chain breaks: everything behind it would only repeat that."""
    before = GENESIS
    for place, record in enumerate(records, 1):
        if record.seq != place:
            return (f"record {place} is missing: the next one has the number {record.seq}",)
        before = link(record, before)
        if before.hex() != record.hash:
            return (f"record {record.seq} ({record.kind}) does not fit its hash: it or one before it was changed",)
    return ()


def _ends(run: Run, records: Sequence[Record]) -> tuple[str, ...]:
    if len(records) != run.seq:
        return (f"the run has come to record {run.seq}, and its record ends with {len(records)}",)
    if records and records[-1].hash != run.head_hash:
        return ("the last record's hash is not the one that the run was written with",)
    return ()


def _rebuilt(records: Sequence[Record]) -> Run | None:
    run: Run | None = None
    for record in records:
        run = evolve(run, decode_event(record.kind, record.data), record.at)
    return run


def _strays(reader: Reader, run: Run, records: Sequence[Record]) -> tuple[str, ...]:
    """Where the stored run is not what its events make."""
    rebuilt = _rebuilt(records)
    if rebuilt is None:
        return ()
    stored = reader.with_steps(run, rebuilt.steps)
    pairs = {
        "its executions": (reader.executions(run.id), tuple(rebuilt.executions.values())),
        "its gates": (reader.gates(run.id), tuple(rebuilt.gates.values())),
        "its steps": (stored.steps, rebuilt.steps),
        "the run itself": (_bare(run, run), _bare(rebuilt, run)),
    }
    wrong = [name for name, (kept, made) in pairs.items() if kept != made]
    return (f"the stored run is not what its record makes of it: {', '.join(wrong)} differ",) if wrong else ()


def _bare(run: Run, position: Run) -> Run:
    """The run without what is compared by itself or counted outside the events."""
    return altered(run, executions={}, gates={}, steps={}, revision=position.revision, head_hash=position.head_hash)


async def verify(store: Store, run_id: str) -> Verified:
    """Check the record of one run. A record that cannot be read counts as broken."""

    def work(reader: Reader) -> Verified:
        try:
            run, records = reader.run(run_id), reader.records(run_id)
        except StoreError as error:
            return Verified(0, (error.message,))
        if run is None:
            return Verified(len(records), ("the run of these records is missing",))
        try:
            broken = _break_in(records) or _ends(run, records) or _strays(reader, run, records)
        except StoreError as error:
            broken = (error.message,)
        return Verified(len(records), broken)

    return await store.read(work)
