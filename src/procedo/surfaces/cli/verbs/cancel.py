"""Ends a run from any state; a result that comes later is refused."""

import asyncio
from argparse import ArgumentParser
from typing import TYPE_CHECKING

from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.report import report

if TYPE_CHECKING:
    from procedo.runs import Snapshot

EXAMPLES = ('procedo cancel run-4f… --reason "oven out of order"',)


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument("run", metavar="RUN", help="the run's id")
    parser.add_argument("--reason", metavar="TEXT", default="", help="why; kept and shown")


async def _cancel(call: Call) -> "Snapshot":
    async with call.app() as app:
        return await app.runs.cancel(call["run"], call["reason"], call.surface())


def run(call: Call) -> int:
    """Cancel the run."""
    report(call, asyncio.run(_cancel(call)))
    return 0
