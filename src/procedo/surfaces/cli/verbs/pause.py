"""Holds a run at its next step: what is under way may finish, nothing new begins. `procedo resume` goes on."""

import asyncio
from argparse import ArgumentParser
from typing import TYPE_CHECKING

from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.report import report

if TYPE_CHECKING:
    from procedo.runs import Snapshot

EXAMPLES = ('procedo pause run-4f… --reason "maintenance until noon"',)


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument("run", metavar="RUN", help="the run's id")
    parser.add_argument("--reason", metavar="TEXT", default="", help="why; kept and shown")


async def _pause(call: Call) -> "Snapshot":
    async with call.app() as app:
        return await app.runs.hold(call["run"], call["reason"], call.surface())


def run(call: Call) -> int:
    """Pause the run."""
    report(call, asyncio.run(_pause(call)))
    return 0
