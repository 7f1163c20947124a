"""Reads the files of one procedure: which of them count, and what they hold together."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from msgspec import Struct

from procedo.core.model import Sop
from procedo.errors import InvalidSop
from procedo.sopfile.agentsop import SUFFIX, read_agent_sop
from procedo.sopfile.compilation import compile_source, digest_of
from procedo.sopfile.header import read_header
from procedo.sopfile.problems import Findings
from procedo.sopfile.source import SopSource
from procedo.sopfile.steps import read_steps

__all__ = ["HEADER_FILE", "STEPS_FILE", "Reading", "compile_files", "read_files", "read_source"]

HEADER_FILE: Final = "SOP.toml"
STEPS_FILE: Final = "SOP.md"


class Reading(Struct, frozen=True):
    """What the files gave: the source with its lines, and the procedure; None where nothing could be read."""

    source: SopSource | None
    sop: Sop | None


def compile_files(files: Mapping[str, str], name_hint: str) -> Sop:
    """Compile the files of one procedure, by relative name, without looking at any workspace.

    Raises `InvalidSop` with the problems when there is an error among them.
    """
    findings = Findings()
    reading = read_files(files, name_hint, findings)
    if reading.sop is None or findings.failed:
        problems = [str(problem) for problem in findings.problems() if problem.severity == "error"]
        message = f"Procedure {name_hint!r} cannot be used: {problems[0] if problems else 'it has no files'}."
        raise InvalidSop("invalid_sop", message, "Run `procedo check` for all problems.", problems)
    return reading.sop


def read_files(files: Mapping[str, str], name_hint: str, findings: Findings) -> Reading:
    """Read and compile the files of one procedure; everything wrong goes to `findings`."""
    source = read_source(files, name_hint, findings)
    if source is None:
        return Reading(None, None)
    return Reading(source, compile_source(source, digest_of(files), name_hint, findings))


def read_source(files: Mapping[str, str], name_hint: str, findings: Findings) -> SopSource | None:
    """Read the files of one procedure; None when there is nothing to read."""
    header_text, steps_text = files.get(HEADER_FILE), files.get(STEPS_FILE)
    if header_text is None:
        agent_sop = next((name for name in sorted(files) if name.endswith(SUFFIX)), None)
        if agent_sop is not None:
            return read_agent_sop(files[agent_sop], agent_sop, name_hint, findings)
        hint = "beside SOP.md stands a SOP.toml with [sop], name and description"
        findings.add("missing-header", HEADER_FILE, 0, "SOP.toml is missing", hint)
    source = read_header(header_text, HEADER_FILE, findings) if header_text is not None else None
    if steps_text is None:
        return source
    markdown = read_steps(steps_text, STEPS_FILE, findings)
    if source is None:
        return None
    if source.steps:
        message = "SOP.toml has [[steps]] as well; the steps of SOP.md count"
        findings.add("steps-twice", HEADER_FILE, source.steps[0].line, message, "remove one of them")
    return replace(source, steps=markdown.steps, markdown=True, before=markdown.before, after=markdown.after)
