"""The forms that a value in `procedo.toml` may have.

A form has words for people and reads a raw value, or raises `ValueError` with what was expected.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from procedo.core.approval import OnExpiry
from procedo.core.model import Json
from procedo.duration import seconds
from procedo.hosts import HostPattern

__all__ = [
    "Form",
    "command",
    "count",
    "duration",
    "expiry",
    "flag",
    "folder",
    "host",
    "listed",
    "member",
    "name",
    "variable",
    "word",
]

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TEXT: Final[Mapping[str, Json]] = {"type": "string", "minLength": 1}
_DOORS = ("host", "cli", "web", "http")


@dataclass(frozen=True, slots=True)
class Form:
    """What a value may look like: `words` for people, `read` for the parser, `schema` (JSON Schema) for editors.

    `masked`: a refused value is not shown in the problem, for it may be a secret in the wrong place.
    """

    words: str
    read: Callable[[Json], Json] = field(compare=False)
    schema: Mapping[str, Json] = field(compare=False)
    masked: bool = False


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise ValueError("expected text in quotes")
    if not value.strip():
        raise ValueError("expected text that is not blank; leave the key out for the default")
    return value.strip()


def name() -> Form:
    """A name: letters, digits, and `_`, `.` or `-` between them."""

    def read(value: Json) -> str:
        text = _text(value)
        if not _NAME.fullmatch(text):
            raise ValueError("expected a name of letters and digits, with _ . - between them")
        return text

    return Form("name", read, {"type": "string", "pattern": f"^{_NAME.pattern}$"})


def folder() -> Form:
    """A folder: relative to the workspace, absolute, or from `~`."""

    def read(value: Json) -> Path:
        try:
            return Path(_text(value)).expanduser()
        except RuntimeError as error:  # `~` of a user that does not exist
            raise ValueError("expected a folder that exists behind ~") from error

    return Form("folder", read, _TEXT)


def flag() -> Form:
    """True or false."""

    def read(value: Json) -> bool:
        if not isinstance(value, bool):
            raise ValueError("expected true or false, without quotes")
        return value

    return Form("true or false", read, {"type": "boolean"})


def count(low: int, high: int) -> Form:
    """A whole number between two bounds, both included."""

    def read(value: Json) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise ValueError(f"expected a whole number from {low} to {high}")
        return value

    return Form(f"whole number, {low} to {high}", read, {"type": "integer", "minimum": low, "maximum": high})


def duration(low: float, high: float) -> Form:
    """A length of time: seconds as a number, or text with units."""

    def read(value: Json) -> float:
        length = seconds(value)
        if not low <= length <= high:
            raise ValueError(f"expected a time from {low:g} to {high:g} seconds")
        return length

    number = {"type": "number", "minimum": low, "maximum": high}
    text = {"type": "string", "pattern": r"^(\s*\d+(\.\d+)?\s*(ms|s|m|h|d))+\s*$"}
    return Form(f'time ("30s", "2h", or seconds), {low:g} to {high:g} s', read, {"anyOf": [number, text]})


def word(words: Sequence[str]) -> Form:
    """One of a few words."""

    def read(value: Json) -> str:
        if not isinstance(value, str) or value not in words:
            near = get_close_matches(str(value), words, n=1)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"expected one of {', '.join(words)}{meant}")
        return value

    return Form(", ".join(words), read, {"enum": list(words)})


def expiry() -> Form:
    """What follows when nobody answers in time. Silence never approves."""
    choice = word([str(what) for what in OnExpiry])

    def read(value: Json) -> OnExpiry:
        if isinstance(value, str) and ("approve" in value.lower() or "accept" in value.lower()):
            raise ValueError("expected remind, escalate or deny: silence is no approval, so nothing approves by itself")
        return OnExpiry(choice.read(value))

    return Form(choice.words, read, choice.schema)


def listed(item: Form) -> Form:
    """A list of values of one form, without repeats."""

    def read(value: Json) -> tuple[Json, ...]:
        if not isinstance(value, list):
            raise ValueError('expected a list, such as ["…"]')
        found: list[Json] = []
        for number, raw in enumerate(value, 1):
            try:
                one = item.read(raw)
            except ValueError as error:
                raise ValueError(f"item {number} ({raw!r}): {error}") from error
            if one in found:
                raise ValueError(f"item {number} ({raw!r}): expected each only once")
            found.append(one)
        return tuple(found)

    schema = {"type": "array", "items": dict(item.schema), "uniqueItems": True}
    return Form(f"list of: {item.words}", read, schema)


def member() -> Form:
    """A person or agent: the bare subject, or `door:subject` for one door only."""

    def read(value: Json) -> str:
        text = _text(value)
        door, colon, subject = text.partition(":")
        if colon and (door not in _DOORS or not subject.strip()):
            raise ValueError(f"expected a subject, or door:subject with one of the doors {', '.join(_DOORS)}")
        return text

    return Form("subject or door:subject", read, _TEXT)


def host() -> Form:
    """A web host that may be called."""

    def read(value: Json) -> HostPattern:
        return HostPattern.parse(_text(value))

    return Form('"host", "host:port", "*.domain", or these behind "http://"', read, _TEXT)


def command() -> Form:
    """A program: a plain name or an absolute path."""

    def read(value: Json) -> str:
        text = _text(value)
        if any(blank in text for blank in " \t\n") and not text.startswith("/"):
            raise ValueError("expected the program alone, without arguments")
        if ("/" in text or "\\" in text) and not Path(text).is_absolute():
            raise ValueError("expected a plain name, or an absolute path")
        return text

    return Form("program name or absolute path", read, _TEXT)


def variable() -> Form:
    """The name of an environment variable."""

    def read(value: Json) -> str:
        text = _text(value)
        if not _VARIABLE.fullmatch(text):
            raise ValueError("expected the name of a variable, without its value")
        return text

    return Form("variable name", read, {"type": "string", "pattern": f"^{_VARIABLE.pattern}$"})
