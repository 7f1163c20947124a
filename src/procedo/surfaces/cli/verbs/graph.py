"""Draws a procedure, or a run with the state of each step, as text or as Mermaid."""

import asyncio
from argparse import ArgumentParser
from typing import TYPE_CHECKING

from procedo.errors import NotFound
from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.library import opened

if TYPE_CHECKING:
    from procedo.core.model import Mode, Sop
    from procedo.surfaces.graph import StepMark

EXAMPLES = ("procedo graph ship-release", "procedo graph run-4f…", "procedo graph ship-release --format mermaid")


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument("what", metavar="NAME|RUN", help="a procedure or a run")
    parser.add_argument("--format", choices=["text", "mermaid"], default="text", help="the form (text)")


async def _marked(call: Call) -> "tuple[Sop, Mode, dict[int, StepMark]]":
    from procedo.surfaces.overview import step_marks

    async with call.app() as app:
        found = await app.runs.history(call["what"])
    run = found.snapshot.run
    return found.snapshot.sop, run.mode, step_marks(run, found.executions)


def run(call: Call) -> int:
    """Draw."""
    from procedo.surfaces.graph import graph_text, mermaid

    library, settings = opened(call)
    marks: dict[int, StepMark] | None = None
    try:
        entry = library.get(call["what"])
    except NotFound:
        # It is no procedure, so it is to be a run; that one's complaint names what is near.
        sop, mode, marks = asyncio.run(_marked(call))
    else:
        assert entry.sop is not None  # noqa: S101  # `get` refuses a procedure that did not load
        sop, mode = entry.sop, entry.sop.mode or settings.default_mode
    draw = mermaid if call["format"] == "mermaid" else graph_text
    drawing = draw(sop, mode, marks=marks)
    if call.json:
        call.output.value({"name": call["what"], "format": call["format"], "graph": drawing})
    else:
        call.output.line(drawing)
        if marks is not None and call["format"] == "text":
            call.output.line(call.output.style("dim", "x done, > active, ? waits for a person, ! failed"))
    return 0
