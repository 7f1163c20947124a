"""Several processes on one file, and processes that die at any moment."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest
import storeprocess
from stored import started
from wholeness import whole

from procedo.stores.sqlite import SqliteStore

pytestmark = pytest.mark.anyio

KILLS = int(os.environ.get("PROCEDO_KILLS", "20"))
"""How often a process is killed; a measurement takes a thousand."""


@contextmanager
def process(file: Path, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """Another process on the file; it does not outlive the test."""
    command = [sys.executable, storeprocess.__file__, str(file), *words]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as made:
        try:
            yield made
        finally:
            made.kill()


def told(made: "subprocess.Popen[str]") -> list[str]:
    """The next line of a process."""
    assert made.stdout is not None
    return made.stdout.readline().split()


def let(made: "subprocess.Popen[str]") -> None:
    """Let a process begin that waits for it."""
    assert made.stdin is not None
    made.stdin.write("\n")
    made.stdin.flush()


@pytest.mark.requirement("C16")
async def test_of_two_processes_with_the_same_report_one_wins_each_time(file: Path) -> None:
    rounds = 50
    store = await SqliteStore.open(file)
    await started(store, *(f"run-{number}" for number in range(rounds)))
    with process(file, "race", str(rounds)) as one, process(file, "race", str(rounds)) as two:
        assert [told(one), told(two)] == [["ready"], ["ready"]]
        for made in (one, two):
            let(made)
        outcomes = {made.pid: [told(made) for _ in range(rounds)] for made in (one, two)}
    for number in range(rounds):
        run, records = await store.read(lambda reader, n=number: whole(reader, f"run-{n}"))  # type: ignore[misc]  # binds the loop variable
        winners = [pid for pid, lines in outcomes.items() if lines[number][0] == "won"]
        losers = [lines[number] for lines in outcomes.values() if lines[number][0] == "lost"]
        assert len(winners) == 1
        assert run.last_output == winners[0]
        assert [(name, code) for _, name, code in losers] == [(f"run-{number}", losers[0][2])]
        assert not losers[0][2].startswith(("sqlite", "store"))
        assert sum(record.kind == "ExecutionCompleted" for record in records) == 1
    await store.close()


@pytest.mark.requirement("C32")
async def test_a_commit_of_another_process_wakes_whoever_waits(file: Path) -> None:
    store = await SqliteStore.open(file)
    with process(file, "wait") as other:
        assert await anyio.to_thread.run_sync(told, other) == ["ready"]
        await started(store, "run-1")
        assert await anyio.to_thread.run_sync(told, other) == ["True"]
    await store.close()


async def test_what_another_process_commits_is_seen_without_opening_again(file: Path) -> None:
    mine, other = await SqliteStore.open(file), await SqliteStore.open(file)
    await mine.read(lambda reader: reader.run_ids())
    await started(other, "run-1")
    with anyio.fail_after(240):
        assert await mine.changed(240) is True
    assert await mine.read(lambda reader: reader.run_ids()) == ("run-1",)
    await mine.close()
    await other.close()


async def test_nothing_is_lost_doubled_or_torn_when_a_process_is_killed_at_any_moment(file: Path) -> None:
    store = await SqliteStore.open(file)
    dice = random.Random(20260301)  # noqa: S311  # no secret
    for kill in range(KILLS):
        with process(file, "walk", f"walk-{kill}") as made:
            last = [told(made) for _ in range(dice.randint(1, 60))][-1]
            # From here on the process works on while we aim: it dies wherever it happens to be.
            made.send_signal(signal.SIGKILL)
            assert made.stdout is not None
            rest = [line.split() for line in made.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
        run_id, revision = ([last, *rest])[-1]
        run, _ = await store.read(lambda reader, name=run_id: whole(reader, name))  # type: ignore[misc]  # binds the loop variable
        # What was told is there; at most one transition was committed and could not be told any more.
        assert run.revision in (int(revision), int(revision) + 1) or run.end is not None
    for run_id in await store.read(lambda reader: reader.run_ids()):
        await store.read(lambda reader, name=run_id: whole(reader, name))  # type: ignore[misc]  # binds the loop variable
    await started(store, "run-1")
    await store.close()
