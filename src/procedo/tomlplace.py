"""Where the keys of a TOML document stand: `tomllib` tells values, this tells their lines.

It reads only documents that `tomllib` has accepted, so it checks nothing and merely finds its way
past strings, arrays, inline tables and comments. One locator for every TOML file that procedo reads.
"""

import re
import tomllib
from bisect import bisect_right
from collections.abc import Mapping
from typing import Final, TypeAlias

from msgspec import Struct, field

__all__ = ["Header", "Pair", "Path", "Places", "locate", "syntax_problem"]

Path: TypeAlias = tuple[str | int, ...]
"""The way to a value: keys, and positions in arrays, counted from 0: `("steps", 0, "title")`."""

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_BLANKS: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BLANKS_IN_LINE: Final = re.compile(r"[ \t]*")
_SCALAR: Final = re.compile(r"[^,\]}\r\n#]*")
_STRING: Final = re.compile(
    r'"""(?:\\[\s\S]|(?!""")[\s\S])*"{3,5}' r"|'''(?:(?!''')[\s\S])*'{3,5}" r'|"(?:\\.|[^"\\])*"' r"|'[^']*'"
)
_PLACE_IN_MESSAGE: Final = re.compile(r"^(.*) \(at (?:line (\d+), column \d+|end of document)\)$", re.DOTALL)


class Header(Struct, frozen=True):
    """A header `[table]`: the path of its table, and the offsets where it begins and ends."""

    path: Path
    start: int
    end: int


class Pair(Struct, frozen=True):
    """A key with its value: the offsets where the key begins, and where the value begins and ends."""

    start: int
    value: int
    end: int


class Places(Struct, frozen=True):
    """The lines of a document's keys, counted from 1; its headers in order, and its pairs by path."""

    lines: Mapping[Path, int]
    headers: tuple[Header, ...] = ()
    pairs: Mapping[Path, Pair] = field(default_factory=dict)

    def line(self, *path: str | int) -> int:
        """The line of this key or array item, or of the nearest one around it; 1 when nothing is known."""
        for end in range(len(path), 0, -1):
            if (found := self.lines.get(path[:end])) is not None:
                return found
        return 1


def syntax_problem(error: tomllib.TOMLDecodeError, text: str) -> tuple[int, str]:
    """The line and the message of a document that `tomllib` refuses."""
    found = _PLACE_IN_MESSAGE.match(str(error))
    if found is None:
        return 1, str(error)
    last = text.rstrip("\n").count("\n") + 1
    return int(found[2]) if found[2] else last, found[1]


def locate(text: str) -> Places:
    """Find the line of every table, key and array item of a valid document."""
    scan = _Scan(text)
    scan.document()
    return Places(scan.lines, tuple(scan.headers), scan.pairs)


class _Scan:
    """One pass over a valid document."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]
        self.lines: dict[Path, int] = {}
        self.headers: list[Header] = []
        self.pairs: dict[Path, Pair] = {}
        self._counts: dict[Path, int] = {}

    def document(self) -> None:
        table: Path = ()
        while self._peek_past(_BLANKS):
            if self._text.startswith("[", self._at):
                table = self._header()
            else:
                self._pair(table)

    def _peek_past(self, blanks: re.Pattern[str]) -> str:
        """The next character that is no blank, or an empty string at the end."""
        found = blanks.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._text[self._at : self._at + 1]

    def _mark(self, path: Path, line: int) -> None:
        self.lines.setdefault(path, line)

    def _line(self) -> int:
        return bisect_right(self._starts, self._at)

    def _header(self) -> Path:
        line, start = self._line(), self._at
        repeated = self._text.startswith("[[", self._at)
        self._at += 2 if repeated else 1
        keys = self._keys()
        self._at += 2 if repeated else 1
        path = (*self._descend((), keys[:-1], line), keys[-1])
        if repeated:
            self._mark(path, line)
            number = self._counts.get(path, 0)
            self._counts[path] = number + 1
            path = (*path, number)
        elif path in self._counts:
            path = (*path, self._counts[path] - 1)
        self._mark(path, line)
        self.headers.append(Header(path, start, self._at))
        return path

    def _descend(self, path: Path, keys: list[str], line: int) -> Path:
        """The path of a table named on the way; inside an array of tables the last one is meant."""
        for key in keys:
            path = (*path, key)
            self._mark(path, line)
            if path in self._counts:
                path = (*path, self._counts[path] - 1)
        return path

    def _keys(self) -> list[str]:
        keys: list[str] = []
        while True:
            first = self._peek_past(_BLANKS_IN_LINE)
            found = (_STRING if first in {'"', "'"} else _BARE).match(self._text, self._at)
            if found is None:
                raise ValueError(f"line {self._line()}: no key where one was expected; is this valid TOML?")
            self._at = found.end()
            quoted = first in {'"', "'"}
            keys.append(str(tomllib.loads(f"key = {found[0]}")["key"]) if quoted else found[0])
            if self._peek_past(_BLANKS_IN_LINE) != ".":
                return keys
            self._at += 1

    def _pair(self, table: Path) -> None:
        line, start = self._line(), self._at
        keys = self._keys()
        path = (*self._descend(table, keys[:-1], line), keys[-1])
        self._mark(path, line)
        self._at += 1  # the equals sign
        self._peek_past(_BLANKS_IN_LINE)
        value = self._at
        self._value(path)
        self.pairs[path] = Pair(start, value, value + len(self._text[value : self._at].rstrip(" \t\r\n")))

    def _value(self, path: Path) -> None:
        first = self._peek_past(_BLANKS_IN_LINE)
        if first == "[":
            self._array(path)
        elif first == "{":
            self._inline_table(path)
        else:
            found = (_STRING if first in {'"', "'"} else _SCALAR).match(self._text, self._at)
            self._at = found.end() if found else self._at

    def _array(self, path: Path) -> None:
        self._at += 1
        number = 0
        while (first := self._peek_past(_BLANKS)) not in {"]", ""}:
            if first == ",":
                self._at += 1
                continue
            self._mark((*path, number), self._line())
            self._value((*path, number))
            number += 1
        self._at += 1

    def _inline_table(self, path: Path) -> None:
        self._at += 1
        while (first := self._peek_past(_BLANKS)) not in {"}", ""}:
            if first == ",":
                self._at += 1
                continue
            self._pair(path)
        self._at += 1
