"""Characters that can make a text look like something it is not: taken out, or spelled out. Pure."""

import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Set
from typing import Final

__all__ = ["TREACHEROUS", "plain", "spelled_out"]

TREACHEROUS: Final = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs"})
"""The categories of characters that can make a text look like something it is not: controls, formats such as
direction overrides and what has no width, line separators, lone surrogates."""
_ANSI: Final = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_LINES: Final[Mapping[str, str]] = {"\n": "\n", "\t": "\t", "\u2028": "\n", "\u2029": "\n"}


class _Standing(dict[int, str]):
    """What stands for each character, found when it is met: `known`, `other` for one of `categories`, else itself."""

    def __init__(self, known: Mapping[str, str], other: Callable[[str], str], categories: Set[str]) -> None:
        super().__init__((ord(c), told) for c, told in known.items())
        self._other = other
        self._categories = categories

    def __missing__(self, number: int) -> str:
        c = chr(number)
        self[number] = self._other(c) if unicodedata.category(c) in self._categories else c
        return self[number]


def plain(text: str) -> str:
    """The text without treacherous characters and ANSI sequences; newline and tab stay, and lines end with newline."""
    if text.isprintable():
        return text
    return _ANSI.sub("", text.replace("\r\n", "\n")).translate(_Standing(_LINES, lambda _: "", TREACHEROUS))


def _in_json(character: str) -> str:
    return json.dumps(character)[1:-1]


def spelled_out(
    text: str, kept: str = "", spelling: Callable[[str], str] = _in_json, also: Set[str] = frozenset()
) -> str:
    r"""The text with its treacherous characters, but for the `kept` ones, spelled out.

    Without a `spelling` that is as JSON does it, `\u001b`, so that the strings of a JSON text keep their values. `also`
    are further categories of characters that cannot be printed.
    """
    if text.isprintable():
        return text
    return text.translate(_Standing({c: c for c in kept}, spelling, TREACHEROUS | also))
