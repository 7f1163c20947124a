"""The exit codes of the command line, and what each says."""

import textwrap
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["EXITS", "exits_text"]

EXITS: Final[Mapping[int, str]] = MappingProxyType(
    {
        0: "done",
        1: "a document or the configuration is wrong",
        2: "bad argument",
        3: "refused",
        4: "not found",
        5: "conflict",
        6: "the store failed",
        7: "the run that was followed failed or was cancelled",
        130: "interrupted",
    }
)

_JOINT: Final = "\N{NO-BREAK SPACE}"


def exits_text() -> str:
    """All of them in a few lines, for `--help`."""
    # No line ends between a code and what it says.
    told = ", ".join(f"{code}{_JOINT}{meaning}" for code, meaning in EXITS.items())
    return textwrap.fill(f"exit codes: {told}", width=106, subsequent_indent=" " * 12).replace(_JOINT, " ")
