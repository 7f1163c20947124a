"""A run in memory, moved by the pure engine alone: what most rules of the core are tested with."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from procedo.core import messages as m
from procedo.core.actions import actions
from procedo.core.altered import altered
from procedo.core.draft import Moment
from procedo.core.evolve import evolve
from procedo.core.machine import decide
from procedo.core.model import Condition, Json, Kind, Mode, Schema, Sop, Step, Truth, Violation
from procedo.core.state import Phase, Principal, PrincipalKind, Run, Source, Status, Verdict

__all__ = ["BOT", "IDA", "NOOR", "NOW", "Desk", "condition", "person", "schema", "sop"]

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
BOT = Principal(Source.HOST, "some-client", PrincipalKind.AGENT)


def person(name: str, source: Source = Source.CLI) -> Principal:
    return Principal(source, name, PrincipalKind.HUMAN)


IDA = person("ida")
NOOR = person("noor")


def sop(*steps: Step, **changes: object) -> Sop:
    made = Sop(name="kiln-firing", description="Fire a kiln.", steps=steps, digest="d" * 64)
    return altered(made, **changes)  # type: ignore[arg-type]  # a test names fields of Sop only


def condition(source: str, key: str, wanted: Json, *, step: int | None = None, note: str = "") -> Condition:
    """A condition that holds when a field of the inputs, or of a step's output, has the wanted value."""

    def test(scope: Mapping[str, Json]) -> Truth:
        holder = scope["inputs"] if step is None else scope["steps"].get(str(step))
        value = holder.get(key) if isinstance(holder, dict) else None
        return Truth(value == wanted, note)

    return Condition(source, test, frozenset() if step is None else frozenset({step}))


def schema(**kinds: type) -> Schema:
    """A schema of an object whose required fields have these Python types."""

    def violations(value: Json) -> tuple[Violation, ...]:
        if not isinstance(value, dict):
            return (Violation("", "object", type(value).__name__),)
        return tuple(
            Violation(key, kind.__name__, type(value.get(key)).__name__)
            for key, kind in kinds.items()
            if not isinstance(value.get(key), kind)
        )

    return Schema({"type": "object", "required": list(kinds)}, violations)


class Desk:
    """Hands commands to the engine, applies the events, and keeps them."""

    def __init__(self, made: Sop, mode: Mode = Mode.AUTO, inputs: Json = None, moment: Moment | None = None) -> None:
        self.sop = made
        self.mode = mode
        self.inputs = inputs
        self.moment = moment or Moment(NOW)
        self.run: Run | None = None
        self.events: list[m.Event] = []

    def do(self, command: m.Command) -> list[str]:
        """The kinds of the events that a command causes."""
        found = decide(self.sop, self.run, command, self.moment)
        for event in found:
            self.run = evolve(self.run, event, self.moment.now)
        self.events += found
        return [type(event).__name__ for event in found]

    def start(self, by: Principal = BOT) -> "Desk":
        self.do(m.Start("run-1", self.inputs, by, self.mode, "host", "marker"))
        return self

    def report(
        self, execution: str, output: Json = None, status: Phase = Phase.COMPLETED, by: Principal = BOT
    ) -> list[str]:
        return self.do(m.Report(execution, status, output, by))

    def fail(self, execution: str, reason: str = "it broke") -> list[str]:
        return self.report(execution, reason, Phase.FAILED)

    def answer(self, gate: int, verdict: Verdict, by: Principal = IDA, value: Json = None, why: str = "") -> list[str]:
        return self.do(m.Decide(f"run-1.g{gate}", verdict, by, value, why))

    def approve(self, gate: int, by: Principal = IDA) -> list[str]:
        return self.answer(gate, Verdict.APPROVE, by)

    def deny(self, gate: int, by: Principal = IDA, why: str = "") -> list[str]:
        return self.answer(gate, Verdict.DENY, by, why=why)

    def later(self, seconds: float) -> list[str]:
        """Let that much time pass, and act."""
        self.moment = altered(self.moment, now=self.moment.now + timedelta(seconds=seconds))
        return self.do(m.Tick())

    @property
    def state(self) -> Run:
        assert self.run is not None
        return self.run

    @property
    def status(self) -> Status:
        return self.state.status

    @property
    def reason(self) -> str:
        assert self.state.end is not None
        return self.state.end.reason

    @property
    def open(self) -> list[str]:
        """Ids of open executions, and `g<n>` for open gates."""
        gates = [gate.id.rpartition(".")[2] for gate in self.state.open_gates]
        return [e.id for e in self.state.open_executions] + gates

    @property
    def offers(self) -> Sequence[m.Action]:
        return actions(self.sop, self.state)

    def output_of(self, execution: str) -> Json:
        closing = self.state.executions[execution].closing
        assert closing is not None
        return closing.output


def plain(count: int, **changes: object) -> tuple[Step, ...]:
    """Steps 1..count without anything special, and the same changes for each."""
    made = (Step(number, f"Step {number}", kind=Kind.EXECUTE) for number in range(1, count + 1))
    return tuple(altered(step, **changes) for step in made)  # type: ignore[arg-type]  # fields of Step only
