"""The reference of the format as Markdown, made of the tables that the reader uses."""

from collections.abc import Iterable, Iterator, Mapping

from procedo.sopfile.problems import CODES
from procedo.sopfile.reference import HEADER, STEP, TRIGGERS, Field

__all__ = ["fields", "manual"]


def manual() -> str:
    """Every key of the header, every field of a step, every trigger and every problem code."""
    codes = ((f"`{name}`", code.severity, code.meaning) for name, code in CODES.items())
    problems = _table(("code", "severity", "meaning"), codes)
    return "\n".join(["# The format of a procedure", "", fields(), "", "## Problems", "", *problems, ""])


def fields() -> str:
    """Every key of the header, every field of a step, and every trigger."""
    return "\n".join(
        [
            "## `SOP.toml`, table `[sop]`",
            "",
            *_fields(HEADER, bullets=False),
            "",
            "Keys that begin with `x-` are kept and not read.",
            "",
            "## Steps",
            "",
            *_fields(STEP, bullets=True),
            "",
            "## Triggers",
            "",
            *_table(("type", "keys"), ((f"`{kind}`", _names(keys)) for kind, keys in TRIGGERS.items())),
        ]
    )


def _fields(fields: Mapping[str, Field], *, bullets: bool) -> Iterator[str]:
    head = ("key", "bullet") if bullets else ("key",)
    yield from _table((*head, "value", "default", "meaning"), (_row(field, bullets) for field in fields.values()))


def _row(field: Field, bullets: bool) -> tuple[str, ...]:
    names = (f"`{field.name}`", _names(field.bullets)) if bullets else (f"`{field.name}`",)
    default = "required" if field.required else field.default
    return (*names, field.type.value, default, field.meaning)


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
