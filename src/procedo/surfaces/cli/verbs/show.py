"""Shows a procedure (its inputs, steps and gates) or a run (its steps, outputs, decisions, and who took them)."""

import asyncio
from argparse import ArgumentParser
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from procedo.errors import NotFound
from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.library import opened
from procedo.surfaces.cli.output import pretty
from procedo.surfaces.cli.report import run_text, when

if TYPE_CHECKING:
    from procedo.core.session import Transcript
    from procedo.surfaces.record_shapes import HistoryView
from procedo.surfaces.shapes import DescribeView

EXAMPLES = (
    "procedo show ship-release",
    "procedo show run-4f…",
    "procedo show run-4f… --records",
    "procedo show run-4f… --step 2  # what the agent of step 2 said and did",
)
_EVERYTHING = 10**12


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument("what", metavar="NAME|RUN", help="a procedure or a run")
    parser.add_argument("--records", action="store_true", help="of a run: every line of the record too")
    parser.add_argument(
        "--step", metavar="N", help="of a run: the transcripts of the agents of this step, or of one execution (2.1)"
    )


def _inputs(view: "DescribeView") -> list[tuple[str, str]]:
    schema: Any = view["inputs"]
    properties = schema.get("properties", {}) if isinstance(schema, dict) else {}
    required = schema.get("required", []) if isinstance(schema, dict) else []
    rows = []
    for name, what in properties.items():
        kind = what.get("type", "any") if isinstance(what, dict) else "any"
        note = what.get("description", "") if isinstance(what, dict) else ""
        more = (
            "required"
            if name in required
            else f"default {pretty(what['default'])}"
            if "default" in what
            else "optional"
        )
        rows.append((name, f"{kind}, {more}" + (f": {note}" if note else "")))
    return rows


def _procedure(call: Call, view: "DescribeView") -> None:
    out = call.output
    out.row(f"{out.style('bold', view['name'])} {view['version']}  {view['description']}")
    limit = view["max_concurrent"]
    out.pairs(
        [
            ("mode", view["mode"]),
            ("priority", view["priority"]),
            ("agents", ", ".join(view["agents"])),
            ("at once", f"{limit['configured']} (effective {limit['effective']}), admission {view['admission']}"),
            ("digest", view["digest"]),
            *(("trigger", trigger) for trigger in view.get("triggers", ())),
        ]
    )
    out.line("\ninputs")
    out.pairs([(f"  {name}", text) for name, text in _inputs(view)] or [("  any JSON", "no schema is declared")])
    out.line("\nsteps")
    for step in view.get("steps", ()):
        facts = [step[key] for key in ("kind", "agent", "capability", "sop") if key in step]
        out.row(f"  {step['number']}. {out.style('bold', step['title'])}  {out.style('dim', ', '.join(facts))}")
        if step.get("gate"):
            out.row(f"     {out.style('yellow', 'gate')}: {step['gate']}")
        if step.get("body"):
            out.quoted(step["body"], "     ")
        if step.get("leads_to"):
            out.row(f"     {out.style('dim', 'leads to ' + '; '.join(step['leads_to']))}")
    for problem in view.get("problems", ()):
        out.row(problem)


def _executions(call: Call, view: "HistoryView") -> None:
    out = call.output
    for execution in view["executions"]:
        attempt = f", attempt {execution['attempt']}" if execution["attempt"] > 1 else ""
        out.row(
            f"  {execution['execution_id']}  {out.style('bold', execution['title'])}  {execution['phase']}{attempt}"
            f"  {out.style('dim', execution['by'] if 'by' in execution else execution['agent'])}"
        )
        if execution.get("reason"):
            out.row(f"       {execution['reason']}")
        if execution.get("output") is not None:
            out.quoted(pretty(execution["output"]), "       ")
        for note in execution.get("notes", ()):
            out.row(f"       note: {note}")


def _gates(call: Call, view: "HistoryView", now: datetime) -> None:
    for gate in view["gates"]:
        if "verdict" in gate:
            state = f"{gate['verdict']} by {gate.get('by', 'nobody')}, {when(gate['at'], now)}"
        else:
            state = "open"
        state = f"withdrawn: {gate['withdrawn']}" if gate.get("withdrawn") else state
        state += " (it had expired)" if gate.get("expired") else ""
        state += " (by breaking the glass)" if gate.get("break_glass") else ""
        call.output.row(f"  {gate['code']}  step {gate['step']}, {gate['kind']}: {gate['asks']}".rstrip(": "))
        call.output.row(f"        {state}")
        if gate.get("comment"):
            call.output.row(f"        comment: {gate['comment']}")


def _run(call: Call, view: "HistoryView", now: datetime) -> None:
    run_text(view["run"], call.output, now)
    call.output.line()
    call.output.row(f"started {when(view['started_at'], now)} by {view['started_by']} with")
    call.output.quoted(pretty(view["inputs"]), "  ")
    if view["executions"]:
        call.output.line()
        call.output.row("steps")
        _executions(call, view)
    if view["gates"]:
        call.output.line()
        call.output.row("gates")
        _gates(call, view, now)
    if call["records"]:
        from procedo.surfaces.timeline import record_line

        call.output.line()
        call.output.row("record")
        for record in view["records"]:
            call.output.row(f"  {record['seq']:>4}  {record_line(record['kind'], record['data'])}")


async def _transcripts(call: Call) -> list["Transcript"]:
    """The sessions of a step or of one execution. Raises `NotFound`."""
    from procedo.core.access import Role
    from procedo.surfaces.cli.credential import require_person

    require_person(call.access, Role.OPERATE, "reads no transcripts")
    run_id, wanted = call["what"], call["step"]
    async with call.app() as app:
        history = await app.runs.history(run_id)
        names = [e.id for e in history.executions if wanted in (e.id, str(e.step))]
        found = [await app.runs.transcript(run_id, name) for name in names]
    kept = [transcript for transcript in found if transcript is not None]
    if not kept:
        had = ", ".join(dict.fromkeys(row.execution_id for row in history.sessions)) or "none"
        message = f"No agent of the registry carried out step {wanted} in run {run_id}."
        raise NotFound("unknown_session", message, f"Executions with a session: {had}.")
    return kept


def _step(call: Call) -> int:
    from procedo.surfaces import links
    from procedo.surfaces.cli.transcript import transcript_text
    from procedo.surfaces.pages import Span
    from procedo.surfaces.parts import transcript_view

    found = asyncio.run(_transcripts(call))
    if call.json:
        address = links.run(call["what"])
        call.output.value([transcript_view(one, address, Span(0, _EVERYTHING)) for one in found])
        return 0
    for one in found:
        transcript_text(one, call.output)
    return 0


async def _history(call: Call) -> "HistoryView":
    from procedo.surfaces.overview import history_view

    async with call.app() as app:
        found = await app.runs.history(call["what"])
    view = history_view(found.snapshot, found.executions, found.gates, found.records, call.surface())
    if not call["records"]:
        view["records"] = []
    return view


def run(call: Call) -> int:
    """Show it."""
    from procedo.core.model import Reveal
    from procedo.surfaces.catalogue import describe_view

    if call["step"] is not None:
        return _step(call)
    library, settings = opened(call)
    near: tuple[str, ...] = ()
    try:
        description = describe_view(library.get(call["what"]), settings, reveal=Reveal.ALL)
    except NotFound as error:
        # It is no procedure, so it is to be a run.
        near = error.near
    else:
        call.output.value(description) if call.json else _procedure(call, description)
        return 0
    try:
        history = asyncio.run(_history(call))
    except NotFound as error:
        names = ", ".join(dict.fromkeys((*near, *error.near)))
        hint = f"Did you mean {names}?" if names else "See: procedo list, procedo status --all"
        raise NotFound(
            "not_found", f"Neither a procedure nor a run is called {call['what']!r}.", hint, (*near, *error.near)
        ) from error
    call.output.value(history) if call.json else _run(call, history, datetime.now(UTC))
    return 0
