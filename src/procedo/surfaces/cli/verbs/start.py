"""Starts a run and follows it until somebody has to act, it ended, or `--wait` is over.

The server's own steps go on while the command waits, also when no server runs. A step of the host agent is shown
with what has to happen; the agent reports it through MCP.
"""

import asyncio
from argparse import ArgumentParser
from typing import TYPE_CHECKING

from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.report import follow, report
from procedo.surfaces.cli.typed import start_inputs

if TYPE_CHECKING:
    from procedo.runs import Snapshot

EXAMPLES = (
    "procedo start ship-release --input version=2.4.0",
    'procedo start intake --input urgent:=true --input \'tags:=["a","b"]\'',
    "procedo start intake --inputs @inputs.json",
    'echo \'{"version":"2.4.0"}\' | procedo start ship-release --inputs -',
)


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument("name", metavar="NAME", help="the procedure")
    parser.add_argument(
        "--input",
        metavar="K=V",
        action="append",
        default=[],
        help="one input, typed by the schema; K:=JSON for any type",
    )
    parser.add_argument("--inputs", metavar="JSON", help="all inputs: JSON, @FILE, or - for standard input")
    parser.add_argument("--key", metavar="KEY", help="idempotency key: the same key again answers with the same run")
    parser.add_argument("--wait", metavar="S", type=float, default=20.0, help="seconds to follow the run (20)")


async def _start(call: Call) -> "Snapshot":
    async with call.app(worker=True) as app:
        # Only the declared types are wanted of it; a procedure that cannot be used is refused by the start itself.
        sop = app.library.get(call["name"]).sop
        inputs = start_inputs(sop.inputs if sop else None, call["inputs"], call["input"])
        snapshot = await app.runs.start(call["name"], inputs, call.surface(), idempotency_key=call["key"])
        return await follow(call, app, snapshot)


def run(call: Call) -> int:
    """Start the run."""
    report(call, asyncio.run(_start(call)))
    return 0
