"""The machine: versions, the command, the clock, the terminal."""

import sqlite3
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from shutil import which
from typing import Final

from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.examination.finding import OK, PROBLEM, WARNING, Finding
from procedo.surfaces.cli.person import operator
from procedo.surfaces.cli.terminal import has_controlling_terminal
from procedo.surfaces.cli.versions import installed, procedo_version

__all__ = ["clock", "command", "terminal", "versions"]

_OLDEST_PYTHON: Final = (3, 11)
_OLDEST_SQLITE: Final = (3, 37, 0)
"""The first SQLite with strict tables."""
_MCP: Final = ((2, 3), (3,))
"""The oldest SDK that is supported, and the first that is not any more."""
_EARLIEST: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""No clock that is right shows a time before this program was written."""


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(".")[:2] if word.isdigit())


def versions() -> Iterator[Finding]:
    """Whether what we stand on is supported."""
    python = sys.version.split()[0]
    yield Finding("procedo", OK, f"{procedo_version()} on Python {python} ({sys.executable})")
    if sys.version_info < _OLDEST_PYTHON:
        yield Finding("python", PROBLEM, f"Python {python} is too old", "Install Python 3.11 or newer.")
    mcp = installed("mcp")
    if mcp is None:
        yield Finding("mcp", PROBLEM, "the MCP SDK is not installed", "Install procedo anew, with its dependencies.")
    elif not _MCP[0] <= _numbers(mcp) < _MCP[1]:
        yield Finding(
            "mcp", PROBLEM, f"the MCP SDK is {mcp}, and 2.3 or a later 2.x is needed", 'Install "mcp>=2.3,<3".'
        )
    else:
        yield Finding("mcp", OK, f"SDK {mcp}")
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        hint = "Use a Python that was built with SQLite 3.37 or newer."
        yield Finding("sqlite", PROBLEM, f"SQLite {sqlite3.sqlite_version} has no strict tables", hint)
    else:
        yield Finding("sqlite", OK, f"SQLite {sqlite3.sqlite_version}")


def command(call: Call) -> Iterator[Finding]:
    """Whether people find the command; hosts are given the interpreter, and need no PATH."""
    found = which("procedo", path=call.environ.get("PATH", ""))
    if found is None:
        hint = f"Type instead: {sys.executable} -m procedo. Hosts need no PATH: see procedo install"
        yield Finding("command", WARNING, "no `procedo` on the PATH", hint)
    else:
        yield Finding("command", OK, found)


def clock(now: datetime) -> Iterator[Finding]:
    """Whether the machine's time can be right; deadlines and the record go by it."""
    if now < _EARLIEST:
        yield Finding("clock", PROBLEM, f"the machine's time is {now:%Y-%m-%d %H:%M} UTC", "Set the clock.")
    else:
        yield Finding("clock", OK, f"{now:%Y-%m-%d %H:%M} UTC")


def terminal(call: Call) -> Iterator[Finding]:
    """Whether gates can be decided from here."""
    who = operator()
    if has_controlling_terminal():
        yield Finding("terminal", OK, f"you can decide gates from here, as {who}")
    else:
        hint = "Open a terminal of your own to approve or deny; everything else works from here."
        yield Finding("terminal", WARNING, f"no controlling terminal: {who} cannot decide gates from here", hint)
    encoding = getattr(call.output.stream, "encoding", "utf-8") or "utf-8"
    if encoding.replace("-", "").casefold() != "utf8":
        yield Finding(
            "encoding", WARNING, f"output is {encoding}", "Set PYTHONUTF8=1, so that no character is escaped."
        )
