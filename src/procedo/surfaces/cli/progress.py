"""One line that says what is going on while a command waits; only for a person who looks at it."""

import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from procedo.surfaces.cli.output import Output, duration, visible

if TYPE_CHECKING:
    from procedo.runs import Snapshot

__all__ = ["Progress"]

_CLEAR = "\r\x1b[K"


class Progress:
    """Rewrites one line on the terminal, and takes it away in the end."""

    def __init__(self, notes: Output) -> None:
        self._notes = notes
        self._began = time.monotonic()
        self._shown = False

    def __enter__(self) -> Self:
        return self

    async def show(self, snapshot: "Snapshot") -> None:
        """Tell which steps are under way."""
        run, sop = snapshot.run, snapshot.sop
        steps = sorted({execution.step for execution in run.open_executions})
        names = [f"step {number} of {len(sop.steps)}: {sop.by_number[number].title}" for number in steps]
        self.say(", ".join(names) or run.status.value.replace("_", " "))

    def say(self, text: str) -> None:
        """Show a text in place of the one before."""
        if not self._notes.live or self._notes.json:
            return
        room = max(20, self._notes.width - 12)
        plain = visible(text, lines=False)[:room]
        self._notes.stream.write(f"{_CLEAR}{plain}  {duration(time.monotonic() - self._began)}")
        self._notes.stream.flush()
        self._shown = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            self._notes.stream.write(_CLEAR)
            self._notes.stream.flush()
