"""Whether the record is whole: every hash recomputed, every number in its place, the end where the run says it is."""

from collections.abc import Sequence
from dataclasses import dataclass

from procedo.core.state import Run
from procedo.errors import StoreError
from procedo.ports import Reader, Record, Store
from procedo.stores.chain import GENESIS, link

__all__ = ["Verified", "verify"]


@dataclass(frozen=True, slots=True)
class Verified:
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


async def verify(store: Store, run_id: str) -> Verified:
    """Check the record of one run. A record that cannot be read counts as broken."""

    def work(reader: Reader) -> Verified:
        try:
            run, records = reader.run(run_id), reader.records(run_id)
        except StoreError as error:
            return Verified(0, (error.message,))
        if run is None:
            return Verified(len(records), ("the run of these records is missing",))
        return Verified(len(records), _break_in(records) or _ends(run, records))

    return await store.read(work)
