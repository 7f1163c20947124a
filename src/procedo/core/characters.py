"""Characters that can make a text look like something it is not: taken out, or spelled out. Pure."""

import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Final

__all__ = ["TREACHEROUS", "plain", "spelled_out"]

TREACHEROUS: Final = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs"})
"""The categories of characters that can make a text look like something it is not: controls, formats such as
direction overrides and what has no width, line separators, lone surrogates."""
_ANSI: Final = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_LINES: Final[Mapping[str, str]] = {"\n": "\n", "\t": "\t", "\u2028": "\n", "\u2029": "\n"}


class _Standing(dict[int, str]):
    """What stands for each character, found when it is met: `known`, `other` for a treacherous one, else itself."""

    def __init__(self, known: Mapping[str, str], other: Callable[[str], str]) -> None:
        super().__init__((ord(c), told) for c, told in known.items())
        self._other = other

    def __missing__(self, number: int) -> str:
        c = chr(number)
        self[number] = self._other(c) if unicodedata.category(c) in TREACHEROUS else c
        return self[number]


def plain(text: str) -> str:
    """The text without treacherous characters and ANSI sequences; newline and tab stay, and lines end with newline."""
    if text.isprintable():
        return text
    return _ANSI.sub("", text.replace("\r\n", "\n")).translate(_Standing(_LINES, lambda _: ""))


def spelled_out(text: str, kept: str = "") -> str:
    r"""The text with its treacherous characters, but for the `kept` ones, as JSON spells them: `\u001b`.

    So the strings of a JSON text keep their values.
    """
    if text.isprintable():
        return text
    return text.translate(_Standing({c: c for c in kept}, lambda c: json.dumps(c)[1:-1]))
