"""Which ways out of its steps a procedure declares, and which of them a run took."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from procedo.core.model import Mode, OnFailure, Sop, Step
from procedo.core.routing import gate_needed
from procedo.core.state import Execution, Gate, Phase, Verdict
from procedo.ports import Record

__all__ = ["Branch", "declared", "taken"]


class Branch(Struct, frozen=True, order=True):
    """One way out of a step."""

    step: int
    way: str

    def __str__(self) -> str:
        return f"step {self.step}: {self.way}"


def _by_route(step: Step) -> Iterator[str]:
    if step.when is not None:
        yield "when is false"
    if step.switch:
        yield from (f"switch {port.name}" for port in step.switch)
    else:
        yield "done"


def _ways(sop: Sop, mode: Mode, step: Step) -> Iterator[str]:
    yield from _by_route(step)
    if step.precondition is not None:
        yield "passed over"
    if step.on_failure.kind is OnFailure.RETRY:
        yield "tried again"
    if step.on_failure.target is not None:
        yield "failed"
    if step.is_gate or gate_needed(sop, mode, step):
        yield "denied"


def declared(sop: Sop, mode: Mode) -> frozenset[Branch]:
    """Every way that the procedure declares."""
    return frozenset(Branch(step.number, way) for step in sop.steps for way in _ways(sop, mode, step))


def _routed(sop: Sop, record: Record) -> Branch:
    rule: str = record.data["rule"]
    step = sop.by_number[record.data["step"]]
    if step.when is not None and f"when {step.when.source!r} is false" in record.data.get("notes", ()):
        return Branch(step.number, "when is false")
    if rule.startswith("switch "):
        return Branch(step.number, rule)
    return Branch(step.number, {"on_failure": "failed", "on_deny": "denied"}.get(rule, "done"))


def taken(
    sop: Sop, executions: Iterable[Execution], gates: Iterable[Gate], records: Iterable[Record]
) -> frozenset[Branch]:
    """Every way that a run took, from its record."""
    found = {_routed(sop, record) for record in records if record.kind == "Routed"}
    found |= {Branch(record.data["step"], "passed over") for record in records if record.kind == "StepPassedOver"}
    for execution in executions:
        if execution.arrival.attempt > 1:
            found.add(Branch(execution.step, "tried again"))
        if execution.phase is Phase.FAILED:
            found.add(Branch(execution.step, "failed"))
    found |= {Branch(gate.step, "denied") for gate in gates if gate.verdict is Verdict.DENY}
    return frozenset(found)
