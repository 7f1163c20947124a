"""Runs that this process saved lately, so that the next command need not read them again.

An entry counts only while its hash is the one in the file: the hash covers the whole history, so whoever
else has moved the run meanwhile has also changed the hash. Entries are made from committed transitions only.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from procedo.core.state import Execution, Run, StepState

__all__ = ["Known", "Recent"]


class Known(Struct, frozen=True):
    """A run as it is loaded: its number and head row, what is open in it.

    `executions` and `steps` are what the latest command had at hand beside that: usually what the next one needs.
    """

    number: int
    head: Mapping[str, Any]
    run: Run
    executions: Mapping[str, Execution]
    steps: Mapping[int, StepState]


class Recent:
    """The latest runs. Written in the writing thread only; other threads may look."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._entries: dict[str, Known] = {}

    def get(self, run_id: str) -> Known | None:
        """What is known of a run."""
        return self._entries.get(run_id)

    def keep(self, entries: Mapping[str, Known]) -> None:
        """Take over what a committed transaction has saved; the oldest entries make room."""
        for run_id, known in entries.items():
            self._entries.pop(run_id, None)
            if not known.run.end:
                self._entries[run_id] = known
        while len(self._entries) > self._capacity:
            del self._entries[next(iter(self._entries))]
