"""Whether an output is the one that a document shows, although ids, codes and times are others each time.

In what is shown, a run id, a gate's code, a login code and a port stand for whatever came; the same one stands for the
same again. `…` is any text within a line, and a line of its own any lines. Distances of columns do not count.
"""

import re
from dataclasses import dataclass, field
from typing import Final

__all__ = ["Likeness"]

_VARIABLE: Final = re.compile(
    r"(?P<run>\brun-[a-z0-9]+)"
    r"|(?P<login>\b[A-Z2-9]{4}-[A-Z2-9]{4}\b)"
    r"|(?P<code>\b(?=[A-Z]*[0-9])[A-Z0-9]{6}\b)"
    r"|(?P<port>(?<=127\.0\.0\.1:)\d+)"
    r"|(?P<ago>\b(?:in )?\d+ (?:s|min|h|d)(?: \d+ min)?(?: ago)?\b)"
    r"|(?P<time>\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z| UTC)?|\b\d\d:\d\d UTC)"
    r"|(?P<digest>\b[0-9a-f]{12,64}\b)"
    r"|(?P<any>…)"
)
_FORMS: Final = {
    "run": r"run-[a-z0-9]+",
    "login": r"[A-Z2-9]{4}-[A-Z2-9]{4}",
    "code": r"[A-Z0-9]{6}",
    "port": r"\d+",
    "ago": r"(?:in )?\d+ (?:s|min|h|d)(?: \d+ min)?(?: ago)?",
    "time": r"(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z| UTC)?",
    "digest": r"[0-9a-f]{12,64}",
    "any": r".*",
}
_BOUND: Final = frozenset({"run", "login", "code", "port"})


def _plain(text: str) -> list[str]:
    """The lines without colours, progress, and the distances of columns."""
    shown = re.sub(r"\x1b\[[0-9;]*m", "", text)
    lines = [line.rpartition("\x1b[K")[2].rpartition("\r")[2] for line in shown.splitlines()]
    return [re.sub(r" {2,}", " ", line.rstrip()) for line in lines if line.strip()]


@dataclass
class Likeness:
    """What the invented names of a page have stood for so far."""

    meant: dict[str, str] = field(default_factory=dict)

    def real(self, text: str) -> str:
        """A command with the names that came in place of the invented ones."""
        for invented in sorted(self.meant, key=len, reverse=True):
            text = re.sub(rf"(?<![\w-]){re.escape(invented)}(?![\w-])", lambda _, i=invented: self.meant[i], text)  # type: ignore[misc]  # mypy infers no type for a lambda with a default
        return text

    def compare(self, shown: str, came: str) -> None:
        """Fails when the output is another one than the shown; otherwise remembers what the names stand for."""
        wanted, found = _plain(shown), _plain(came)
        assert self._fits(wanted, found), self._told(wanted, found)

    def _told(self, wanted: list[str], found: list[str]) -> str:
        return "\n".join(["shown:", *wanted, "", "came:", *found])

    def _fits(self, wanted: list[str], found: list[str]) -> bool:
        if not wanted or not found:
            return not found and all(line.strip() == "…" for line in wanted)
        if wanted[0].strip() == "…":
            return any(self._fits(wanted[1:], found[at:]) for at in range(len(found) + 1))
        before = dict(self.meant)
        fits = self._line_fits(wanted[0], found[0]) and self._fits(wanted[1:], found[1:])
        self.meant = self.meant if fits else before
        return fits

    def _line_fits(self, wanted: str, found: str) -> bool:
        match = re.fullmatch(self._pattern(wanted), found)
        names = [one for one in _VARIABLE.finditer(wanted) if one.lastgroup in _BOUND]
        values = () if match is None else match.groups()
        same = [self.meant.setdefault(one[0], value) == value for one, value in zip(names, values, strict=False)]
        return match is not None and all(same)

    def _pattern(self, line: str) -> str:
        made, at = "", 0
        for one in _VARIABLE.finditer(line):
            form = _FORMS[str(one.lastgroup)]
            made += re.escape(line[at : one.start()]) + (f"({form})" if one.lastgroup in _BOUND else form)
            at = one.end()
        return made + re.escape(line[at:])
