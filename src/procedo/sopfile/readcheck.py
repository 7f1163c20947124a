"""Checks that what a step reads can be there: not its own output, nor one that comes only later."""

from collections.abc import Mapping
from typing import Final

from procedo.core.model import Step
from procedo.sopfile.checked import Checked
from procedo.sopfile.flow import Flow
from procedo.sopfile.reads import Read, reads_of

__all__ = ["check_reads"]

_WALKS: Final = 400
"""How many searches are made for reads that neither always nor never find a value."""


def check_reads(one: Checked, flow: Flow) -> None:
    """Tell every read that finds nothing, or may find nothing."""
    walks: dict[int, frozenset[int]] = {}
    for step in one.sop.steps:
        if step.number in flow.reached:
            for read in reads_of(one, step):
                _read(one, flow, step, read, walks)


def _read(one: Checked, flow: Flow, step: Step, read: Read, walks: dict[int, frozenset[int]]) -> None:
    if read.step not in one.sop.by_number:
        return
    if read.step == step.number:
        if read.before:
            _tell(one, step, read, f"{read.shown} reads the output of its own step, which is not there yet")
        return
    if flow.always_before(read.step, step.number) or _awaited(flow, step, read.step):
        return
    if flow.only_behind(step.number, read.step) or not _leads(
        flow, read.step, step.number, walks, bool(one.sop.forking)
    ):
        _tell(one, step, read, f"{read.shown} reads step {read.step}, which does not come before step {step.number}")
    elif read.must:
        message = f"{read.shown} reads step {read.step}, which some ways to step {step.number} do not complete"
        hint = "where it is missing the step fails; lead those ways elsewhere"
        one.findings.add("binding-uncertain", one.written(step).file, read.line, message, hint)


def _tell(one: Checked, step: Step, read: Read, message: str) -> None:
    file = one.written(step).file
    if read.field in _ORDER_CODES:
        one.findings.add(_ORDER_CODES[read.field], file, read.line, message, "it is never true; read an earlier step")
    else:
        one.findings.add("binding-order", file, read.line, message, "read an earlier step")


_ORDER_CODES: Final[Mapping[str, str]] = dict.fromkeys(
    ("routing.when", "routing.switch", "verify"), "binding-uncertain"
)


def _awaited(flow: Flow, step: Step, number: int) -> bool:
    return any(other == number or flow.dominators.dominates((number, True), (other, True)) for other in step.depends_on)


def _leads(flow: Flow, start: int, goal: int, walks: dict[int, frozenset[int]], forks: bool) -> bool:
    """Whether some way leads from one step to another; with forks a step of another branch may come first."""
    if forks:
        return True
    if start not in walks:
        if len(walks) >= _WALKS:
            return True
        walks[start] = flow.reachable(start)
    return goal in walks[start]
