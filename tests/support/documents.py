"""The documents as a reader meets them: fenced blocks with what stands before them, links, anchors.

What is done with a block follows from what stands before it:

- a paragraph that ends in "`procedo.toml`:" makes the block that file of the page's workspace;
- `<!-- not run: why -->` says that it is not carried out;
- `<!-- second terminal -->` before commands lets them go on while the page is read;
- `<!-- ends with 1 -->` before commands gives the exit code of the last one.

A comment alone may ask for a deed between blocks; `reader` knows which there are.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt
from repository import ROOT

__all__ = ["DOCUMENTS", "Block", "Deed", "anchors", "links", "parts", "text_of"]

_FOLDER: Final = ROOT / "docs"
DOCUMENTS: Final = ("README.md", *sorted(str(path.relative_to(ROOT)) for path in _FOLDER.rglob("*.md")))
"""Every page that is written for people, from the root."""

_NAMED: Final = re.compile(r"`([^`\s]*\.[^`\s]*)`:$")
_OF_BLOCKS: Final = ("not run: ", "second terminal", "ends with ", "transcript")
_COMMENT: Final = re.compile(r"<!--\s*(.*?)\s*-->", re.DOTALL)
_LINK: Final = re.compile(r"\]\(([^)\s]+)\)|\bsrc(?:set)?=\"([^\"\s]+)\"")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, its line; `file` when it is one; `note` is the comment before it."""

    language: str
    text: str
    line: int
    file: str = ""
    note: str = ""

    @property
    def commands(self) -> list[str]:
        """Its commands, continued lines joined, without comments."""
        joined = self.text.replace("\\\n", " ")
        return [line for line in joined.splitlines() if line.strip() and not line.startswith("#")]


@dataclass(frozen=True)
class Deed:
    """A comment that stands for itself."""

    text: str
    line: int


@cache
def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def parts(page: str) -> Iterator[Block | Deed]:
    """The blocks and the deeds of a page, in their order."""
    file, note = "", ""
    for token in MarkdownIt("commonmark").parse(text_of(page)):
        if token.type == "fence":
            if note and not note.startswith(_OF_BLOCKS):
                yield Deed(note, _line(token.map))
                note = ""
            yield Block(token.info.strip(), token.content, _line(token.map), file, note)
            file = note = ""
        elif token.type == "inline":
            if note:
                yield Deed(note, _line(token.map))
            named = _NAMED.search(token.content)
            file, note = named[1] if named else "", ""
        elif token.type == "html_block":
            if note:
                yield Deed(note, _line(token.map))
            *before, note = _COMMENT.findall(token.content) or [""]
            yield from (Deed(text, _line(token.map)) for text in before)
        elif token.type == "heading_open":
            file = ""
    if note:
        yield Deed(note, text_of(page).count("\n"))


def _line(lines: list[int] | None) -> int:
    return 0 if lines is None else lines[0] + 1


def _without_code(page: str) -> str:
    text = re.sub(r"^```.*?^```$", "", text_of(page), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", text)


def links(page: str) -> list[str]:
    """Where the links and pictures of a page lead."""
    return [link or picture for link, picture in _LINK.findall(_without_code(page))]


def anchors(path: Path) -> set[str]:
    """What can be jumped to in a page, as the usual viewers name it."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {
        re.sub(r"[^\w -]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", head).lower()).replace(" ", "-")
        for head in heads
    }
