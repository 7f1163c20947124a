"""What a step refers to: other steps, conditions, bindings, schemas; each compiled or told with its line."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from procedo.core import bindings, conditions
from procedo.core.model import Condition, Json, Schema
from procedo.sopfile.cel import VARIABLES, compile_condition
from procedo.sopfile.problems import Findings, nearest
from procedo.sopfile.routevalues import END
from procedo.sopfile.schemas import compile_checked
from procedo.sopfile.valueforms import Reference

__all__ = ["Place", "Resolver"]

_SHOWN: Final = 120
_SCOPE: Final = frozenset(VARIABLES)


class Place(Struct, frozen=True):
    """Where a field stands: file, line, and how it is called in messages. `lines` are those of a longer text."""

    file: str
    line: int
    name: str
    lines: tuple[int, ...] = ()

    def line_at(self, text: str, position: int) -> int:
        """The line of a position in the text."""
        index = text.count("\n", 0, position)
        return self.lines[index] if index < len(self.lines) else self.line


@dataclass(slots=True)
class Resolver:
    """Resolves against the steps of one definition. `used` collects what the step at hand reads."""

    numbers: frozenset[int]
    ids: Mapping[str, str]
    findings: Findings
    used: set[int] = field(default_factory=set)
    names: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.names = frozenset(map(str, self.numbers))

    def step(self, reference: Reference, place: Place) -> int | None:
        """The number of a step; None when there is no such step, which is told."""
        number = int(self.ids.get(reference, 0)) if isinstance(reference, str) else reference
        if number in self.numbers:
            return number
        near = nearest(str(reference), self.ids) if isinstance(reference, str) else ""
        hint = f"did you mean {near}?" if near else ""
        self.findings.add("unknown-step", place.file, place.line, f"{place.name}: there is no step {reference}", hint)
        return None

    def steps(self, references: Iterable[Reference], place: Place) -> tuple[int, ...]:
        """The numbers of several steps, without those that do not exist."""
        found = [self.step(reference, place) for reference in references]
        return tuple(dict.fromkeys(number for number in found if number is not None))

    def target(self, reference: Reference, place: Place) -> int | None:
        """The number of a step; None for `end`."""
        return None if reference == END and END not in self.ids else self.step(reference, place)

    def condition(self, text: str, place: Place, variables: tuple[str, ...] = VARIABLES[:-1]) -> Condition | None:
        """Compile a condition; None when it cannot be read, which is told."""
        try:
            if conditions.is_comparison(text):
                compiled = self._comparison(text, place)
            else:
                compiled = compile_condition(text, self.ids, variables=variables, known=self.names)
        except conditions.ConditionError as error:
            self._unreadable(error, text, place)
            return None
        self.used.update(compiled.refs or ())
        return compiled

    def _comparison(self, text: str, place: Place) -> Condition:
        compiled = conditions.parse(text, self.ids)
        for number in sorted((compiled.refs or frozenset()) - self.numbers):
            raise conditions.ConditionError(f"there is no step {number}", max(text.find(str(number)), 0))
        root = text.strip().removeprefix("$.").split(".")[0].split()[0] if text.strip().startswith("$.") else ""
        if root and root not in _SCOPE:
            hint = f"conditions read {', '.join(f'$.{name}' for name in VARIABLES)}"
            self.findings.add("no-effect", place.file, place.line, f"{place.name}: $.{root} is never there", hint)
        if root == "steps" and compiled.refs is None:
            raise conditions.ConditionError("it names no step that exists", text.find("steps"))
        return compiled

    def payload_condition(self, text: str, place: Place) -> Condition | None:
        """Compile a condition on the payload of a trigger, whose root is the payload itself."""
        try:
            if conditions.is_comparison(text):
                return conditions.parse(text)
            return compile_condition(text, {}, variables=("payload",))
        except conditions.ConditionError as error:
            self._unreadable(error, text, place)
            return None

    def _unreadable(self, error: conditions.ConditionError, text: str, place: Place) -> None:
        shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
        message = f"{place.name}: {error.message}, at character {error.position + 1} of {shown!r}"
        hint = ""
        if "{{" in text:
            hint = "conditions name values without braces: inputs.level > 3"
        elif text.lstrip().startswith("$"):
            hint = 'one comparison begins with `$`; for more write inputs.level > 3 && steps["1"].done'
        self.findings.add("bad-condition", place.file, place.line, message, hint)

    def template(self, value: Json, place: Place, *, bare: str = "", calls: int = 0) -> Json:
        """The value with step ids as numbers; what is wrong with its bindings is told.

        `calls` is how many planned calls stand before it. With `bare` see `bindings.rewrite`.
        """
        try:
            found = bindings.references(bindings.rewrite(value, {}, bare=bare) if bare else value)
        except bindings.BindingError:
            for error in bindings.validate(value):
                self._binding(error.message, error.position, value, place)
            return value
        for reference in found:
            self._reference(reference, value, place, calls)
        return bindings.rewrite(value, self.ids, bare=bare)

    def _reference(self, reference: bindings.Reference, value: Json, place: Place, calls: int) -> None:
        if reference.root == "calls" and int(reference.path[0]) >= calls:
            message = f"{{{{{reference.name}}}}}: there are {calls} planned calls before this"
            self._binding(message, reference.position, value, place)
        if reference.step is None:
            return
        name = self.ids.get(reference.step, reference.step)
        if name in self.names:
            self.used.add(int(name))
            return
        line = place.line_at(value, reference.position) if isinstance(value, str) else place.line
        message = f"{place.name}: {{{{{reference.name}}}}} names step {reference.step}, which does not exist"
        near = nearest(reference.step, self.ids)
        self.findings.add("unknown-step", place.file, line, message, f"did you mean {near}?" if near else "")

    def _binding(self, message: str, position: int, value: Json, place: Place) -> None:
        line = place.line_at(value, position) if isinstance(value, str) else place.line
        self.findings.add("bad-binding", place.file, line, f"{place.name}: {message}")

    def schema(self, source: Json, place: Place) -> Schema | None:
        """Compile a JSON Schema; None when it is not valid, which is told."""
        return compile_checked(source, place.file, place.line, place.name, self.findings)
