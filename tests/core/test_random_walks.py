"""Random callers, right and wrong ones, against a model of plain lines.

The procedure is a line of steps, some with a gate in front, some checkpoints, some that may be retried. The
model knows only: which step is next, whether it waits for a person, how many attempts are left.
"""

from dataclasses import dataclass, field

import pytest
from engine import BOT, IDA, NOOR, NOW, Desk, sop
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from procedo.core import messages as m
from procedo.core.altered import altered
from procedo.core.evolve import evolve
from procedo.core.model import FailureRule, Kind, OnFailure, Step
from procedo.core.state import Phase, Principal, Run, Status, Verdict
from procedo.errors import Refused

STEPS = st.lists(st.sampled_from(["plain", "gated", "checkpoint", "retried"]), min_size=1, max_size=5)
RETRIES = 2


def step_of(number: int, kind: str) -> Step:
    step = Step(number, f"Step {number}")
    if kind == "gated":
        return altered(step, requires_confirmation=True)
    if kind == "checkpoint":
        return altered(step, kind=Kind.CHECKPOINT)
    rule_of = FailureRule(OnFailure.RETRY, RETRIES) if kind == "retried" else FailureRule()
    return altered(step, on_failure=rule_of)


@dataclass
class Model:
    """What a reader of the procedure would expect."""

    kinds: list[str]
    at: int = 0
    failures: int = 0
    ended: Status | None = None
    waiting: bool = field(init=False)

    def __post_init__(self) -> None:
        self.waiting = self.kinds[0] in ("gated", "checkpoint")

    @property
    def kind(self) -> str:
        return self.kinds[self.at]

    def forward(self) -> None:
        self.at += 1
        self.failures = 0
        if self.at == len(self.kinds):
            self.ended = Status.COMPLETED
        else:
            self.waiting = self.kind in ("gated", "checkpoint")

    def failed(self) -> None:
        self.failures += 1
        if self.kind != "retried" or self.failures > RETRIES:
            self.ended = Status.FAILED

    @property
    def status(self) -> Status:
        if self.ended is not None:
            return self.ended
        if not self.waiting:
            return Status.RUNNING
        return Status.PAUSED_CHECKPOINT if self.kind == "checkpoint" else Status.WAITING_APPROVAL


class Walk(RuleBasedStateMachine):
    @initialize(kinds=STEPS)
    def begin(self, kinds: list[str]) -> None:
        self.model = Model(kinds)
        self.desk = Desk(sop(*(step_of(n, kind) for n, kind in enumerate(kinds, 1)))).start()
        self.final: Run | None = None

    def refused(self, command: m.Command) -> None:
        before = self.desk.state
        with pytest.raises(Refused):
            self.desk.do(command)
        assert self.desk.state == before

    @property
    def execution(self) -> str:
        return self.desk.state.open_executions[0].id

    @precondition(lambda self: self.model.ended is None and not self.model.waiting)
    @rule(output=st.integers())
    def report_completed(self, output: int) -> None:
        execution = self.execution
        self.desk.report(execution, output)
        assert self.desk.report(execution, output) == []
        self.model.forward()
        self.refused(m.Report(execution, Phase.COMPLETED, output + 1, BOT))

    @precondition(lambda self: self.model.ended is None and not self.model.waiting)
    @rule()
    def report_failed(self) -> None:
        self.desk.fail(self.execution)
        self.model.failed()
        self.model.waiting = False

    @precondition(lambda self: self.model.ended is None and self.model.waiting)
    @rule(by=st.sampled_from([IDA, NOOR]))
    def approve(self, by: Principal) -> None:
        gate = self.desk.state.open_gates[0].id
        command = m.Decide(gate, Verdict.APPROVE, by)
        self.desk.do(command)
        assert self.desk.do(command) == []
        self.model.waiting = False
        if self.model.kind == "checkpoint":
            self.model.forward()

    @precondition(lambda self: self.model.ended is None and self.model.waiting)
    @rule()
    def deny(self) -> None:
        self.desk.do(m.Decide(self.desk.state.open_gates[0].id, Verdict.DENY, IDA))
        self.model.ended = Status.CANCELLED

    @precondition(lambda self: self.model.ended is None and self.model.waiting)
    @rule(output=st.integers())
    def the_model_tries_to_pass_a_gate(self, output: int) -> None:
        step = self.model.at + 1
        opened = self.desk.state.steps[step].executions + 1
        self.refused(m.Report(f"{step}.{opened}", Phase.COMPLETED, output, BOT))
        self.refused(m.Decide(self.desk.state.open_gates[0].id, Verdict.APPROVE, BOT))

    @rule(step=st.integers(1, 6), n=st.integers(1, 5), output=st.text(max_size=3))
    def a_stale_or_early_report(self, step: int, n: int, output: str) -> None:
        execution = f"{step}.{n}"
        if all(e.id != execution for e in self.desk.state.open_executions):
            self.refused(m.Report(execution, Phase.COMPLETED, output, BOT))

    @precondition(lambda self: self.model.ended is None)
    @rule()
    def cancel(self) -> None:
        self.desk.do(m.Cancel("enough", IDA))
        self.model.ended = Status.CANCELLED

    @rule(seconds=st.floats(0, 10_000))
    def time_alone_changes_nothing_without_a_deadline(self, seconds: float) -> None:
        assert self.desk.later(seconds) == []

    @invariant()
    def the_run_is_where_the_model_is(self) -> None:
        assert self.desk.status is self.model.status
        if self.model.ended is None:
            assert len(self.desk.open) == 1

    @invariant()
    def an_end_never_moves(self) -> None:
        if self.final is not None:
            assert self.desk.state == self.final
        if self.model.ended is not None:
            self.final = self.desk.state

    @invariant()
    def the_events_rebuild_the_run(self) -> None:
        run: Run | None = None
        for event in self.desk.events:
            run = evolve(run, event, NOW)
        rebuilt, live = run, self.desk.state
        assert rebuilt is not None
        assert (rebuilt.seq, rebuilt.status, rebuilt.gate_count) == (live.seq, live.status, live.gate_count)
        assert {e.id: e.phase for e in rebuilt.executions.values()} == {e.id: e.phase for e in live.executions.values()}


TestWalk = Walk.TestCase
TestWalk.settings = settings(stateful_step_count=25)
