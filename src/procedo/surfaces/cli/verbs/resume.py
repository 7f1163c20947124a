"""Goes on with a run: ends a pause, drives it again, opens a failed step anew, or adopts a parked run's state file.

A state file shows whether it was changed, not who made it, and it may say that a gate is passed. So adopting one
takes a person who types `y` at a terminal. A token does not stand for that `y`; with one it needs the role operate.
"""

import asyncio
from argparse import ArgumentParser
from typing import TYPE_CHECKING

from procedo.core.access import Role
from procedo.core.model import Json
from procedo.errors import BadArgument, Refused
from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.report import follow, report
from procedo.surfaces.cli.terminal import controlling_terminal
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


async def _resume(call: Call, adopted: Json) -> "Snapshot":
    async with call.app(worker=True) as app:
        surface = call.surface()
        if call["state"] is not None:
            snapshot = await app.runs.adopt(adopted, surface)
        else:
            snapshot = await app.runs.resume(call["run"], surface, retry=call["retry"])
        return await follow(call, app, snapshot)


def _confirmed(content: Json) -> None:
    """Show what is adopted, and want a `y`. Raises `Refused`."""
    told = content if isinstance(content, dict) else {}
    run, sop, records = (told.get(name) for name in ("run_id", "sop", "records"))
    many = len(records) if isinstance(records, list) else 0
    with controlling_terminal() as terminal:
        terminal.show(f"\nThis adopts run {run} of {sop} with its record of {many} lines, decisions at gates included.")
        if not terminal.confirmed("Do you know where the file comes from, and adopt it? [y/N]"):
            raise Refused("not_confirmed", "Nothing was adopted: it was not confirmed.", "Run the command again.")


def run(call: Call) -> int:
    """Resume the run."""
    _checked(call)
    adopted: Json = None
    if call["state"] is not None:
        call.access.require(Role.OPERATE)
        adopted = json_argument(f"@{call['state']}", "--state")
        _confirmed(adopted)
    report(call, asyncio.run(_resume(call, adopted)))
    return 0
