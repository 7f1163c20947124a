"""Reads the steps of a `SOP.md`: titles, bodies and the fields that bullets set."""

import re
from collections.abc import Iterable
from typing import Final

from msgspec import Struct, field

from procedo.core.model import Json
from procedo.sopfile.bullets import dashless, field_of, meant
from procedo.sopfile.outline import Bullet, Outline, StepBlock, headings, indent_of, outline
from procedo.sopfile.problems import Findings
from procedo.sopfile.reference import BULLETS, Type, is_extension
from procedo.sopfile.source import Mark, StepSource
from procedo.sopfile.valueforms import Unreadable
from procedo.sopfile.values import from_bullet

__all__ = ["MarkdownSteps", "read_steps"]

_TITLE: Final = re.compile(r"\*\*(.+?)\*\*")
_DASH: Final = re.compile(r"\s*[—–-]\s*")  # noqa: RUF001  # the three dashes that may follow a title
_LOOKS_LIKE_BULLET: Final = re.compile(r"\s*[-*+]\s+(.*)")
_SEVERAL_LINES: Final = frozenset(
    {Type.TEXT, Type.JSON, Type.SCHEMA, Type.CALLS, Type.CONDITION, Type.VERIFY, Type.PORTS, Type.LIST}
)
_FENCED: Final = frozenset({Type.JSON, Type.SCHEMA, Type.CALLS})


class MarkdownSteps(Struct, frozen=True):
    """The steps of a document, and the text before the first and behind the last of them."""

    steps: tuple[StepSource, ...]
    before: str
    after: str


class _Draft(Struct):
    """A step while its bullets are read; `taken` are lines that fields consist of."""

    fields: dict[str, Mark] = field(default_factory=dict)
    extensions: dict[str, Json] = field(default_factory=dict)
    taken: set[int] = field(default_factory=set)


def read_steps(text: str, file: str, findings: Findings) -> MarkdownSteps:
    """Read a `SOP.md`; everything wrong goes to `findings` with its line."""
    found = outline(text)
    reader = _Reader(found, file, findings)
    for line in found.other_markers:
        hint = "steps are numbered `1.`, `2.`; indent the list to make it part of a step"
        findings.add("step-marker", file, line + 1, "a list numbered `1)` holds no steps", hint)
    for bullet in found.early:
        reader.before_steps(bullet)
    steps = tuple(reader.step(block, number) for number, block in enumerate(found.steps, 1))
    if found.section is None:
        _other_level(text, file, findings)
    return MarkdownSteps(steps, *_around(found))


def _other_level(text: str, file: str, findings: Findings) -> None:
    """Where no section holds steps: a heading that was meant to open it."""
    for heading in headings(text):
        if heading.text.strip().rstrip(":").casefold() == "steps":
            message = f"the heading `{'#' * heading.level} {heading.text}` opens no steps"
            findings.add("no-steps", file, heading.line + 1, message, "write `## Steps`")


def _around(found: Outline) -> tuple[str, str]:
    first = found.steps[0].start if found.steps else len(found.lines)
    if found.section is None or not found.steps:
        return "\n".join(found.lines), ""
    after = [line for start, end in found.outside if start >= first for line in found.lines[start:end]]
    return "\n".join(found.lines[:first]), "\n".join(after)


class _Reader(Struct, frozen=True):
    """Reads the blocks of one document."""

    found: Outline
    file: str
    findings: Findings

    def _add(self, code: str, line: int, message: str, hint: str = "") -> None:
        self.findings.add(code, self.file, line + 1, message, hint)

    def before_steps(self, bullet: Bullet) -> None:
        text = self._first_line(bullet)
        if (known := field_of(text)) is not None:
            self._add("stray-field", bullet.start, f"{known[0]!r} stands before the first step", "move it below a step")

    def step(self, block: StepBlock, number: int) -> StepSource:
        written_as_ones = all(other.number == 1 for other in self.found.steps[:2])
        if block.number != number and not written_as_ones:
            message = f"the step written as {block.number} is step {number}"
            self._add(
                "step-number", block.start, message, "steps are counted by their order; references mean that number"
            )
        draft = _Draft()
        for bullet in block.bullets:
            self._bullet(bullet, draft)
        self._stray(block, draft)
        title, rest = self._title(block)
        body, body_lines = self._body(block, rest, draft)
        if not title:
            self._add("blank-title", block.start, f"step {number} has no title", "1. **Title**")
        return StepSource(number, title, body, draft.fields, draft.extensions, self.file, block.start + 1, body_lines)

    # --- title and body

    def _title(self, block: StepBlock) -> tuple[str, str]:
        line = self.found.lines[block.start].expandtabs(4)[block.offset :].strip()
        span = _TITLE.search(line)
        if span is None:
            return line, ""
        if line[: span.start()].strip():
            self._add("title-text", block.start, "text stands before the title", "begin the step with **Title**")
            return span.group(1).strip(), line
        rest = line[span.end() :]
        dash = _DASH.match(rest)
        return span.group(1).strip(), (rest[dash.end() :] if dash else rest).strip()

    def _body(self, block: StepBlock, rest: str, draft: _Draft) -> tuple[str, tuple[int, ...]]:
        lines: list[str] = [rest]
        origins = [block.start]
        gap = False
        for at in range(block.start + 1, block.end):
            if at in draft.taken:
                gap = True
                continue
            line = self.found.lines[at].rstrip()
            if not line and gap and not lines[-1]:
                continue
            gap = gap and not line
            depth = block.offset if at < block.own_end else 0
            lines.append(_dedent(line, depth))
            origins.append(at)
        filled = [index for index, line in enumerate(lines) if line.strip()]
        if not filled:
            return "", ()
        first, last = filled[0], filled[-1] + 1
        return "\n".join(lines[first:last]), tuple(at + 1 for at in origins[first:last])

    # --- bullets

    def _first_line(self, bullet: Bullet) -> str:
        found = _LOOKS_LIKE_BULLET.match(self.found.lines[bullet.start])
        return found.group(1).strip() if found else ""

    def _bullet(self, bullet: Bullet, draft: _Draft) -> None:
        text = self._first_line(bullet)
        known = field_of(text)
        if known is None:
            if (near := meant(text)) is not None:
                key, sign = _key_and_sign(text)
                hint = f"did you mean `{near}:`? To keep it as text put the word in bold: **{key}**{sign}"
                self._add("misspelt-bullet", bullet.start, f"`{key}{sign}` is no field", hint)
            return
        key, rest = known
        self._too_deep(bullet, key)
        value = self._value(bullet, rest, draft.taken)
        if is_extension(key):
            draft.extensions[key] = from_bullet(Type.JSON, value) if value.strip() else ""
        else:
            self._field(bullet, key, value, draft)

    def _too_deep(self, bullet: Bullet, outer: str) -> None:
        """Bullets below that of a field which are fields themselves: nothing reads them there."""
        for at in bullet.inner:
            found = _LOOKS_LIKE_BULLET.match(self.found.lines[at])
            if found and (field_of(found.group(1)) or meant(found.group(1))):
                message = f"`{found.group(1)}` stands below `{outer}:`, where it is not read"
                self._add("nested-value", at, message, f"indent it as far as `{outer}:`")

    def _value(self, bullet: Bullet, rest: str, taken: set[int]) -> str:
        """The text of a bullet: its line, and lines below that are indented to it; others belong to the body."""
        first = self.found.lines[bullet.start].expandtabs(4)
        found = re.match(r"\s*[-*+]\s+", first)
        depth = found.end() if found else 0
        parts = [rest.strip()]
        taken.add(bullet.start)
        for at in range(bullet.start + 1, bullet.text_end):
            if indent_of(self.found.lines[at]) < depth:
                break
            parts.append(self.found.lines[at].strip())
            taken.add(at)
        return "\n".join(parts).strip()

    def _field(self, bullet: Bullet, key: str, value: str, draft: _Draft) -> None:
        known = BULLETS[key]
        if bullet.fence is not None and not value and known.type in _FENCED:
            value = bullet.fence.strip()
            draft.taken.update(range(bullet.text_end, bullet.fence_end))
        elif bullet.nested and not value:
            self._add("nested-value", bullet.start, f"the value of `{key}:` stands below it", "write it on its line")
            return
        if "\n" in value and known.type not in _SEVERAL_LINES:
            self._add("nested-value", bullet.start, f"the value of `{key}:` has several lines", "write it on one line")
            return
        if known.type is Type.LIST:
            value = value.replace("\n", " ")
        try:
            read = from_bullet(known.type, value)
        except Unreadable as error:
            self._add(error.code, bullet.start, f"{key}: {error.message}", error.hint)
            return
        self._set(known.name, known.type, Mark(read, bullet.start + 1), draft)

    def _set(self, name: str, kind: Type, mark: Mark, draft: _Draft) -> None:
        earlier = draft.fields.get(name)
        if earlier is not None and kind is Type.CALLS:
            mark = Mark((*earlier.value, *mark.value), earlier.line)
        elif earlier is not None:
            message = f"{name!r} was set on line {earlier.line} already; the last one counts"
            self._add("repeated-bullet", mark.line - 1, message, "remove one of them")
        if mark.value is None:
            draft.fields.pop(name, None)
        else:
            draft.fields[name] = mark

    def _stray(self, block: StepBlock, draft: _Draft) -> None:
        """Lines that look like a field but are text, because Markdown sees no bullet there."""
        for at in _numbers(block.texts):
            found = _LOOKS_LIKE_BULLET.match(self.found.lines[at])
            known = field_of(found.group(1)) if found and at not in draft.taken else None
            if known is not None:
                hint = f"indent it by {block.offset} spaces, as the step's text"
                self._add("stray-field", at, f"`{known[0]}:` is no bullet here, it would be text", hint)
        below = ((bullet.start + 1, bullet.text_end) for bullet in block.bullets)
        for at in _numbers((*block.texts, *below)):
            if (key := dashless(self.found.lines[at])) is not None:
                hint = f"write `- {key}: …`; to keep it as text put the word in bold"
                self._add("stray-field", at, f"`{self.found.lines[at].strip()}` is no field without a dash", hint)


def _key_and_sign(text: str) -> tuple[str, str]:
    at = next(at for at, letter in enumerate(text) if letter in ":=")
    return text[:at].strip(), text[at] if text[at] == ":" else " ="


def _numbers(ranges: Iterable[tuple[int, int]]) -> Iterable[int]:
    return (at for start, end in ranges for at in range(start, end))


def _dedent(line: str, depth: int) -> str:
    expanded = line.expandtabs(4) if line[:1] in " \t" else line
    return expanded[min(indent_of(expanded), depth) :]
