"""Looks at everything a run depends on, and says for each thing that is wrong how to mend it. Changes nothing.

It also starts this server as a host of the desktop would, and the MCP servers of agents, each for some seconds.
Exit code 1 when there is a problem; a warning alone is no failure.
"""

from argparse import ArgumentParser
from typing import Final

from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.examination.finding import PROBLEM, Finding

EXAMPLES = ("procedo doctor", "procedo doctor --json")
_STYLES: Final = {"ok": "green", "warning": "yellow", "problem": "red"}


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
    from procedo.surfaces.cli.examination.round import examine
    from procedo.surfaces.cli.progress import Progress

    with Progress(call.notes) as progress:
        findings = examine(call, progress.say)
    healthy = all(finding.state != PROBLEM for finding in findings)
    if call.json:
        call.output.value({"ok": healthy, "findings": [finding.value() for finding in findings]})
    else:
        width = max(len(finding.about) for finding in findings)
        for finding in findings:
            _show(call, finding, width)
        call.output.line()
        call.output.line(
            "Everything that a run needs is in order." if healthy else "Mend the problems, then look again."
        )
    return 0 if healthy else 1
