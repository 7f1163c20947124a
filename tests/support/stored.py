"""Runs in a store, moved by the real engine: load, decide, save, in one transaction."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import TypeVar

from engine import BOT, NOW, plain, sop

from procedo.core import messages as m
from procedo.core.altered import altered
from procedo.core.draft import Moment
from procedo.core.evolve import FreshSteps, evolve
from procedo.core.machine import decide
from procedo.core.model import Json, Mode, Sop
from procedo.core.needs import executions_needed
from procedo.core.state import Phase, Principal, Run
from procedo.ports import Attribution, Reader, Store, Writer

__all__ = ["LINE", "WHO", "Book", "advance", "apply", "begin", "folded", "load", "started"]

T = TypeVar("T")

WHO = Attribution(BOT.key, BOT.key, BOT.key)
LINE = sop(*plain(3))
"""Three plain steps, one after the other."""


def load(reader: Reader, made: Sop, run_id: str, command: m.Command | None = None) -> Run:
    """A run with all that a command can need."""
    run = reader.run(run_id)
    assert run is not None
    if not isinstance(run.steps, FreshSteps):
        run = reader.with_steps(run, [step.number for step in made.steps])
    run = reader.with_executions(run, executions_needed(run, command))
    return reader.with_gate(run, command.gate_id) if isinstance(command, m.Decide) else run


def folded(before: Run | None, events: Sequence[m.Event], now: datetime) -> Run:
    """The run after these events, as one transition."""
    run = before
    for event in events:
        run = evolve(run, event, now)
    assert run is not None
    return altered(run, revision=run.revision + 1)


def begin(
    writer: Writer,
    run_id: str = "run-1",
    made: Sop = LINE,
    inputs: Json = None,
    now: datetime = NOW,
    mode: Mode = Mode.AUTO,
    key: str | None = None,
    slot: str | None = None,
    by: Principal = BOT,
) -> Run:
    """Save a new run."""
    command = m.Start(run_id, inputs, by, mode, "host", "marker", key=key)
    events = decide(made, None, command, Moment(now, slot=slot))
    return writer.save(None, folded(None, events, now), events, WHO, now)


def apply(
    writer: Writer, run_id: str, command: m.Command, made: Sop = LINE, now: datetime = NOW, slot: str | None = None
) -> Run:
    """Decide about a command and save what follows."""
    run = load(writer, made, run_id, command)
    events = decide(made, run, command, Moment(now, slot=slot))
    return writer.save(run, folded(run, events, now), events, WHO, now) if events else run


def advance(
    writer: Writer, execution_id: str, run_id: str = "run-1", output: Json = None, made: Sop = LINE, now: datetime = NOW
) -> Run:
    """Report an execution as completed."""
    return apply(writer, run_id, m.Report(execution_id, Phase.COMPLETED, output, BOT), made, now)


async def started(store: Store, *run_ids: str, made: Sop = LINE, now: datetime = NOW) -> None:
    """Save new runs, each in its own transaction."""
    for run_id in run_ids:
        await store.write(partial(begin, run_id=run_id, made=made, now=now))


class Book:
    """One run of one procedure in a store."""

    def __init__(self, store: Store, made: Sop = LINE, run_id: str = "run-1", now: datetime = NOW) -> None:
        self.store = store
        self.sop = made
        self.run_id = run_id
        self.now = now

    async def begin(self, inputs: Json = None, mode: Mode = Mode.AUTO) -> Run:
        return await self.store.write(lambda writer: begin(writer, self.run_id, self.sop, inputs, self.now, mode))

    async def do(self, command: m.Command) -> Run:
        return await self.store.write(lambda writer: apply(writer, self.run_id, command, self.sop, self.now))

    async def report(self, execution_id: str, output: Json = None) -> Run:
        return await self.do(m.Report(execution_id, Phase.COMPLETED, output, BOT))

    async def read(self, look: Callable[[Reader, Run], T]) -> T:
        """What `look` finds, given the run with all its step states."""
        return await self.store.read(lambda reader: look(reader, load(reader, self.sop, self.run_id)))
