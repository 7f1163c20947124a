"""Follows a run, line by line, until it has ended. Exit code 0 when it completed, 7 when it failed or was cancelled.

It only looks. With `--json` each line is the run as it is after a change.
"""

import asyncio
from argparse import ArgumentParser
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from procedo.core.state import Status
from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.report import run_text

if TYPE_CHECKING:
    from procedo.app import App
    from procedo.runs import Snapshot

EXAMPLES = ("procedo watch run-4f…", "procedo watch run-4f… --json")
ENDED_BADLY = 7
_LOOK_AGAIN_S = 2.0


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument("run", metavar="RUN", help="the run's id")


async def _news(call: Call, app: "App", after: int) -> int:
    """Print what happened since that record; returns the number of the last one."""
    from procedo.surfaces.redaction import masked
    from procedo.surfaces.timeline import record_line

    records = await app.runs.timeline(call["run"], after)
    for record in records:
        call.output.row(f"{record.at.astimezone():%H:%M:%S}  {record_line(record.kind, masked(record.data))}")
    return records[-1].seq if records else after


async def _follow(call: Call) -> "Snapshot":
    from procedo.surfaces.views import run_view

    seen, revision = 0, -1
    async with call.app() as app:
        while True:
            snapshot = await app.runs.state(call["run"], call.surface())
            if snapshot.run.revision != revision:
                revision = snapshot.run.revision
                if call.json:
                    call.output.record(run_view(snapshot, call.surface()))
                else:
                    seen = await _news(call, app, seen)
            if snapshot.run.status.final:
                return snapshot
            await app.store.changed(_LOOK_AGAIN_S)


def run(call: Call) -> int:
    """Follow."""
    snapshot = asyncio.run(_follow(call))
    if not call.json:
        from procedo.surfaces.views import run_view

        call.output.line()
        run_text(run_view(snapshot, call.surface()), call.output, datetime.now(UTC))
    return 0 if snapshot.run.status is Status.COMPLETED else ENDED_BADLY
