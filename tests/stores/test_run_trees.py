"""Runs that work for other runs: what they use counts together, and they are pruned together, in every store."""

from datetime import timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest
from engine import BOT, IDA, NOW
from stored import WHO, apply, folded

from procedo.core import messages as m
from procedo.core.altered import altered
from procedo.core.model import Mode
from procedo.core.session import SessionRow
from procedo.core.state import Parent
from procedo.ports import Store, Writer
from procedo.stores.sqlite import SqliteStore

pytestmark = pytest.mark.anyio

LATER = NOW + timedelta(hours=1)
# Two runs that nobody stands above, and what works for them: child to parent.
FOREST = {"top": None, "left": "top", "right": "top", "deep": "left", "deepest": "deep", "other": None, "its": "other"}
SPENT = {"top": 1, "left": 20, "right": 300, "deepest": 4_000, "other": 50_000, "its": 600_000}


def grow(writer: Writer) -> None:
    """The forest, with one session in every run but `deep`, and two in `left`."""
    for number, (run_id, above) in enumerate(FOREST.items()):
        parent = None if above is None else Parent(above, "1.1", 1)
        made = m.RunStarted(run_id, "kiln", f"d{number}", "1", Mode.AUTO, "host", BOT, "", {}, parent=parent)
        writer.save(None, folded(None, [made], NOW), [made], WHO, NOW)
    for run_id, tokens in SPENT.items():
        row = SessionRow(run_id, "1.1", "reviewer", "host", BOT.key, 1, "local", 1, NOW, NOW, contract={"long": "x"})
        writer.put_session(altered(row, input_tokens=tokens, cost_usd=str(Decimal(tokens) / 100)))
    second = SessionRow("left", "1.2", "writer", "host", BOT.key, 1, "local", 1, NOW, NOW)
    writer.put_session(altered(second, output_tokens=7))


@pytest.mark.parametrize("run_id", ["top", "left", "right", "deep", "deepest"])
async def test_what_a_run_and_all_around_it_used_is_one_sum_wherever_it_is_asked_for(store: Store, run_id: str) -> None:
    await store.write(grow)
    assert await store.read(lambda reader: reader.used_in_tree(run_id)) == (4_328, Decimal("43.21"))


async def test_runs_that_have_nothing_to_do_with_each_other_share_nothing(store: Store) -> None:
    await store.write(grow)
    assert await store.read(lambda reader: reader.used_in_tree("its")) == (650_000, Decimal(6_500))
    assert await store.read(lambda reader: reader.used_in_tree("nowhere")) == (0, Decimal(0))


async def test_what_was_used_is_known_to_another_process(file: Path, sqlite: SqliteStore) -> None:
    await sqlite.write(grow)
    another = await SqliteStore.open(file)
    assert await another.read(lambda reader: reader.used_in_tree("deep")) == (4_328, Decimal("43.21"))
    await another.close()


async def end(store: Store, *runs: str, late: tuple[str, ...] = ()) -> None:
    for run_id in (*runs, *late):
        at = LATER if run_id in late else NOW
        await store.write(partial(apply, run_id=run_id, command=m.Cancel("enough", IDA), now=at))


async def test_a_sub_run_is_not_pruned_before_the_runs_above_it(store: Store) -> None:
    await store.write(grow)
    await end(store, "deepest", "deep", "left", "its", late=("other",))
    assert await store.write(lambda writer: writer.prune(LATER)) == 0
    assert await store.read(lambda reader: reader.used_in_tree("top")) == (4_328, Decimal("43.21"))


async def test_runs_that_work_for_each_other_are_pruned_together(store: Store) -> None:
    await store.write(grow)
    await end(store, "deepest", "deep", "left", "right", "top", "its", late=("other",))
    assert await store.write(lambda writer: writer.prune(LATER)) == 5
    assert await store.read(lambda reader: reader.run_ids()) == ("other", "its")


async def test_a_sub_run_that_goes_on_without_the_run_above_it_is_pruned_when_its_time_comes(store: Store) -> None:
    await store.write(grow)
    await end(store, "other", late=("its",))
    assert await store.write(lambda writer: writer.prune(LATER)) == 1
    assert await store.read(lambda reader: reader.used_in_tree("its")) == (600_000, Decimal(6_000))
    assert await store.write(lambda writer: writer.prune(LATER + timedelta(seconds=1))) == 1
