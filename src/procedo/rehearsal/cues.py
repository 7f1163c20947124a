"""Who says what when: the reports and answers of a case, each used once and in their order."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from procedo.core.model import Sop
from procedo.rehearsal.script import Answer, Case, Report

__all__ = ["Cues", "Unscripted"]

Cue = TypeVar("Cue", Report, Answer)


class Unscripted(Exception):
    """The procedure asks for something that the script does not have."""


def _meant(cue: Report | Answer, sop: Sop, number: int, root: str) -> bool:
    step = sop.by_number[number]
    return cue.step in {number, step.id} and (cue.sop or root) == sop.name


@dataclass(slots=True)
class Cues:
    """What is left of a case's script. `root` is the procedure that is rehearsed."""

    case: Case
    root: str
    reports: list[Report] = field(init=False)
    answers: list[Answer] = field(init=False)

    def __post_init__(self) -> None:
        self.reports = list(self.case.reports)
        self.answers = list(self.case.answers)

    def report(self, sop: Sop, number: int) -> Report:
        """The next report of a step. Raises `Unscripted`."""
        return self._take(self.reports, sop, number, "report")

    def answer(self, sop: Sop, number: int) -> Answer:
        """The next answer at a step's gate. Raises `Unscripted`."""
        return self._take(self.answers, sop, number, "gate answer")

    def _take(self, cues: list[Cue], sop: Sop, number: int, what: str) -> Cue:
        for place, cue in enumerate(cues):
            if _meant(cue, sop, number, self.root):
                return cues.pop(place)
        where = f"step {number} {sop.by_number[number].title!r}" + (f" of {sop.name}" if sop.name != self.root else "")
        raise Unscripted(f"{where} has no {what} left in the script")

    def unused(self) -> Sequence[str]:
        """What the procedure never asked for."""
        left = [(cue, "report") for cue in self.reports] + [(cue, "gate answer") for cue in self.answers]
        return [f"the {what} of step {cue.step} was never asked for" for cue, what in left]
