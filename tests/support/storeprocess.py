"""A process of its own on a store's file. `python storeprocess.py FILE WHAT …`, told by lines on its standard output.

`walk NAME` begins runs of a loop and reports their executions until it is killed, one line for each committed
transition. `race RUNS` reports the first execution of runs that are there, one after the other, with an output of its
own, and tells what came of it. `wait` tells when somebody else has committed.
"""

import asyncio
import itertools
import os
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from engine import plain, sop
from stored import advance, begin

from procedo.errors import ProcedoError
from procedo.stores.sqlite import SqliteStore

LOOP = sop(*plain(2, next=(1,)))


def say(*words: object) -> None:
    print(*words, flush=True)  # noqa: T201  # the standard output is how it tells


async def walk(store: SqliteStore, name: str) -> None:
    for count in itertools.count(1):
        run_id = f"{name}-{count}"
        run = await store.write(partial(begin, run_id=run_id, made=LOOP))
        say(run_id, run.revision)
        number = 0
        while run.end is None:
            number += 1
            report = partial(advance, execution_id=f"1.{number}", run_id=run_id, output={"n": number}, made=LOOP)
            run = await store.write(report)
            say(run_id, run.revision)


async def race(store: SqliteStore, runs: str) -> None:
    say("ready")
    sys.stdin.readline()
    for number in range(int(runs)):
        try:
            run = await store.write(partial(advance, execution_id="1.1", run_id=f"run-{number}", output=os.getpid()))
            say("won", run.id, run.revision)
        except ProcedoError as error:
            say("lost", f"run-{number}", error.code)


async def wait(store: SqliteStore) -> None:
    await store.read(lambda reader: reader.run_ids())
    say("ready")
    say(await store.changed(240))


WHAT: dict[str, Callable[..., Awaitable[None]]] = {"walk": walk, "race": race, "wait": wait}


async def main(file: str, what: str, *words: str) -> None:
    store = await SqliteStore.open(Path(file))
    await WHAT[what](store, *words)
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
