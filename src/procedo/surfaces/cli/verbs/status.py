"""Shows one run, or the runs that have not ended: what each waits for, who acts, and since when nothing moved."""

import asyncio
from argparse import ArgumentParser
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from procedo.core.state import Status
from procedo.errors import BadArgument
from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.output import brief
from procedo.surfaces.cli.report import STATUS_STYLE, report, status_words, when

if TYPE_CHECKING:
    from procedo.runs import Snapshot
    from procedo.surfaces.shapes import AttentionView

EXAMPLES = (
    "procedo status",
    "procedo status run-4f…",
    "procedo status --sop ship-release --all",
    "procedo status --status failed",
)


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument("run", metavar="RUN", nargs="?", help="one run")
    parser.add_argument("--sop", metavar="NAME", help="only runs of this procedure")
    parser.add_argument("--status", choices=[str(status) for status in Status], help="only runs with this status")
    parser.add_argument("--all", action="store_true", help="ended runs too")
    parser.add_argument("--limit", metavar="N", type=int, default=50, help="at most so many runs (50)")


async def _one(call: Call) -> "Snapshot":
    async with call.app() as app:
        return await app.runs.accounted(await app.runs.state(call["run"], call.surface()))


async def _list(call: Call) -> "AttentionView":
    from procedo.ports import Filter
    from procedo.surfaces.overview import attention_view

    wanted = Status(call["status"]) if call["status"] else None
    live = None if call["all"] or wanted is not None else True
    async with call.app() as app:
        runs = await app.runs.list(Filter(sop=call["sop"], live=live, status=wanted, limit=call["limit"]))
        view = attention_view(runs, await app.runs.counts())
    if not runs:
        view["note"] = "No run fits." if call["all"] or wanted or call["sop"] else "No run is live."
    return view


def _table(call: Call, view: "AttentionView", now: datetime) -> None:
    rows = []
    for line in view["runs"]:
        rows.append(
            (
                line["run_id"],
                f"{line['sop']} {line['version']}",
                status_words(line["status"]),
                when(line["last_activity"], now),
                brief(line.get("reason", "") or (f"{line['open_gates']} open" if line.get("open_gates") else "")),
            )
        )
    if rows:
        call.output.table(("run", "procedure", "status", "last activity", "note"), rows)
    else:
        call.output.line(view.get("note", ""))
    out = call.output
    counts = [
        f"{number} {out.style(STATUS_STYLE[s], status_words(s))}" for s, number in view["counts"].items() if number
    ]
    if counts:
        out.line(f"\nall runs: {', '.join(counts)}")


def run(call: Call) -> int:
    """Show."""
    if call["run"] is not None:
        if call["sop"] or call["status"] or call["all"]:
            raise BadArgument("bad_argument", "A run and a filter do not go together.", "Leave one of them out.")
        report(call, asyncio.run(_one(call)))
        return 0
    if call["limit"] < 1:
        raise BadArgument("bad_argument", f"--limit {call['limit']} shows nothing.", "Give a number from 1.")
    view = asyncio.run(_list(call))
    if call.json:
        call.output.value(view)
    else:
        _table(call, view, datetime.now(UTC))
    return 0
