"""What can be wrong with a definition: each problem's code, how bad it is, and how it is told.

The table `CODES` is the one place that knows the codes; reports, documentation and tests read it.
"""

import difflib
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from msgspec import Struct

__all__ = ["CODES", "Code", "Findings", "Problem", "Severity", "nearest"]

Severity: TypeAlias = Literal["error", "warning", "note"]

_ERRORS: Final = {
    "approval-by-timeout": "A definition asks that silence counts as approval.",
    "bad-arguments": "Authored arguments do not fit the input schema of their capability.",
    "bad-binding": "A `{{…}}` binding cannot be read.",
    "bad-condition": "A condition cannot be read, or names something that does not exist.",
    "bad-default": "The default of an input does not fit its schema.",
    "bad-name": "A name cannot be used as the name of a procedure.",
    "bad-schema": "A JSON Schema is not valid, or refers to something that is not in it.",
    "bad-value": "A value has the wrong type or is no known word.",
    "binding-order": "A step reads an output that cannot exist when it begins.",
    "blank-title": "A step has no title.",
    "call-denied": "A step plans a call of a tool that its own scope does not allow.",
    "capability-off": "A capability is not enabled in this workspace.",
    "dependency-cycle": "Steps depend on each other in a circle.",
    "duplicate-id": "Two steps have the same id.",
    "duplicate-name": "Two procedures have the same name.",
    "duplicate-number": "Two steps have the same number.",
    "edit-without-object": "`edit` names a field that no approver could amend.",
    "endless-loop": "Steps lead to each other and to no end.",
    "field-conflict": "Fields of one step contradict each other.",
    "file-too-large": "A file is larger than a definition may be.",
    "link-out": "A file or folder is a link that leaves the library.",
    "misspelt-bullet": "A bullet is nearly a known field and would be read as text.",
    "missing-header": "A folder holds steps and no `SOP.toml`.",
    "missing-key": "A required key is missing.",
    "missing-sop-table": "A header has no table `[sop]`.",
    "nested-value": "The value of a bullet stands where it is not read.",
    "no-steps": "A procedure has no steps.",
    "reserved-form": "A form that this version does not offer.",
    "sop-recursion": "A procedure starts itself, directly or through others.",
    "stray-field": "A line looks like a field and stands where it is only text.",
    "toml-syntax": "A header is not valid TOML.",
    "unknown-agent": "A step names an agent that the workspace does not have.",
    "unknown-capability": "A step names a capability that does not exist.",
    "unknown-key": "A key is not known here.",
    "unknown-policy": "A step names an approval policy that the workspace does not have.",
    "unknown-sop": "A step starts a procedure that the library does not have.",
    "unknown-step": "A reference names a step that does not exist.",
    "unknown-tool": "A step names a tool that no agent has.",
    "unreadable-file": "A file cannot be read as UTF-8 text.",
    "unsatisfiable-dependency": "A step waits for one that can only run after it.",
    "unsatisfiable-policy": "An approval policy that nobody can satisfy.",
}
_WARNINGS: Final = {
    "admits-none": "A limit that lets no run start.",
    "auto-approve": "An approval policy that approves by itself.",
    "binding-uncertain": "A step reads an output that some ways through the procedure do not produce.",
    "break-glass-policy": "An approval policy that nobody can satisfy, and that somebody may override.",
    "disabled-agent": "A step is for an agent that is disabled, and will be refused.",
    "dependency-uncertain": "Some ways through the procedure never run a step that is waited for.",
    "extra-file": "A file beside the definition is not read.",
    "fork-without-join": "Branches that run side by side never come together.",
    "next-beside-switch": "`next` beside `switch` is never followed.",
    "no-effect": "A field has no effect where it stands.",
    "port-never-taken": "A port of a switch comes after its catch-all.",
    "repeated-bullet": "A field is given twice in one step; the last one counts.",
    "schema-format": "A `format` in a schema that is not checked.",
    "schema-keyword": "A key of a schema that JSON Schema does not know and that checks nothing.",
    "step-marker": "A numbered item that is no step because of its marker.",
    "step-number": "A written step number differs from the number that the step gets.",
    "title-text": "Text stands before the title of a step.",
    "ungated-effect": "Free text from outside reaches an outward action without a gate.",
    "tool-not-held": "A step names a tool that another agent has and its own does not.",
    "unreachable-step": "No way through the procedure leads to a step.",
    "when-beside-switch": "`when` beside `switch`: where it is false the switch is passed over.",
}
_NOTES: Final = {
    "independent-steps": "Steps that do not depend on each other run one after the other.",
    "steps-twice": "Both files have steps; those of `SOP.md` count.",
    "trigger-not-served": "A trigger that nothing in this server feeds.",
}


class Code(Struct, frozen=True):
    """What a code means, and how bad it is."""

    severity: Severity
    meaning: str


def _codes() -> Mapping[str, Code]:
    table: dict[str, Code] = {}
    kinds: tuple[tuple[Severity, Mapping[str, str]], ...] = (
        ("error", _ERRORS),
        ("warning", _WARNINGS),
        ("note", _NOTES),
    )
    for severity, meanings in kinds:
        table.update({code: Code(severity, meaning) for code, meaning in meanings.items()})
    return MappingProxyType(table)


CODES: Final = _codes()


class Problem(Struct, frozen=True, order=True):
    """One thing that is wrong, with its place. `line` counts from 1; 0 means the file as a whole."""

    file: str
    line: int
    code: str
    severity: Severity
    message: str
    hint: str = ""

    def __str__(self) -> str:
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.file}:{self.line}: {self.severity}[{self.code}]: {self.message}{hint}"


class Findings:
    """Collects problems while a definition is read; `prefix` is put before every file name."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._found: dict[Problem, None] = {}

    def add(self, code: str, file: str, line: int, message: str, hint: str = "") -> None:
        """Note a problem; its severity is that of its code."""
        problem = Problem(self.path(file), line, code, CODES[code].severity, message, hint)
        self._found[problem] = None

    def __contains__(self, code: str) -> bool:
        """True when a problem of that code was noted."""
        return any(problem.code == code for problem in self._found)

    def path(self, file: str) -> str:
        """How a file is called in problems."""
        return f"{self._prefix}{file}"

    def problems(self) -> tuple[Problem, ...]:
        """Everything found, by file and line."""
        return tuple(sorted(self._found))

    @property
    def failed(self) -> bool:
        """True when there is an error among them."""
        return any(problem.severity == "error" for problem in self._found)


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that is closest to `word`, or the empty text."""
    by_form = {_form(name): name for name in known}
    close = difflib.get_close_matches(_form(word), by_form, n=1, cutoff=0.6)
    return by_form[close[0]] if close else ""


def _form(word: str) -> str:
    return word.strip().casefold().replace("-", "_").replace(" ", "_")
