"""What a durable transition costs, against a hand-written SQLite loop with the same durability.

    PYTHONPATH=src:tests/support python tests/bench/store.py [--runs 300] [--steps 10000] [--stored 100000]

Times are medians. The hand-written loop keeps a
row for the run, one for the step and one for the event, and commits once per step with WAL and `synchronous=FULL`.
Both take turns, so that a busy machine slows both.
"""

import argparse
import asyncio
import json
import secrets
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from engine import BOT, NOW, plain, sop
from stored import WHO

from procedo.core import messages as m
from procedo.core.altered import altered
from procedo.core.draft import Moment
from procedo.core.machine import drafted
from procedo.core.model import Mode, Sop
from procedo.core.needs import executions_needed, steps_needed
from procedo.core.state import Phase
from procedo.ports import Writer
from procedo.stores.sqlite import SqliteStore

TEN = sop(*plain(10))
INPUTS = {"service": "billing", "version": "4.2.0"}
AT = "2026-03-01T12:00:00.000000Z"


def output(step: int) -> dict[str, object]:
    return {"ok": True, "detail": f"step {step} is done"}


class HandWritten:
    """The loop that somebody would write for exactly one procedure."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.connection = sqlite3.connect(file, isolation_level=None)
        for setting in ("journal_mode = WAL", "synchronous = FULL"):
            self.connection.execute(f"PRAGMA {setting}")
        for table in (
            "runs (id TEXT PRIMARY KEY, status TEXT, step INTEGER, inputs TEXT, active_at TEXT)",
            "steps (run_id TEXT, step INTEGER, output TEXT, at TEXT, PRIMARY KEY (run_id, step))",
            "events (run_id TEXT, seq INTEGER, kind TEXT, data TEXT, at TEXT, PRIMARY KEY (run_id, seq))",
        ):
            self.connection.execute(f"CREATE TABLE {table}")

    def begin(self, run_id: str) -> None:
        execute = self.connection.execute
        execute("BEGIN IMMEDIATE")
        execute("INSERT INTO runs VALUES (?, 'running', 1, ?, ?)", (run_id, json.dumps(INPUTS), AT))
        execute("COMMIT")

    def advance(self, run_id: str, step: int) -> None:
        execute = self.connection.execute
        execute("BEGIN IMMEDIATE")
        status, at = execute("SELECT status, step FROM runs WHERE id = ?", (run_id,)).fetchone()
        if (status, at) != ("running", step):
            raise LookupError(run_id)
        text = json.dumps(output(step))
        execute("INSERT INTO steps VALUES (?, ?, ?, ?)", (run_id, step, text, AT))
        execute("INSERT INTO events VALUES (?, ?, 'completed', ?, ?)", (run_id, step, text, AT))
        execute("UPDATE runs SET step = ?, active_at = ? WHERE id = ?", (step + 1, AT, run_id))
        execute("COMMIT")


class Moves:
    """Transitions as the write path makes them: load what the command needs, decide, apply, save."""

    def __init__(self, made: Sop) -> None:
        self.sop = made
        self.engine: list[float] = []

    def begin(self, writer: Writer, run_id: str) -> None:
        command = m.Start(run_id, INPUTS, BOT, Mode.AUTO, "host", "marker")
        draft = drafted(self.sop, None, command, Moment(NOW))
        writer.save(None, altered(draft.run, revision=1), draft.events, WHO, NOW)

    def advance(self, writer: Writer, run_id: str, step: int) -> None:
        run = writer.run(run_id)
        if run is None:
            raise LookupError(run_id)
        command = m.Report(f"{step}.1", Phase.COMPLETED, output(step), BOT)
        run = writer.with_steps(run, steps_needed(self.sop, run, command))
        run = writer.with_executions(run, executions_needed(run, command))
        begun = time.perf_counter()
        draft = drafted(self.sop, run, command, Moment(NOW))
        self.engine.append(time.perf_counter() - begun)
        writer.save(run, altered(draft.run, revision=run.revision + 1), draft.events, WHO, NOW)


def median(seconds: list[float]) -> float:
    return statistics.median(seconds) * 1e6


def say(words: str) -> None:
    print(words, flush=True)  # a measurement is told


async def timed(times: list[float], store: SqliteStore, work: Callable[[Writer], None]) -> None:
    begun = time.perf_counter()
    await store.write(work)
    times.append(time.perf_counter() - begun)


async def ten_steps(folder: Path, runs: int) -> None:
    """Ten steps in each of many runs, in turn with the hand-written loop."""
    file, hand, moves = folder / "store.db", HandWritten(folder / "hand.db"), Moves(TEN)
    await (await SqliteStore.open(file)).close()
    empty = {one: one.stat().st_size for one in (file, hand.file)}
    store = await SqliteStore.open(file)
    theirs: list[float] = []
    ours: list[float] = []
    for _ in range(runs):
        run_id = f"run-{secrets.token_hex(13)}"
        hand.begin(run_id)
        await store.write(partial(moves.begin, run_id=run_id))
        for step in range(1, 11):
            begun = time.perf_counter()
            hand.advance(run_id, step)
            theirs.append(time.perf_counter() - begun)
            await timed(ours, store, partial(moves.advance, run_id=run_id, step=step))
    await store.close()
    hand.connection.close()
    say(f"a transition            {median(ours):7.0f} us, of which the engine {median(moves.engine):.0f} us")
    say(f"the hand-written loop   {median(theirs):7.0f} us; ratio {median(ours) / median(theirs):.2f}")
    sizes = {one: (one.stat().st_size - empty[one]) / runs / 1000 for one in empty}
    say(f"ten steps in the file   {sizes[file]:7.2f} kB; hand-written {sizes[hand.file]:.2f} kB")


async def long_run(folder: Path, steps: int) -> None:
    """Whether a step late in a long run costs more than an early one."""
    moves = Moves(sop(*plain(steps + 1)))
    store = await SqliteStore.open(folder / "long.db")
    await store.write(partial(moves.begin, run_id="long"))
    times: list[float] = []
    for step in range(1, steps + 1):
        await timed(times, store, partial(moves.advance, run_id="long", step=step))
    await store.close()
    early, late = median(times[:500]), median(times[-500:])
    say(f"steps 1 to 500          {early:7.0f} us; the last 500 of {steps}: {late:.0f} us; ratio {late / early:.2f}")


async def many_runs(folder: Path, stored: int) -> None:
    """Whether starts, transitions and admission cost more when many ended runs are in the file."""
    moves = Moves(sop(*plain(1)))
    store = await SqliteStore.open(folder / "many.db")
    found: dict[str, tuple[float, ...]] = {}
    for label, count in (("10", 10), (f"{stored}", stored)):
        await store.write(partial(fill, moves=moves, label=label, count=count))
        await store.read(lambda reader: reader.run_ids()[:1])
        starts: list[float] = []
        ends: list[float] = []
        loads: list[float] = []
        for number in range(500):
            run_id = f"{label}-timed-{number}"
            await timed(loads, store, look)
            await timed(starts, store, partial(moves.begin, run_id=run_id))
            await timed(ends, store, partial(moves.advance, run_id=run_id, step=1))
        found[label] = (median(loads), median(starts), median(ends))
    await store.close()
    few, many = found.values()
    for name, one, other in zip(("admission", "start", "transition"), few, many, strict=True):
        say(f"{name:<10} with 10 runs {one:7.0f} us; with {stored}: {other:.0f} us; ratio {other / one:.2f}")


def fill(writer: Writer, moves: Moves, label: str, count: int) -> None:
    for number in range(count):
        moves.begin(writer, f"{label}-{number}")
        moves.advance(writer, f"{label}-{number}", 1)


def look(writer: Writer) -> None:
    writer.load("kiln-firing", None, NOW)


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--stored", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        folder = Path(name)
        await ten_steps(folder, options.runs)
        await long_run(folder, options.steps)
        await many_runs(folder, options.stored)


if __name__ == "__main__":
    asyncio.run(main())
