"""Reads `.sop.md` files of the Agent SOP format: title, overview, parameters, and steps under headings.

Parameters become inputs. A step is a heading `### 1. Title` below `## Steps`; everything under it,
its constraints included, is its body. There are no fields in bullets here.
"""

import re
from typing import Final

from msgspec import Struct

from procedo.core.model import Json
from procedo.sopfile.outline import Heading, headings, split_lines
from procedo.sopfile.problems import Findings
from procedo.sopfile.source import Mark, SopSource, StepSource

__all__ = ["SUFFIX", "read_agent_sop"]

SUFFIX: Final = ".sop.md"

_STEP: Final = re.compile(r"(?:step\s+)?(\d+)[.:)]\s+(.+)", re.IGNORECASE)
_PARAMETER: Final = re.compile(r"[-*+]\s+\*\*`?([A-Za-z_][\w-]*)`?\*\*\s*(?:\(([^)]*)\))?\s*:?\s*(.*)")
_DEFAULT: Final = re.compile(r"default\s*[:=]?\s*(.+)", re.IGNORECASE)


def read_agent_sop(text: str, file: str, name_hint: str, findings: Findings) -> SopSource:
    """The definition that an Agent SOP holds; its name is that of the file."""
    document = _Document(split_lines(text), headings(text), file, findings)
    name = file.rsplit("/", 1)[-1].removesuffix(SUFFIX) or name_hint
    title = next((heading for heading in document.headings if heading.level == 1), None)
    overview = document.section("overview")
    description = " ".join(" ".join(overview).split("  ")[0].split()) if overview else ""
    if not description and title is None:
        findings.add("missing-key", file, 1, "the document has no title and no overview", "# Title, ## Overview")
    return SopSource(
        header={
            "name": Mark(name, 1),
            "description": Mark(description or (title.text if title else name), title.line + 1 if title else 1),
        },
        steps=document.steps(),
        inputs=document.inputs(),
        file=file,
    )


class _Document(Struct, frozen=True):
    """The lines and headings of one file."""

    lines: list[str]
    headings: list[Heading]
    file: str
    findings: Findings

    def _range(self, name: str) -> tuple[int, int] | None:
        """The lines [start, end) below the `## ` heading of that name."""
        for index, heading in enumerate(self.headings):
            if heading.level == 2 and heading.text.strip().casefold() == name:
                following = (other.line for other in self.headings[index + 1 :] if other.level <= 2)
                return heading.end, next(following, len(self.lines))
        return None

    def section(self, name: str) -> list[str]:
        """The first paragraph of a section."""
        found = self._range(name)
        if found is None:
            return []
        paragraph: list[str] = []
        for line in self.lines[slice(*found)]:
            if not line.strip() and paragraph:
                break
            if line.strip():
                paragraph.append(line.strip())
        return paragraph

    def inputs(self) -> Mark | None:
        found = self._range("parameters")
        if found is None:
            return None
        properties: dict[str, Json] = {}
        required: list[str] = []
        for line in self.lines[slice(*found)]:
            if (parameter := _PARAMETER.match(line)) is None:
                continue
            name, words, description = parameter.group(1), parameter.group(2) or "", parameter.group(3).strip()
            properties[name] = {"description": description} if description else {}
            if (default := _DEFAULT.search(words)) is not None:
                properties[name]["default"] = default.group(1).strip().strip("\"'`")
            elif "optional" not in words.casefold():
                required.append(name)
        schema: dict[str, Json] = {"type": "object", "properties": properties}
        return Mark({**schema, "required": required} if required else schema, found[0])

    def steps(self) -> tuple[StepSource, ...]:
        found = self._range("steps")
        if found is None:
            return ()
        start, end = found
        inside = [heading for heading in self.headings if start <= heading.line < end and heading.level == 3]
        steps: list[StepSource] = []
        for heading, following in zip(inside, [*inside[1:], None], strict=True):
            stop = following.line if following is not None else end
            number = len(steps) + 1
            written = _STEP.fullmatch(heading.text.strip())
            if written is None:
                message = f"{heading.text!r} is no numbered step"
                self.findings.add("step-marker", self.file, heading.line + 1, message, f"### {number}. {heading.text}")
            elif int(written.group(1)) != number:
                message = f"the step written as {written.group(1)} is step {number}"
                self.findings.add("step-number", self.file, heading.line + 1, message, "steps are counted by order")
            title = written.group(2).strip() if written else heading.text.strip()
            steps.append(self._step(number, title, heading, stop))
        return tuple(steps)

    def _step(self, number: int, title: str, heading: Heading, stop: int) -> StepSource:
        lines = [line.rstrip() for line in self.lines[heading.end : stop]]
        filled = [index for index, line in enumerate(lines) if line]
        first, last = (filled[0], filled[-1] + 1) if filled else (0, 0)
        origins = tuple(heading.end + 1 + index for index in range(first, last))
        body = "\n".join(lines[first:last])
        return StepSource(number, title, body, file=self.file, line=heading.line + 1, body_lines=origins)
