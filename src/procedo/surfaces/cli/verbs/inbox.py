"""The gates that wait for a person, the oldest first. `--mine` leaves those that you may decide.

With a gate's code it shows that gate in full: what is asked, what changed, and what has happened at it.
"""

import asyncio
from argparse import ArgumentParser
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from procedo.errors import BadArgument
from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.output import pretty
from procedo.surfaces.cli.report import when
from procedo.surfaces.cli.wording import decisions

if TYPE_CHECKING:
    from procedo.app import App

EXAMPLES = (
    "procedo inbox",
    "procedo inbox --mine",
    "procedo inbox K7QF  # one gate in full",
    "procedo inbox --watch  # new gates as they open, until ^C",
)
_LOOK_AGAIN_S = 5.0
_LONGEST_CONTENT = 1200


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument("gate", metavar="GATE", nargs="?", help="one gate in full, by its short code or id")
    parser.add_argument("--mine", action="store_true", help="only gates that you may decide")
    parser.add_argument("--watch", action="store_true", help="stay, and show each new gate")


async def _gates(call: Call, app: "App") -> list[Any]:
    from procedo.surfaces.overview import inbox_view

    found = await app.runs.inbox(call.surface(), mine=call["mine"])
    # Between the list and the look a gate may be decided; then it has left the inbox.
    looked = [await app.runs.gate(gate.gate.id) for gate in found]
    return list(inbox_view(pair for pair in looked if pair[0].gate.verdict is None)["gates"])


def _show(call: Call, gates: Sequence[Any], now: datetime) -> None:
    for gate in gates:
        call.output.row(
            f"{call.output.style('bold', gate['code'])}  {gate['sop']}, step {gate['step']} {gate['title']}"
            f"  {call.output.style('dim', when(gate['since'], now))}"
        )
        call.output.row(f"  {gate['asks']}")
        rows = [("run", gate["run_id"]), ("may decide", gate["may_decide"]), ("revision", str(gate["revision"]))]
        rows += [("answered", f"{vote['count']} of {vote['of']}: {vote['answer']}") for vote in gate.get("votes", ())]
        rows += [("deadline", f"{when(gate['due_at'], now)}, then {gate['when_due']}")] if gate.get("due_at") else []
        rows += [("told", text) for text in gate.get("notices_failed", ())]
        for name, value in rows:
            call.output.row(f"  {call.output.style('dim', name.ljust(10))}  {value}")
        if gate.get("content") is not None:
            call.output.row(f"  {call.output.style('dim', 'about')}")
            call.output.quoted(pretty(gate["content"])[:_LONGEST_CONTENT], "    ")
        decide = decisions(gate["code"], gate["answers"])
        call.output.row(f"  {call.output.style('dim', 'decide'.ljust(10))}  {decide}")
        call.output.line()


async def _one(call: Call) -> None:
    from procedo.surfaces.cli.gatedetail import gate_detail, gate_value

    async with call.app() as app:
        found, snapshot = await app.runs.gate(call["gate"])
        history = await app.runs.history(snapshot.run.id)
    if call.json:
        call.output.value(gate_value(found, history))
    else:
        call.output.line(gate_detail(found, history, datetime.now(UTC)))


async def _once(call: Call) -> None:
    async with call.app() as app:
        gates = await _gates(call, app)
    if call.json:
        call.output.value({"gates": gates})
        return
    _show(call, gates, datetime.now(UTC))
    if not gates:
        call.output.line("No gate waits for " + ("you." if call["mine"] else "anybody."))


async def _watch(call: Call) -> None:
    seen: set[tuple[str, int]] = set()
    async with call.app() as app:
        if not call.json:
            call.output.line("Gates as they open; ^C ends this.")
            call.output.line()
        while True:
            fresh = [gate for gate in await _gates(call, app) if (gate["gate_id"], gate["revision"]) not in seen]
            seen.update((gate["gate_id"], gate["revision"]) for gate in fresh)
            if call.json:
                for gate in fresh:
                    call.output.record(gate)
            else:
                _show(call, fresh, datetime.now(UTC))
            await app.store.changed(_LOOK_AGAIN_S)


def run(call: Call) -> int:
    """Show the inbox."""
    if call["gate"] is not None:
        if call["mine"] or call["watch"]:
            raise BadArgument("bad_argument", "A gate and a filter do not go together.", "Leave one of them out.")
        asyncio.run(_one(call))
    else:
        asyncio.run(_watch(call) if call["watch"] else _once(call))
    return 0
