"""Every error a caller can meet, one tree.

    ProcedoError
    ├── Refused          the caller asked for something that may not happen now
    │   ├── NotFound     nothing has that name or id
    │   ├── Conflict     somebody else was first, or the same id came with other content
    │   └── BadArgument  an argument is missing, unknown or of the wrong form
    ├── InvalidSop       a document cannot be used; carries its problems
    ├── InvalidConfig    `procedo.toml` cannot be used; carries its problems
    └── StoreError       the record cannot be kept; nothing was changed

Blame is in the type: caller, document, configuration, storage. Each class has one exit code, and
every message says what is wrong; `hint` says what would be right. This module imports nothing of ours.
"""

from collections.abc import Sequence
from typing import ClassVar

__all__ = [
    "BadArgument",
    "Conflict",
    "InvalidConfig",
    "InvalidSop",
    "NotFound",
    "ProcedoError",
    "Refused",
    "StoreError",
]


class ProcedoError(Exception):
    """The base of all errors that procedo raises on purpose.

    `code` is a short stable word for programs, `message` says what is wrong, `hint` what to do next.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()


class Refused(ProcedoError):
    """The request may not happen in the present state; nothing was changed."""

    exit_code = 3


class NotFound(Refused):
    """Nothing has that name or id; `near` holds names that are close to it."""

    exit_code = 4

    def __init__(self, code: str, message: str, hint: str = "", near: Sequence[str] = ()) -> None:
        super().__init__(code, message, hint)
        self.near = tuple(near)


class Conflict(Refused):
    """Somebody else was first, or a known id came with other content; nothing was changed."""

    exit_code = 5


class BadArgument(Refused):
    """An argument is missing, unknown or of the wrong form.

    `places` tells parts of a value apart: the dotted path of each wrong part, what was expected there, what was found.
    """

    exit_code = 2

    def __init__(self, code: str, message: str, hint: str = "", places: Sequence[tuple[str, str, str]] = ()) -> None:
        super().__init__(code, message, hint)
        self.places = tuple(places)


class InvalidSop(ProcedoError):
    """A procedure has errors; `problems` are the lines that `procedo check` prints."""

    exit_code = 1

    def __init__(self, code: str, message: str, hint: str = "", problems: Sequence[str] = ()) -> None:
        super().__init__(code, message, hint)
        self.problems = tuple(problems)


class InvalidConfig(ProcedoError):
    """`procedo.toml` has errors; `problems` are lines with place and hint."""

    exit_code = 1

    def __init__(self, code: str, message: str, hint: str = "", problems: Sequence[str] = ()) -> None:
        super().__init__(code, message, hint)
        self.problems = tuple(problems)


class StoreError(ProcedoError):
    """The store cannot keep the record; the transaction was rolled back."""

    exit_code = 6
