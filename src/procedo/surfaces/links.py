"""The addresses of what procedo shows as MCP resources, and values that were cut with the address of the whole."""

from typing import Final
from urllib.parse import quote

from procedo.core.display import capped
from procedo.core.model import Json

__all__ = ["CATALOGUE", "FORMAT", "SCHEME", "cut", "gate", "inputs", "output", "procedure", "run", "step", "timeline"]

SCHEME: Final = "sop://"
CATALOGUE: Final = "sop://catalog"
FORMAT: Final = "sop://format"


def procedure(name: str) -> str:
    """A procedure: its text and the schema of its inputs."""
    return f"sop://sops/{quote(name, safe='')}"


def run(run_id: str) -> str:
    """A run: how it stands and what comes next."""
    return f"sop://runs/{quote(run_id, safe='')}"


def inputs(run_id: str) -> str:
    """What a run was started with."""
    return f"{run(run_id)}/inputs"


def output(run_id: str) -> str:
    """What a completed run gave."""
    return f"{run(run_id)}/output"


def timeline(run_id: str, after: int = 0) -> str:
    """The record of a run, behind the line with that number."""
    return f"{run(run_id)}/timeline" + (f"?after={after}" if after else "")


def step(run_id: str, number: int, execution_id: str = "") -> str:
    """The outputs of a step, or of one execution of it."""
    return f"{run(run_id)}/steps/{number}" + (f"?execution={execution_id}" if execution_id else "")


def gate(run_id: str, code: str) -> str:
    """What a gate asks about."""
    return f"{run(run_id)}/gates/{quote(code, safe='')}"


def cut(value: Json, limit: int, address: str) -> Json:
    """The value when its JSON has at most `limit` characters, else its beginning and where the whole is."""
    shown = capped(value, limit)
    return shown if shown is value else {**shown, "resource": address}
