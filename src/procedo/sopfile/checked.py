"""A definition under check: compiled, as it was written, and where its problems go."""

from dataclasses import dataclass, field

from procedo.core.model import Sop, Step
from procedo.sopfile.problems import Findings
from procedo.sopfile.source import SopSource, StepSource

__all__ = ["Checked"]


@dataclass(slots=True)
class Checked:
    """One procedure, its source, and its findings."""

    sop: Sop
    source: SopSource
    findings: Findings
    _steps: dict[int, StepSource] = field(init=False)

    def __post_init__(self) -> None:
        self._steps = {}
        for step in self.source.steps:
            self._steps.setdefault(step.number, step)

    def written(self, step: Step) -> StepSource:
        """The step as it was read."""
        return self._steps[step.number]

    @property
    def where(self) -> str:
        """The file that names the procedure."""
        return self.findings.path(self.source.file)

    def tell(self, code: str, message: str, hint: str = "", step: Step | None = None, field: str = "") -> None:
        """Note a problem at a field of a step, or of the header."""
        if step is None:
            mark = self.source.header.get(field)
            self.findings.add(code, self.source.file, mark.line if mark is not None else 1, message, hint)
            return
        written = self.written(step)
        self.findings.add(code, written.file, written.line_of(field), message, hint)
