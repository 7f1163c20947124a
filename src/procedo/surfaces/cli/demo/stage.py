"""What the audience of the demonstration sees, and whether everything really happened as it was said."""

import textwrap
import time

from msgspec import Struct, field

from procedo.errors import ProcedoError
from procedo.surfaces.cli.output import Output

__all__ = ["DemoFailed", "Stage"]

_WIDTH = 92
_NAME = 9


class DemoFailed(ProcedoError):
    """Something did not happen as the demonstration says."""

    def __init__(self, what: str, found: str) -> None:
        super().__init__("demo_failed", f"The demonstration stopped: expected that {what}.", f"Instead: {found}")


class Stage(Struct):
    """Speaks the parts. `pace` is the pause after each line in seconds, 0 for none."""

    out: Output
    pace: float
    shown: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    scenes: int = 0

    def scene(self, title: str, prose: str) -> None:
        """Begin a scene."""
        self.scenes += 1
        if self.out.json:
            return
        self.out.line()
        self.out.line(self.out.style("bold", f"{self.scenes}. {title}"))
        for text in textwrap.wrap(prose, _WIDTH):
            self.out.line(self.out.style("dim", f"   {text}"))
        self.wait(2)

    def says(self, who: str, text: str, style: str = "cyan") -> None:
        """Let somebody speak."""
        if self.out.json:
            return
        room = _WIDTH - _NAME - 3
        lines = [part for line in text.split("\n") for part in (textwrap.wrap(line, room) or [""])]
        for number, part in enumerate(lines):
            name = self.out.style(style, who.ljust(_NAME)) if number == 0 else " " * _NAME
            self.out.line(f"   {name} {part}")
        self.wait(1)

    def terminal(self, text: str) -> None:
        """Show a line as the person's terminal shows it."""
        if not self.out.json:
            self.out.line(f"   {self.out.style('blue', '|'.rjust(_NAME))} {text}")

    def must(self, happened: bool, what: str, found: object = "it did not happen") -> None:
        """Go on only when it did happen. Raises `DemoFailed`."""
        if not happened:
            raise DemoFailed(what, str(found))

    def proved(self, what: str) -> None:
        """Remember for the summary what was really shown."""
        self.shown.append(what)

    def skip(self, what: str, why: str) -> None:
        """Say what cannot be shown here."""
        self.skipped.append(f"{what}: {why}")
        self.says("skipped", f"{what}: {why}", "yellow")

    def wait(self, beats: float) -> None:
        """Give the audience time to read."""
        if self.pace:
            time.sleep(self.pace * beats)
