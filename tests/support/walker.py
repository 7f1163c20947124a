"""Walks a procedure through `Runs`: reports what a walk says at its steps, decides what it says at its gates."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol

import anyio
from walks import Decision, Failed, Late, Walk

from procedo.core import messages as m
from procedo.core.model import Mode, OnFailure, Sop
from procedo.core.routing import gate_needed
from procedo.core.state import GateKind, Principal, PrincipalKind, Source
from procedo.runs import History, Runs, Snapshot, Surface

AGENT: Final = Surface(Principal(Source.HOST, "agent", PrincipalKind.AGENT))
IDA: Final = Surface(Principal(Source.CLI, "ida", PrincipalKind.HUMAN), can_ask=True)
LONGEST_S: Final = 240.0


class Time(Protocol):
    """A clock that a test moves."""

    def now(self) -> datetime: ...

    def advance_to(self, moment: datetime) -> None: ...


@dataclass
class Walker:
    """One walk of one run; a sub-run gets a walker of its own."""

    runs: Runs
    clock: Time
    walk: Walk

    def __post_init__(self) -> None:
        """Take what is to be said from the walk, one after the other."""
        self.reports = {step: list(said) for step, said in self.walk.reports.items()}
        self.decisions = {step: list(taken) for step, taken in self.walk.decisions.items()}
        self.child = Walker(self.runs, self.clock, self.walk.child) if self.walk.child else None

    async def to_the_end(self, name: str) -> Snapshot:
        """Start the procedure and move it until its run has ended."""
        with anyio.fail_after(LONGEST_S):
            snapshot = await self.runs.start(name, self.walk.inputs, AGENT)
            while snapshot.run.end is None:
                await self.go_on(snapshot)
                snapshot = await self.runs.state(snapshot.run.id, AGENT)
            return snapshot

    def everything_was_used(self) -> bool:
        mine = not any(self.reports.values()) and not any(self.decisions.values())
        return mine and (self.child is None or self.child.everything_was_used())

    async def go_on(self, snapshot: Snapshot) -> None:
        """One move: the first thing that somebody has to do."""
        run_id = snapshot.run.id
        for action in snapshot.actions:
            match action:
                case m.ExecuteStep() | m.DeterministicStep():
                    await self._report(run_id, action)
                case m.WaitApproval() | m.CheckpointWait():
                    await self._decide(action)
                case m.Delegated(due_at=None) if snapshot.children and self.child is not None:
                    await self.child.go_on(snapshot.children[0])
                case m.Delegated(due_at=datetime() as due) | m.PendingStep(due_at=datetime() as due):
                    self.clock.advance_to(due)
                case m.Delegated():
                    await self.runs.wait(run_id, AGENT, LONGEST_S)
                case _:
                    continue
            return
        raise AssertionError(f"{self.walk.says}: nobody can go on: {snapshot.actions}")

    async def _report(self, run_id: str, action: m.ExecuteStep | m.DeterministicStep) -> None:
        said: Any = self.reports[action.step.number].pop(0)
        if isinstance(said, Late):
            assert action.due_at is not None, action
            self.clock.advance_to(action.due_at)
            await self.runs.state(run_id, AGENT)
        elif isinstance(said, Failed):
            await self.runs.advance(run_id, action.execution_id, "failed", said.reason, AGENT)
        else:
            await self.runs.advance(run_id, action.execution_id, "completed", said, AGENT)

    async def _decide(self, action: m.WaitApproval | m.CheckpointWait) -> None:
        taken: Decision = self.decisions[action.step.number].pop(0)
        await self.runs.decide(action.gate_id, taken.verdict, IDA, value=taken.value, comment=taken.comment)


Branch = tuple[int, str]


def declared(sop: Sop, default: Mode) -> set[Branch]:
    """Every way out of every step; `default` is the mode of a procedure that names none."""
    return {branch for step in sop.steps for branch in _declared(sop, sop.mode or default, step.number)}


def _declared(sop: Sop, mode: Mode, number: int) -> Iterator[Branch]:
    step = sop.by_number[number]
    if step.switch:
        yield from ((number, f"switch {port.name}") for port in step.switch)
    elif step.next:
        yield number, "next"
    else:
        yield number, "terminal" if step.terminal else "next in line"
    if step.precondition is not None:
        yield from ((number, "if is true"), (number, "if is false"))
    if step.on_failure.kind is OnFailure.RETRY:
        yield from ((number, "retry"), (number, "retries used up"))
    if step.on_failure.target is not None:
        yield number, "on_failure"
    if step.timeout_s is not None:
        yield number, "late"
    if step.is_gate or gate_needed(sop, mode, step):
        yield number, "on_deny" if step.on_deny is not None else "denied"


def walked(sop: Sop, history: History) -> set[Branch]:
    """The ways out that a run took, from its record."""
    found: set[Branch] = set()
    for execution in history.executions:
        step, attempt = sop.by_number[execution.step], execution.arrival.attempt
        reason = execution.closing.reason if execution.closing is not None else ""
        if step.precondition is not None:
            found.add((step.number, "if is true"))
        if attempt > 1:
            found.add((step.number, "retry"))
        if step.timeout_s is not None and "exceeded" in reason:
            found.add((step.number, "late"))
        if reason and attempt > step.on_failure.retries > 0:
            found.add((step.number, "retries used up"))
    found |= {(gate.step, "late") for gate in history.gates if gate.kind is GateKind.TIMEOUT}
    for record in history.records:
        match record.kind:
            case "Routed":
                found.add((record.data["step"], record.data["rule"]))
            case "StepPassedOver":
                found.add((record.data["step"], "if is false"))
            case "GateResolved" if history.snapshot.run.end is not None and history.snapshot.run.end.denied:
                denied = next(g for g in history.gates if g.id == record.data["gate_id"])
                found.add((denied.step, "denied"))
    return found
