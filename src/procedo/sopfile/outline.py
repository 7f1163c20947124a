"""The block structure of a `SOP.md`: where steps begin, and which bullets stand at the top level of a step.

What CommonMark says counts: a fenced or nested line is the body of its step, whatever it looks like.
Blocks of the section that stand outside its numbered list belong to the step before them, so that
bullets need no exact indentation.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

__all__ = ["Bullet", "Heading", "Outline", "StepBlock", "headings", "indent_of", "outline", "split_lines"]

_ITEM: Final = re.compile(r" {0,3}\d{1,9}\.([ \t]+|$)")


class Bullet(Struct, frozen=True):
    """A top-level bullet of a step: its lines [start, end), those of its first paragraph, and a fenced child.

    Lines count from 0. `fence` is the content of a fence that follows the paragraph at once, `inner` the
    lines at which list items below it begin.
    """

    start: int
    end: int
    text_end: int
    fence: str | None = None
    fence_end: int = 0
    nested: bool = False
    inner: tuple[int, ...] = ()


class StepBlock(Struct):
    """A step: its written number, the lines [start, end) that belong to it, and how deep its content stands.

    `own_end` is where its list item ends; lines behind it, up to `end`, stand at the top level of the section.
    """

    number: int
    start: int
    own_end: int
    end: int
    offset: int
    bullets: list[Bullet] = field(default_factory=list)
    texts: list[tuple[int, int]] = field(default_factory=list)


class Outline(Struct):
    """A whole document. Lines count from 0; `first` is where the first step begins, None without steps."""

    lines: list[str]
    steps: list[StepBlock] = field(default_factory=list)
    section: int | None = None
    outside: list[tuple[int, int]] = field(default_factory=list)
    early: list[Bullet] = field(default_factory=list)
    other_markers: list[int] = field(default_factory=list)


def split_lines(text: str) -> list[str]:
    """The lines of a text, as CommonMark counts them."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def indent_of(line: str) -> int:
    """The columns of white space before a line's text."""
    expanded = line.expandtabs(4)
    return len(expanded) - len(expanded.lstrip(" "))


def outline(text: str) -> Outline:
    """Find the steps of a document: the numbered items at the top level of its sections `## Steps`."""
    found = Outline(split_lines(text))
    tokens = _parser().parse(text)
    active, since = False, 0
    for index, end in _blocks(tokens, 0, len(tokens)):
        token = tokens[index]
        start, stop = _lines(token)
        if token.type == "heading_open" and token.tag in ("h1", "h2"):
            opens = token.tag == "h2" and tokens[index + 1].content.strip().casefold() == "steps"
            if active:
                _close(found, start)
            if opens and not active:
                found.outside.append((since, start))
            if active and not opens:
                since = start
            if opens and found.section is None:
                found.section = start
            active = opens
        elif active:
            _block(found, tokens, index, end, (start, stop))
    if active:
        _close(found, len(found.lines))
    else:
        found.outside.append((since, len(found.lines)))
    return found


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").disable("inline")


def _close(found: Outline, end: int) -> None:
    if found.steps and found.steps[-1].end < 0:
        found.steps[-1].end = end


def _block(found: Outline, tokens: Sequence["Token"], index: int, end: int, lines: tuple[int, int]) -> None:
    """One block at the top level of the section."""
    token = tokens[index]
    if token.type == "ordered_list_open" and token.markup == ".":
        for item, item_end in _blocks(tokens, index + 1, end - 1):
            _step(found, tokens, item, item_end)
        return
    if token.type == "ordered_list_open":
        found.other_markers.append(lines[0])
    if token.type == "bullet_list_open":
        bullets = [_bullet(tokens, item, stop) for item, stop in _blocks(tokens, index + 1, end - 1)]
        (found.steps[-1].bullets if found.steps else found.early).extend(bullets)
    elif token.type in ("paragraph_open", "code_block") and found.steps:
        found.steps[-1].texts.append(lines)


def _step(found: Outline, tokens: Sequence["Token"], index: int, end: int) -> None:
    start, own_end = _lines(tokens[index])
    _close(found, start)
    line = found.lines[start].expandtabs(4)
    marker = _ITEM.match(line)
    offset = marker.end() if marker else 3
    if marker and (len(marker.group(1)) > 4 or not marker.group(1)):
        offset = marker.end() - len(marker.group(1)) + 1
    step = StepBlock(int(tokens[index].info or 0), start, own_end, -1, offset)
    found.steps.append(step)
    for child, child_end in _blocks(tokens, index + 1, end - 1):
        token = tokens[child]
        lines = _lines(token)
        if token.type == "bullet_list_open":
            items = _blocks(tokens, child + 1, child_end - 1)
            step.bullets += [_bullet(tokens, item, stop) for item, stop in items if _lines(tokens[item])[0] != start]
        elif token.type in ("paragraph_open", "code_block"):
            step.texts.append((max(lines[0], start + 1), lines[1]))


def _bullet(tokens: Sequence["Token"], index: int, end: int) -> Bullet:
    start, stop = _lines(tokens[index])
    children = list(_blocks(tokens, index + 1, end - 1))
    if not children or tokens[children[0][0]].type != "paragraph_open":
        return Bullet(start, stop, start + 1, nested=bool(children))
    text_end = _lines(tokens[children[0][0]])[1]
    inner = tuple(_lines(token)[0] for token in tokens[index + 1 : end] if token.type == "list_item_open")
    if len(children) > 1 and tokens[children[1][0]].type == "fence":
        fence = tokens[children[1][0]]
        return Bullet(start, stop, text_end, fence.content, _lines(fence)[1], len(children) > 2, inner)
    return Bullet(start, stop, text_end, nested=len(children) > 1, inner=inner)


def _blocks(tokens: Sequence["Token"], start: int, end: int) -> Iterator[tuple[int, int]]:
    """The blocks among tokens [start, end), each as [opening, behind its closing)."""
    at = start
    while at < end:
        opening = at
        depth = 0
        while True:
            depth += tokens[at].nesting
            at += 1
            if depth == 0:
                break
        yield opening, at


def _lines(token: "Token") -> tuple[int, int]:
    return (token.map[0], token.map[1]) if token.map else (0, 0)


class Heading(Struct, frozen=True):
    """A heading at the top level: its text, its line from 0, and the line behind it."""

    level: int
    text: str
    line: int
    end: int


def headings(text: str) -> list[Heading]:
    """The headings of a document that stand at its top level."""
    tokens = _parser().parse(text)
    found: list[Heading] = []
    for index, token in enumerate(tokens):
        if token.type == "heading_open" and token.level == 0:
            start, end = _lines(token)
            found.append(Heading(int(token.tag[1:]), tokens[index + 1].content, start, end))
    return found
