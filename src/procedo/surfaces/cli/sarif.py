"""Problems as SARIF 2.1.0, the form that code review tools read."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from procedo.sopfile import Problem

__all__ = ["sarif"]

_LEVELS: Final = {"error": "error", "warning": "warning", "note": "note"}
_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def _result(problem: "Problem", root: Path) -> dict[str, Any]:
    file = Path(problem.file)
    relative = file.is_relative_to(root)
    text = f"{problem.message}" + (f" {problem.hint}" if problem.hint else "")
    location: dict[str, Any] = {
        "artifactLocation": {"uri": file.relative_to(root).as_posix(), "uriBaseId": "WORKSPACE"}
        if relative
        else {"uri": file.as_posix()}
    }
    if problem.line > 0:
        location["region"] = {"startLine": problem.line}
    return {
        "ruleId": problem.code,
        "level": _LEVELS[problem.severity],
        "message": {"text": text},
        "locations": [{"physicalLocation": location}],
    }


def sarif(problems: Sequence["Problem"], root: Path, version: str) -> dict[str, Any]:
    """One SARIF log; files inside `root` are named relative to it."""
    rules = sorted({problem.code for problem in problems})
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "procedo", "version": version, "rules": [{"id": code} for code in rules]}},
                "originalUriBaseIds": {"WORKSPACE": {"uri": root.as_uri() + "/"}},
                "results": [_result(problem, root) for problem in problems],
            }
        ],
    }
