"""Reads procedures and reports every problem with its file, line, code and hint. Exit code 1 when one is an error.

Without names every procedure of the workspace is checked; a path checks a folder elsewhere.
"""

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.library import chosen

if TYPE_CHECKING:
    from procedo.sopfile import Entry, Problem

EXAMPLES = (
    "procedo check",
    "procedo check ship-release",
    "procedo check ./sops/ship-release",
    "procedo check --sarif > check.sarif",
)
_STYLES: Final = {"error": "red", "warning": "yellow", "note": "dim"}


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument("what", metavar="NAME|PATH", nargs="*", help="procedures by name, or folders (default: all)")
    parser.add_argument("--sarif", action="store_true", help="print SARIF 2.1.0")
    parser.add_argument("--strict", action="store_true", help="warnings count as errors")


def _value(problem: "Problem") -> dict[str, Any]:
    return {
        "file": problem.file,
        "line": problem.line,
        "code": problem.code,
        "severity": problem.severity,
        "message": problem.message,
        "hint": problem.hint,
    }


def _many(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _report_text(call: Call, entries: Sequence["Entry"], root: Path, counts: Counter[str]) -> None:
    out = call.output
    for entry in entries:
        for problem in entry.problems:
            place, _, rest = str(problem).partition(f"{problem.severity}[")
            out.line(f"{place}{out.style(_STYLES[problem.severity], problem.severity)}[{rest}")
    broken = [entry for entry in entries if entry.sop is None]
    if broken:
        out.line(f"\n{out.style('red', 'did not load')}:")
        for entry in broken:
            out.line(f"  {entry.name}  {entry.folder}")
    if not entries:
        out.line(f"No procedure in {root}. Make one with: procedo new NAME")
        return
    found = ", ".join(
        _many(counts[severity], severity) for severity in ("error", "warning", "note") if counts[severity]
    )
    out.line(f"{_many(len(entries), 'procedure')} checked: {found or 'no problems'}.")


def run(call: Call) -> int:
    """Check."""
    entries, settings = chosen(call, call["what"])
    problems = [problem for entry in entries for problem in entry.problems]
    counts = Counter(str(problem.severity) for problem in problems)
    broken = [entry for entry in entries if entry.sop is None]
    failed = bool(counts["error"] or broken or (call["strict"] and counts["warning"]))
    if call["sarif"]:
        from procedo.surfaces.cli.sarif import sarif
        from procedo.surfaces.cli.versions import procedo_version

        call.output.value(sarif(problems, settings.root, procedo_version()))
    elif call.json:
        value = {
            "ok": not failed,
            "folder": str(settings.sops_dir),
            "checked": [entry.name for entry in entries],
            "not_loaded": [{"name": entry.name, "folder": str(entry.folder)} for entry in broken],
            "counts": {severity: counts[severity] for severity in ("error", "warning", "note")},
            "problems": [_value(problem) for problem in problems],
        }
        call.output.value(value)
    else:
        _report_text(call, entries, settings.sops_dir, counts)
    return 1 if failed else 0
