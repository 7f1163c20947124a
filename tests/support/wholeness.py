"""Whether a stored run is whole: its chain holds, it ends where the run says, and its events make the stored run."""

from procedo.core.altered import altered
from procedo.core.evolve import evolve
from procedo.core.state import Run
from procedo.ports import Reader, Record
from procedo.stores.chain import GENESIS, link
from procedo.stores.codec import decode_event

__all__ = ["whole"]


def whole(reader: Reader, run_id: str = "run-1") -> tuple[Run, tuple[Record, ...]]:
    """A run with its record; fails when one does not follow from the other."""
    run, records = reader.run(run_id), reader.records(run_id)
    assert run is not None
    before = GENESIS
    rebuilt: Run | None = None
    for seq, record in enumerate(records, 1):
        assert record.seq == seq
        before = link(record, before)
        assert record.hash == before.hex()
        rebuilt = evolve(rebuilt, decode_event(record.kind, record.data), record.at)
    assert rebuilt is not None
    assert (run.head_hash, run.seq, run.revision) == (before.hex(), len(records), records[-1].revision)
    assert [record.revision for record in records] == sorted(record.revision for record in records)
    assert {record.revision for record in records} == set(range(1, run.revision + 1))
    assert list(reader.executions(run_id)) == list(rebuilt.executions.values())
    assert list(reader.gates(run_id)) == list(rebuilt.gates.values())
    stored = reader.with_steps(run, rebuilt.steps)
    assert stored.steps == dict(rebuilt.steps)
    opened = {e.id: e for e in rebuilt.open_executions}
    live = {g.id: g for g in rebuilt.gates.values() if g.live}
    rebuilt = altered(rebuilt, executions=opened, gates=live, steps={}, revision=run.revision, head_hash=run.head_hash)
    assert rebuilt == altered(run, steps={})
    return run, records
