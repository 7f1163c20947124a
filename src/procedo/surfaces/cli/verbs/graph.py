"""Draws a procedure, or a run with the state of each step, as text, as Mermaid or as SVG."""

import asyncio
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from procedo.errors import BadArgument, NotFound
from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.library import opened

if TYPE_CHECKING:
    from procedo.core.model import Mode, Sop
    from procedo.surfaces.graph import StepMark

    _Drawn: TypeAlias = tuple[Sop, Mode, Mapping[int, StepMark] | None, frozenset[tuple[int, int]]]

EXAMPLES = (
    "procedo graph ship-release",
    "procedo graph run-4f…",
    "procedo graph ship-release --format mermaid",
    "procedo graph ship-release --run run-4f… --format svg > run.svg",
)

_LEGEND = "x done, > active, ? waits for a person, ! failed, - skipped, ~ cancelled"


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument("what", metavar="NAME|RUN", help="a procedure or a run")
    parser.add_argument("--format", choices=["text", "mermaid", "svg"], default="text", help="the form (text)")
    parser.add_argument("--run", metavar="RUN", help="with the state of this run of the procedure")


async def _marked(call: Call, run_id: str) -> "_Drawn":
    from procedo.surfaces.overview import step_marks, ways_taken

    async with call.app() as app:
        found = await app.runs.history(run_id)
    run, sop = found.snapshot.run, found.snapshot.sop
    if call["run"] is not None and sop.name != call["what"]:
        raise BadArgument("other_procedure", f"{run_id} is a run of {sop.name!r}, not of {call['what']!r}.")
    return sop, run.mode, step_marks(run, found.executions), ways_taken(found.executions)


def _drawn(call: Call) -> "_Drawn":
    if call["run"] is not None:
        return asyncio.run(_marked(call, call["run"]))
    library, settings = opened(call)
    try:
        entry = library.get(call["what"])
    except NotFound:
        # It is no procedure, so it is to be a run; that one's complaint names what is near.
        return asyncio.run(_marked(call, call["what"]))
    assert entry.sop is not None  # noqa: S101  # `get` refuses a procedure that did not load
    return entry.sop, entry.sop.mode or settings.default_mode, None, frozenset()


def run(call: Call) -> int:
    """Draw."""
    sop, mode, marks, taken = _drawn(call)
    form: str = call["format"]
    if form == "svg":
        from procedo.surfaces.drawing import drawing
        from procedo.surfaces.graph import outline

        graph = drawing(outline(sop, mode), marks, taken=taken, standalone=True)
    else:
        from procedo.surfaces.graph import graph_text, mermaid

        graph = (mermaid if form == "mermaid" else graph_text)(sop, mode, marks=marks)
    if call.json:
        call.output.value({"name": call["what"], "format": form, "graph": graph})
    else:
        call.output.line(graph)
        if marks is not None and form == "text":
            call.output.line(call.output.style("dim", _LEGEND))
    return 0
