"""The comments of a TOML document, each with the key that it stands above, so that saving keeps them."""

import re
import tomllib
from bisect import bisect_left
from collections.abc import Mapping
from typing import Final

from procedo.core.model import Json
from procedo.tomlplace import Path

__all__ = ["read_comments"]

_COMMENT: Final = re.compile(r"#[^\n]*")


def read_comments(text: str, document: Mapping[str, Json], lines: Mapping[Path, int]) -> dict[Path, tuple[str, ...]]:
    """Comment lines by the path of the next key or table; those behind the last one by the empty path.

    A comment behind a value counts as one above its key.
    """
    if "#" not in text:
        return {}
    by_line: dict[int, Path] = {}
    for path, place in lines.items():
        by_line.setdefault(place, path)
    starts = sorted(by_line)
    found: dict[Path, list[str]] = {}
    written = text.split("\n")
    for number, line in enumerate(written, 1):
        comment = _comment(written, number - 1, line, document)
        if comment:
            index = bisect_left(starts, number)
            path = by_line[starts[index]] if index < len(starts) else ()
            found.setdefault(path, []).append(comment)
    return {path: tuple(comments) for path, comments in found.items()}


def _comment(written: list[str], index: int, line: str, document: Mapping[str, Json]) -> str:
    """The comment on a line, or the empty text: what can be taken away without a change of meaning."""
    for found in _COMMENT.finditer(line) if "#" in line else ():
        # Whether a sign begins a comment or stands in a text is for the parser to say.
        without = [*written[:index], line[: found.start()], *written[index + 1 :]]
        try:
            same = tomllib.loads("\n".join(without)) == document
        except tomllib.TOMLDecodeError:
            same = False
        if same:
            return found.group().rstrip()
    return ""
