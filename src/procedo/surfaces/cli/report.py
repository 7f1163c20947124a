"""A run as the command line shows it: what happened, who acts now, and what to type next."""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from procedo.core.altered import altered
from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.output import Output, ago, pretty
from procedo.surfaces.cli.progress import Progress
from procedo.surfaces.cli.wording import decisions

if TYPE_CHECKING:
    from procedo.app import App
    from procedo.runs import Snapshot
    from procedo.surfaces.shapes import RunView

__all__ = ["STATUS_STYLE", "follow", "moment", "report", "run_text", "status_words", "when"]

STATUS_STYLE: Final = {
    "running": "blue",
    "waiting_approval": "yellow",
    "paused_checkpoint": "yellow",
    "pending": "yellow",
    "paused": "yellow",
    "completed": "green",
    "failed": "red",
    "cancelled": "red",
}
_LONGEST_VALUE: Final = 4000
_TELLING_S: Final = 5.0
"""How long a command stays for notices that it caused, in seconds."""


def status_words(status: str) -> str:
    """A status as people say it."""
    said = {"waiting_approval": "waits for approval", "paused_checkpoint": "waits at a checkpoint"}
    return said.get(status, status)


def moment(text: str) -> datetime:
    """The moment that a view gives as UTC text."""
    return datetime.fromisoformat(text).astimezone(UTC)


def when(text: str, now: datetime) -> str:
    """How long ago a view's moment was."""
    return ago(moment(text), now)


def _cut(value: Any) -> str:
    text = pretty(value)
    if len(text) <= _LONGEST_VALUE:
        return text
    return f"{text[:_LONGEST_VALUE]}\n… ({len(text)} characters in all; --json prints everything)"


def _host_step(action: Any) -> Iterator[str]:
    step = action["step"]
    yield f"the host agent {step['agent']!r} does this step and reports it through MCP: sop_advance"
    yield f"  execution {action['execution_id']}" + (f", attempt {step['attempt']}" if step["attempt"] > 1 else "")
    if step.get("note"):
        yield f"  {step['note']}"


def _gate(action: Any, now: datetime) -> Iterator[str]:
    gate = action["context"]
    yield f"gate {gate['code']} waits for a person, opened {when(gate['since'], now)}"
    yield f"  asks        {gate['asks']}"
    yield f"  may decide  {gate['may_decide']}"
    for vote in gate.get("votes", ()):
        yield f"  answered    {vote['count']} of {vote['of']}: {vote['answer']}"
    if gate.get("due_at"):
        yield f"  deadline    {when(gate['due_at'], now)}, then {gate['when_due']}"
    for text in gate.get("notices_failed", ()):
        yield f"  told        {text}"
    if action.get("state_file"):
        yield f"  state file  {action['state_file']}"
    yield f"  decide      {decisions(gate['code'], gate['answers'])}"


def _delegated(action: Any, now: datetime) -> Iterator[str]:
    yield f"{action['agent']} is at work since {when(action['since'], now)}"
    if action.get("due_at"):
        yield f"  due         {when(action['due_at'], now)}"


def _action(action: Any, now: datetime) -> Iterator[str]:
    match action["action"]:
        case "execute_step":
            yield from _host_step(action)
        case "deterministic_step":
            yield f"the calling program does this step and reports it: execution {action['execution_id']}"
        case "wait_approval" | "checkpoint_wait":
            yield from _gate(action, now)
        case "delegated":
            yield from _delegated(action, now)
        case "pending":
            yield f"cannot begin yet: {action['reason']}"
            if action.get("due_at"):
                yield f"  goes on     {when(action['due_at'], now)}"
        case _:
            return


def _heading(action: Any) -> str:
    step = action.get("step")
    if isinstance(step, int):
        return f"step {step}"
    return f"step {step['number']}  {step['title']}" if step else ""


def _ending(view: Any, output: Output) -> None:
    for action in view["actions"]:
        if action["action"] == "cancelled":
            verb = "denied" if action["denied"] else "cancelled"
            output.row(f"  {verb} by {action['by']}: {action['reason'] or '(no reason given)'}")
    if view["status"] == "failed":
        output.row(f"  {output.style('red', 'failed')}: {view['failure']}")
    if view.get("output") is not None:
        output.line("  output")
        output.quoted(_cut(view["output"]), "    ")


def run_text(view: "RunView", output: Output, now: datetime) -> None:
    """Print one run for a person."""
    status = output.style(STATUS_STYLE.get(view["status"], "bold"), status_words(view["status"]))
    output.row(f"run {output.style('bold', view['run_id'])}  {view['sop']} {view['version']}  {status}")
    for action in view["actions"]:
        lines = [*_action(action, now)]
        if lines:
            output.row(f"  {output.style('bold', _heading(action))}")
        for text in lines:
            output.row(f"    {text}")
    _ending(view, output)
    for note in view.get("notes", ()):
        output.row(f"  note: {note}")
    if "usage" in view:
        from procedo.surfaces.usage import usage_text

        for text in usage_text(view["usage"]):
            output.row(f"  {text}")
    for child in view.get("children", ()):
        output.row(f"  sub-run {child['run_id']}  {child['sop']}  {status_words(child['status'])}")


def report(call: Call, snapshot: "Snapshot") -> None:
    """Print the answer of a verb that concerns one run."""
    from procedo.surfaces.views import run_view

    view = run_view(snapshot, call.surface())
    if call.json:
        call.output.value(view)
    else:
        run_text(view, call.output, datetime.now(UTC))


async def follow(call: Call, app: "App", snapshot: "Snapshot") -> "Snapshot":
    """Let the server's own steps go on until somebody else has to act, the run ended, or `--wait` is over."""
    if call["wait"] <= 0:
        return snapshot
    if not snapshot.run.status.final:
        with Progress(Output.of(sys.stderr, call.environ, json=call.json)) as progress:
            snapshot = await app.runs.wait(snapshot.run.id, call.surface(), call["wait"], progress.show)
    if app.settings.notices.routes:
        # No server may be running that would tell people after this command has ended.
        await app.carrier.drained(_TELLING_S)
        snapshot = altered(snapshot, tellings=(await app.runs.look(snapshot.run.id)).tellings)
    return snapshot
