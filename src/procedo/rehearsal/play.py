"""Performs a case: the real engine on the store in memory, a clock that jumps, and nothing that acts outside.

The host's steps, the steps of other agents and every capability with an effect get their results from the
script; pure capabilities run. Nothing waits for real time.
"""

import tempfile
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from msgspec import Struct

from procedo.app import App, assemble
from procedo.config import Settings
from procedo.config.notices import NO_NOTICES
from procedo.core import messages as m
from procedo.core.altered import altered
from procedo.core.principal import Principal, PrincipalKind, Source
from procedo.core.state import Performer, Phase
from procedo.driver import Driver
from procedo.errors import ProcedoError
from procedo.ports import Capabilities, Capability, CapabilityCall, Claim, OutcomeUnknown
from procedo.rehearsal.coverage import Branch, taken
from procedo.rehearsal.cues import Cues, Unscripted
from procedo.rehearsal.judgement import judged
from procedo.rehearsal.script import Case
from procedo.runs import Surface
from procedo.stores.memory import MemoryStore
from procedo.transition import Snapshot

__all__ = ["Played", "play"]

_HOST: Final = Surface(Principal(Source.HOST, "rehearsal-agent", PrincipalKind.AGENT))
_LONGEST: Final = 2_000
_OPENING: Final = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
_LEASE: Final = timedelta(days=1)


class Played(Struct, frozen=True):
    """How a case went: what was not as expected, and the branches that it took."""

    case: Case
    failures: tuple[str, ...]
    branches: frozenset[Branch]


class _StageClock:
    def __init__(self) -> None:
        self._now = _OPENING

    def now(self) -> datetime:
        return self._now

    async def sleep(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)

    def jump_to(self, moment: datetime) -> None:
        self._now = max(self._now, moment)


class _StageIds:
    def __init__(self) -> None:
        self._count = 0

    def run_id(self) -> str:
        self._count += 1
        return f"run-{self._count}"

    def marker(self) -> str:
        return "rehearsal"


class _Props:
    """The capabilities of a rehearsal: what would act outside is replaced by `instead`."""

    def __init__(self, real: Capabilities, instead: Callable[[CapabilityCall], object]) -> None:
        self._real = real
        self._instead = instead

    def get(self, capability_id: str) -> Capability | None:
        found = self._real.get(capability_id)
        if found is None or found.pure:
            return found

        async def run(call: CapabilityCall) -> object:
            return self._instead(call)

        return altered(found, run=run, objection=None)

    def all(self) -> tuple[Capability, ...]:
        return tuple(filter(None, (self.get(capability.id) for capability in self._real.all())))


class _Performance:
    """One case on one application."""

    def __init__(self, app: App, clock: _StageClock, cues: Cues) -> None:
        self._app = app
        self._clock = clock
        self._cues = cues
        self._unscripted: Unscripted | None = None
        self._at: Snapshot | None = None
        self._driver = Driver(app.runs, app.store, _Props(app.capabilities, self._result))

    async def to_the_end(self, name: str) -> Snapshot:
        """Perform until the run has ended. Raises `Unscripted` where it cannot go on."""
        snapshot = await self._app.runs.start(name, self._cues.case.inputs, _HOST)
        run_id = snapshot.run.id
        for _ in range(_LONGEST):
            await self._serve()
            snapshot = await self._app.runs.state(run_id, _HOST)
            if snapshot.run.end is not None:
                return snapshot
            if not await self._move(snapshot) and not self._let_time_pass(snapshot):
                raise Unscripted(f"nobody can go on: {_told(snapshot)}")
        raise Unscripted(f"it had not ended after {_LONGEST} moves")

    async def _serve(self) -> None:
        """Do what the server itself has to do now."""
        while (claim := await self._claim()) is not None:
            await self._perform(claim)
            await self._app.store.write(lambda writer, done=claim: writer.finish_job(done))  # type: ignore[misc]  # mypy infers no type for a lambda with a default
            if self._unscripted is not None:
                raise self._unscripted

    async def _claim(self) -> Claim | None:
        now = self._clock.now()
        return await self._app.store.write(lambda writer: writer.claim_job("rehearsal", now, now + _LEASE))

    async def _perform(self, claim: Claim) -> None:
        self._at = await self._app.runs.look(claim.job.run_id)
        execution = self._at.run.executions.get(claim.job.subject)
        if execution is None or execution.performer is not Performer.AGENT or execution.phase is not Phase.OPEN:
            await self._driver.perform(claim)
            return
        report = self._cues.report(self._at.sop, execution.step)
        reason = str(report.output) if report.status is Phase.FAILED else ""
        command = m.Finish(execution.id, claim.fence, report.status, report.output, reason)
        await self._app.runs.command(claim.job.run_id, command)

    def _result(self, call: CapabilityCall) -> object:
        if call.effect_id.endswith(":verify") or self._at is None:
            raise OutcomeUnknown("a verification that acts outside is not rehearsed: a person decides")
        try:
            report = self._cues.report(self._at.sop, int(call.execution_id.partition(".")[0]))
        except Unscripted as error:
            # The driver must not take it for a failed attempt.
            self._unscripted = error
            raise ValueError(str(error)) from error
        if report.status is Phase.FAILED:
            raise ValueError(str(report.output))
        return report.output

    async def _move(self, snapshot: Snapshot) -> bool:
        """Let somebody do the first thing that is to be done; False when only time can move the run."""
        for action in snapshot.actions:
            match action:
                case m.ExecuteStep() | m.DeterministicStep():
                    await self._report(snapshot, action)
                case m.WaitApproval() | m.CheckpointWait():
                    await self._answer(snapshot, action)
                case _:
                    continue
            return True
        for child in snapshot.children:
            if await self._move(child):
                return True
        return False

    async def _report(self, snapshot: Snapshot, action: m.ExecuteStep | m.DeterministicStep) -> None:
        report = self._cues.report(snapshot.sop, action.step.number)
        if report.late:
            self._pass(action.due_at, f"step {action.step.number} has no time limit")
            return
        output = report.output
        await self._app.runs.advance(snapshot.run.id, action.execution_id, report.status.value, output, _HOST)

    async def _answer(self, snapshot: Snapshot, action: m.WaitApproval | m.CheckpointWait) -> None:
        answer = self._cues.answer(snapshot.sop, action.step.number)
        if answer.late:
            self._pass(action.gate.due_at, f"the gate of step {action.step.number} has no time limit")
            return
        person = Surface(Principal(Source.CLI, answer.by, PrincipalKind.HUMAN), host=False)
        verdict, comment = answer.verdict, answer.comment
        await self._app.runs.decide(action.gate_id, verdict, person, value=answer.value, comment=comment)

    def _pass(self, moment: datetime | None, otherwise: str) -> None:
        if moment is None:
            raise Unscripted(f"{otherwise}, so nothing can be late there")
        self._clock.jump_to(moment)

    def _let_time_pass(self, snapshot: Snapshot) -> bool:
        moments = [*_moments(snapshot)]
        if moments:
            self._clock.jump_to(min(moments))
        return bool(moments)


def _moments(snapshot: Snapshot) -> Iterable[datetime]:
    if snapshot.run.due_at is not None:
        yield snapshot.run.due_at
    for child in snapshot.children:
        yield from _moments(child)


def _told(snapshot: Snapshot) -> str:
    reasons = [action.reason for action in snapshot.actions if isinstance(action, m.PendingStep)]
    return "; ".join(reasons) or f"the run is {snapshot.run.status}"


async def play(settings: Settings, name: str, case: Case) -> Played:
    """Perform one case of a procedure. Raises what `start` raises when the procedure cannot be used."""
    clock = _StageClock()
    with tempfile.TemporaryDirectory(prefix="procedo-rehearsal-") as folder:
        # Checkpoints leave a state file, which must not lie in the workspace; and nobody is told about a rehearsal.
        stage = altered(settings, data_dir=Path(folder), notices=NO_NOTICES)
        app = assemble(stage, MemoryStore(), clock, _StageIds())
        sop = app.library.get(name).sop
        cues = Cues(case, sop.name if sop is not None else name)
        failures: list[str] = []
        try:
            ended = await _Performance(app, clock, cues).to_the_end(name)
            run_id = ended.run.id
        except Unscripted as error:
            failures.append(str(error))
            run_id = "run-1"
        except ProcedoError as error:
            failures.append(f"{error.message} {error.hint}".rstrip())
            run_id = "run-1"
        if not await app.store.read(lambda reader: reader.run_ids()):
            return Played(case, tuple(failures), frozenset())
        history = await app.runs.history(run_id)
        if not failures:
            failures += [*judged(case.expected, history), *cues.unused()]
        branches = taken(history.snapshot.sop, history.executions, history.gates, history.records)
        return Played(case, tuple(failures), branches)
