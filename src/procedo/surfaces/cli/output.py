"""What the command line prints: calm aligned text for people, JSON for programs.

Text that came from a model or a file never reaches the terminal with its control characters: everything
but our own few colour codes is made visible instead. Nothing in here knows what a run is.
"""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from shutil import get_terminal_size
from typing import Final, TextIO

from msgspec import Struct

from procedo.core.characters import spelled_out
from procedo.core.model import Json

__all__ = ["Output", "ago", "brief", "compact", "duration", "pretty", "standard", "visible"]

_STYLES: Final[Mapping[str, str]] = {
    "bold": "\x1b[1m",
    "dim": "\x1b[2m",
    "red": "\x1b[31m",
    "green": "\x1b[32m",
    "yellow": "\x1b[33m",
    "blue": "\x1b[34m",
    "cyan": "\x1b[36m",
}
_RESET: Final = "\x1b[0m"
_OURS: Final = re.compile("(" + "|".join(re.escape(code) for code in (*_STYLES.values(), _RESET)) + ")")


def visible(text: str, *, lines: bool = True) -> str:
    """The text with every control and format character written as an escape; `lines` keeps newlines and tabs."""
    return spelled_out(text, "\n\t" if lines else "", _escaped)


def _escaped(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _json(value: Json, indent: int | None) -> str:
    """JSON whose treacherous characters are written as JSON escapes: the same value, and safe to look at."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, separators=None if indent else (",", ":"))
    return spelled_out(text, "\n")


def pretty(value: Json) -> str:
    """A JSON value for reading; a text as it is."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def compact(value: Json) -> str:
    """A JSON value on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))


def brief(value: Json, limit: int = 60) -> str:
    """A value on one short line."""
    text = " ".join((value if isinstance(value, str) else compact(value)).split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))


def duration(seconds: float) -> str:
    """A span in the two largest units that matter: `42 s`, `3 min`, `2 h 5 min`, `4 d`."""
    left = max(0, round(seconds))
    for position, (size, unit) in enumerate(_UNITS):
        if left >= size:
            whole, rest = divmod(left, size)
            smaller = _UNITS[position + 1] if position + 1 < len(_UNITS) else None
            part = rest // smaller[0] if smaller else 0
            return f"{whole} {unit} {part} {smaller[1]}" if smaller and part and unit == "h" else f"{whole} {unit}"
    return f"{left} s"


def ago(moment: datetime, now: datetime) -> str:
    """How long ago that was; a moment in the future reads `in 5 min`."""
    span: timedelta = now - moment
    return (
        f"in {duration(-span.total_seconds())}"
        if span < timedelta(seconds=-1)
        else f"{duration(span.total_seconds())} ago"
    )


class Output(Struct, frozen=True):
    """Where a verb prints. `json` verbs print values only, the others lines only."""

    stream: TextIO
    json: bool = False
    colour: bool = False
    width: int = 100

    @classmethod
    def of(cls, stream: TextIO, environ: Mapping[str, str], *, json: bool) -> "Output":
        """Colour only on a terminal, and never when NO_COLOR is set or the terminal is dumb."""
        live = stream.isatty()
        colour = live and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
        return cls(stream, json=json, colour=colour and not json, width=get_terminal_size().columns if live else 100)

    @property
    def live(self) -> bool:
        """True when a person looks at this stream."""
        return self.stream.isatty()

    def style(self, name: str, text: str) -> str:
        """The text in one of the few styles, or plain."""
        return f"{_STYLES[name]}{text}{_RESET}" if self.colour and text else text

    def line(self, text: str = "") -> None:
        """Print lines; control characters in them are made visible, our own styles are kept."""
        parts = _OURS.split(text)
        self._write("".join(part if _OURS.fullmatch(part) and self.colour else visible(part) for part in parts) + "\n")

    def row(self, text: str) -> None:
        """Print one line whatever is in it: a newline in foreign text is shown as an escape and begins no line."""
        parts = _OURS.split(text)
        shown = (p if _OURS.fullmatch(p) and self.colour else visible(p, lines=False) for p in parts)
        self._write("".join(shown) + "\n")

    def quoted(self, text: str, indent: str) -> None:
        """Print foreign text of any number of lines, each behind a bar, so that none can pose as ours."""
        for part in text.split("\n"):
            self.row(f"{indent}| {part}")

    def value(self, value: Json) -> None:
        """Print one JSON value over several lines."""
        self._write(_json(value, 2) + "\n")

    def record(self, value: Json) -> None:
        """Print one JSON value on a line of its own, at once."""
        self._write(_json(value, None) + "\n")

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print aligned columns; the last one is not padded, and nothing is cut."""
        cells = [[visible(cell, lines=False) for cell in row] for row in rows]
        widths = [max(len(row[i]) for row in [list(head), *cells]) for i in range(len(head))]
        for number, row in enumerate([list(head), *cells]):
            text = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            self.line(self.style("dim", text) if number == 0 else text)

    def pairs(self, rows: Sequence[tuple[str, str]]) -> None:
        """Print names and values below each other; a value of several lines stays in its column."""
        width = max((len(name) for name, _ in rows), default=0)
        for name, value in rows:
            first, *more = value.split("\n")
            self.line(f"{self.style('dim', name.ljust(width))}  {first}")
            for text in more:
                self.line(f"{' ' * width}  {text}")

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()


def standard(stream: TextIO) -> TextIO:
    """The stream prepared so that a character the terminal cannot show is escaped and never an error."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace", encoding="utf-8" if sys.platform == "win32" else None)
    return stream
