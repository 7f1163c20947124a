"""Looks at everything a run depends on, and says for each thing that is wrong how to mend it. Changes nothing.

Exit code 1 when something is broken; a warning alone is no failure.
"""

from argparse import ArgumentParser
from typing import Final

from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.examination import BROKEN, Finding, examine

EXAMPLES = ("procedo doctor", "procedo doctor --json")
_STYLES: Final = {"ok": "green", "warning": "yellow", "broken": "red"}


def arguments(_: ArgumentParser) -> None:
    """Define the arguments: there are none of its own."""


def _show(call: Call, finding: Finding, width: int) -> None:
    out = call.output
    out.line(
        f"{out.style(_STYLES[finding.state], finding.state.ljust(7))}  {finding.about.ljust(width)}  {finding.found}"
    )
    if finding.hint:
        out.line(f"{' ' * (11 + width)}{out.style('dim', '->')} {finding.hint}")


def run(call: Call) -> int:
    """Examine."""
    findings = examine(call)
    healthy = all(finding.state != BROKEN for finding in findings)
    if call.json:
        call.output.value({"ok": healthy, "findings": [finding.value() for finding in findings]})
    else:
        width = max(len(finding.about) for finding in findings)
        for finding in findings:
            _show(call, finding, width)
        call.output.line()
        call.output.line(
            "Everything that a run needs is in order." if healthy else "Mend what is broken, then look again."
        )
    return 0 if healthy else 1
