"""A definition as it was read: values with their lines, before references are resolved.

Reader and writer meet here: reading gives a `SopSource`, and `write.render` makes the same files of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from procedo.core.model import Json

__all__ = ["Mark", "SopSource", "StepSource", "TriggerSource"]


@dataclass(frozen=True, slots=True)
class Mark:
    """A value, and the line of its file that it stands on (from 1). Lines are no part of its identity."""

    value: Json
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class StepSource:
    """One step; `fields` by the names of `reference.STEP`, without number, title and body."""

    number: int
    title: str
    body: str = ""
    fields: Mapping[str, Mark] = field(default_factory=dict)
    extensions: Mapping[str, Json] = field(default_factory=dict)
    file: str = field(default="", compare=False)
    line: int = field(default=0, compare=False)
    body_lines: tuple[int, ...] = field(default=(), compare=False)

    def line_of(self, name: str) -> int:
        """The line of a field, or that of the step."""
        mark = self.fields.get(name)
        return mark.line if mark is not None else self.line


@dataclass(frozen=True, slots=True)
class TriggerSource:
    """A declared trigger."""

    type: str
    settings: Mapping[str, Json] = field(default_factory=dict)
    extensions: Mapping[str, Json] = field(default_factory=dict)
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class SopSource:
    """A whole definition. `header` by the names of `reference.HEADER`.

    `before` and `after` are the text around the steps of `SOP.md`. `markdown` tells where the steps stand.
    `comments` are the comment lines of `SOP.toml`, by the path of the key that they stand above.
    `extensions` are those of the file, `sop_extensions` those of its `[sop]` table.
    """

    header: Mapping[str, Mark]
    steps: tuple[StepSource, ...]
    inputs: Mark | None = None
    triggers: tuple[TriggerSource, ...] = ()
    positions: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    extensions: Mapping[str, Json] = field(default_factory=dict)
    sop_extensions: Mapping[str, Json] = field(default_factory=dict)
    markdown: bool = True
    before: str = ""
    after: str = ""
    comments: Mapping[tuple[str | int, ...], tuple[str, ...]] = field(default_factory=dict)
    position_lines: Mapping[int, int] = field(default_factory=dict, compare=False)
    file: str = field(default="SOP.toml", compare=False)

    def text(self, name: str) -> str:
        """A header field's text, or the empty text."""
        mark = self.header.get(name)
        return mark.value if mark is not None and isinstance(mark.value, str) else ""
