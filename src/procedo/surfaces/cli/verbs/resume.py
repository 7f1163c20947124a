"""Goes on with a run: ends a pause, drives it again, opens a failed step anew, or adopts a parked run's state file."""

import asyncio
from argparse import ArgumentParser
from typing import TYPE_CHECKING

from procedo.errors import BadArgument
from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.report import follow, report
from procedo.surfaces.cli.typed import json_argument

if TYPE_CHECKING:
    from procedo.runs import Snapshot

EXAMPLES = (
    "procedo resume run-4f…",
    "procedo resume run-4f… --retry 3  # run step 3 again",
    "procedo resume --state run-4f….json  # adopt a run that another store parked",
)


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument("run", metavar="RUN", nargs="?", help="the run's id")
    parser.add_argument("--retry", metavar="N", type=int, help="the number of a failed step to run again")
    parser.add_argument("--state", metavar="FILE", help="a checkpoint's state file")
    parser.add_argument("--wait", metavar="S", type=float, default=20.0, help="seconds to follow the run (20)")


def _checked(call: Call) -> None:
    if (call["run"] is None) == (call["state"] is None):
        raise BadArgument("bad_argument", "Name a run or a state file, one of the two.", "See: procedo resume --help")
    if call["state"] is not None and call["retry"] is not None:
        raise BadArgument(
            "bad_argument", "--retry does not go with --state.", "Adopt the run first, then retry its step."
        )


async def _resume(call: Call) -> "Snapshot":
    async with call.app(worker=True) as app:
        surface = call.surface()
        if call["state"] is not None:
            snapshot = await app.runs.adopt(json_argument(f"@{call['state']}", "--state"), surface)
        else:
            snapshot = await app.runs.resume(call["run"], surface, retry=call["retry"])
        return await follow(call, app, snapshot)


def run(call: Call) -> int:
    """Resume the run."""
    _checked(call)
    report(call, asyncio.run(_resume(call)))
    return 0
