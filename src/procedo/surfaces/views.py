"""The run view: what every call about a run answers with, at every door.

Secrets: a look at a run (status, lists, a terminal) masks them everywhere. Where work is handed out, the context
and input of the step carry true values, because the performing agent needs them; everything else is masked there too.
"""

from typing import Final

from msgspec import Struct

from procedo.core import messages as m
from procedo.core.altered import altered
from procedo.core.model import Json
from procedo.core.state import Performer, Status
from procedo.runs import Snapshot, Surface
from procedo.surfaces import links
from procedo.surfaces.gates import gate_view, may_ask_here
from procedo.surfaces.redaction import masked, masked_text
from procedo.surfaces.shapes import (
    ActionView,
    Call,
    CancelledView,
    CheckpointView,
    CompletedView,
    DelegatedView,
    DeterministicView,
    ExecuteView,
    FailedView,
    PendingView,
    RunView,
    StepView,
    WaitView,
    Who,
)
from procedo.surfaces.text import stamp
from procedo.surfaces.usage import usage_view

__all__ = ["run_view", "who_acts"]

_OUTPUT_LIMIT: Final = 24_000
_ACTION_OUTPUT_LIMIT: Final = 2_000
_GATE_LIMIT: Final = 2_000
_POLL_S: Final = 5
_SLOT_POLL_S: Final = 15
_LONGEST_POLL_S: Final = 60
_WAIT_S: Final = 20

_RANK: Final[tuple[Who, ...]] = ("host", "human", "agent", "server", "nobody")
_WORKERS: Final[dict[Performer, Who]] = {
    Performer.HOST: "host",
    Performer.PROGRAM: "host",
    Performer.AGENT: "agent",
    Performer.SERVER: "server",
    Performer.CHILD: "server",
    Performer.TIMER: "server",
}


class _Look(Struct, frozen=True):
    """From where a snapshot is looked at; `working` when the reader performs the steps that are handed out.

    `polling` is false as soon as a person has to act anywhere in the run or below it: asking again would not bring
    that about, so no view then says when to do it.
    """

    snapshot: Snapshot
    surface: Surface
    working: bool
    polling: bool


def run_view(snapshot: Snapshot, surface: Surface, *, working: bool = False) -> RunView:
    """The view of a run. `working` is for the calls that hand out work; a mere look masks the step's data as well."""
    return _view(_Look(snapshot, surface, working, polling=not _person_acts(snapshot)))


def _person_acts(snapshot: Snapshot) -> bool:
    return any(_who(snapshot, action) == "human" for action in snapshot.actions) or any(
        map(_person_acts, snapshot.children)
    )


def _view(look: _Look) -> RunView:
    snapshot, run = look.snapshot, look.snapshot.run
    actions = [_action(look, action) for action in snapshot.actions]
    children = [_view(altered(look, snapshot=child)) for child in snapshot.children]
    who = who_acts(snapshot)
    view: RunView = {
        "run_id": run.id,
        "sop": run.sop,
        "version": run.version,
        "digest": run.digest[:12],
        "status": run.status,
        "who_acts": who,
        "may_proceed": who == "host",
        "actions": actions,
        "last_activity": stamp(run.active_at),
    }
    if run.end is not None and run.end.status is Status.COMPLETED:
        view["output"] = links.cut(masked(run.end.output), _OUTPUT_LIMIT, links.output(run.id))
    elif run.end is not None:
        view["failure"] = masked_text(run.end.reason)
    waits = [_poll_after(look, action) for action in snapshot.actions] + [c.get("poll_after_s") for c in children]
    if polls := [seconds for seconds in waits if seconds is not None]:
        view["poll_after_s"] = min(polls)
    if notes := _notes(snapshot):
        view["notes"] = notes
    if snapshot.sessions:
        view["usage"] = usage_view(snapshot.sessions, snapshot.run.id)
    if children:
        view["children"] = children
    return view


def who_acts(snapshot: Snapshot) -> Who:
    """Who has to do something before the run goes on: the host before a person, a person before the machines."""
    found = [_who(snapshot, action) for action in snapshot.actions]
    found += [who_acts(child) for child in snapshot.children]
    return min(found, key=_RANK.index, default="nobody")


def _notes(snapshot: Snapshot) -> list[str]:
    notes = []
    if snapshot.replayed:
        notes.append("This call was made before with the same content: nothing was done twice.")
    if snapshot.note:
        notes.append(masked_text(snapshot.note))
    if snapshot.coalesced:
        notes.append("A live run of this procedure was joined: no new run was started.")
    return notes


def _who(snapshot: Snapshot, action: m.Action) -> Who:
    match action:
        case m.ExecuteStep() | m.DeterministicStep():
            return "host"
        case m.WaitApproval() | m.CheckpointWait():
            return "human"
        case m.PendingStep():
            paused = snapshot.run.pause is not None
            return "human" if paused or not action.satisfiable else "server"
        case m.Delegated():
            performer = snapshot.run.executions[action.execution_id].performer
            # A sub-run tells by its own view who acts in it.
            return "nobody" if performer is Performer.CHILD and snapshot.children else _WORKERS[performer]
        case m.Ended():
            return "nobody"


def _poll_after(look: _Look, action: m.Action) -> int | None:
    if not look.polling:
        return None
    if isinstance(action, m.PendingStep):
        return _POLL_S if action.due_at is not None else _SLOT_POLL_S
    if not isinstance(action, m.Delegated) or _who(look.snapshot, action) == "nobody":
        return None
    timer = look.snapshot.run.executions[action.execution_id].performer is Performer.TIMER
    if timer and action.due_at is not None:
        return int(min(max((action.due_at - action.since).total_seconds(), 1), _LONGEST_POLL_S))
    return _POLL_S


def _action(look: _Look, action: m.Action) -> ActionView:
    match action:
        case m.ExecuteStep():
            return _execute(look, action)
        case m.DeterministicStep():
            return _deterministic(look, action)
        case m.WaitApproval() | m.CheckpointWait():
            return _gate(look, action)
        case m.PendingStep():
            return _pending(look, action)
        case m.Delegated():
            return _delegated(look, action)
        case m.Ended():
            return _ended(look, action)


def _step(offer: m.StepOffer) -> StepView:
    """A step by number and title, without its content."""
    return {
        "number": offer.number,
        "title": masked_text(offer.title),
        "kind": offer.kind,
        "agent": offer.agent,
        "attempt": offer.attempt,
    }


def _whole_step(look: _Look, offer: m.StepOffer) -> StepView:
    view = _step(offer)
    if offer.body:
        view["body"] = offer.body if look.working else masked_text(offer.body)
    if offer.suggested_tools:
        view["tools"] = list(offer.suggested_tools)
    if offer.calls:
        view["calls"] = [call if look.working else masked(call) for call in offer.calls]
    if offer.output_schema is not None:
        view["output_schema"] = offer.output_schema
    if offer.note:
        view["note"] = masked_text(offer.note)
    return view


def _report(run_id: str, execution_id: str) -> Call:
    arguments: dict[str, Json] = {
        "run_id": run_id,
        "execution_id": execution_id,
        "status": "completed",
        "output": "<your result, any JSON>",
    }
    return {"tool": "sop_advance", "arguments": arguments}


_MASKED_NOTE: Final = "Secrets are masked in a look; sop_resume hands the step out with its true values."


def _execute(look: _Look, action: m.ExecuteStep) -> ExecuteView:
    context = dict(action.context)
    step = _whole_step(look, action.step)
    view: ExecuteView = {
        "action": "execute_step",
        "run_id": action.run_id,
        "execution_id": action.execution_id,
        "step": step,
        "context": context if look.working else masked(context),
        "call": _report(action.run_id, action.execution_id),
    }
    if view["context"] != context or step.get("body", "") != action.step.body:
        view["note"] = _MASKED_NOTE
    if action.due_at is not None:
        view["due_at"] = stamp(action.due_at)
    return view


def _deterministic(look: _Look, action: m.DeterministicStep) -> DeterministicView:
    view: DeterministicView = {
        "action": "deterministic_step",
        "run_id": action.run_id,
        "execution_id": action.execution_id,
        "step": _whole_step(look, action.step),
        "input": action.input if look.working else masked(action.input),
        "call": _report(action.run_id, action.execution_id),
    }
    if view["input"] != action.input:
        view["note"] = _MASKED_NOTE
    if action.due_at is not None:
        view["due_at"] = stamp(action.due_at)
    return view


def _gate(look: _Look, action: m.WaitApproval | m.CheckpointWait) -> WaitView | CheckpointView:
    snapshot, gate = look.snapshot, action.gate
    policy = snapshot.policies.get(gate.id)
    here = may_ask_here(policy, snapshot.run, look.surface)
    where = look.surface.route or "the operator's terminal or inbox"
    if here:
        where = f"here, when sop_approve puts the question to the person, or {where}"
        call: Call = {"tool": "sop_approve", "arguments": {"gate_id": gate.id}}
    else:
        call = {
            "tool": "sop_resume",
            "arguments": {"run_id": action.run_id},
            "when": "only after a person has decided; calling again before is of no use",
        }
    context = gate_view(gate, snapshot.sop, snapshot.run, policy, _GATE_LIMIT, snapshot.tellings)
    step = _step(action.step)
    if isinstance(action, m.WaitApproval):
        return {
            "action": "wait_approval",
            "run_id": action.run_id,
            "gate_id": gate.id,
            "step": step,
            "context": context,
            "where": where,
            "call": call,
        }
    view: CheckpointView = {
        "action": "checkpoint_wait",
        "run_id": action.run_id,
        "gate_id": gate.id,
        "step": step,
        "context": context,
        "where": where,
        "call": call,
    }
    if gate.id in snapshot.state_files:
        view["state_file"] = snapshot.state_files[gate.id]
    return view


def _look_again(run_id: str) -> Call:
    return {"tool": "sop_status", "arguments": {"run_id": run_id, "wait_s": _WAIT_S}}


def _pending(look: _Look, action: m.PendingStep) -> PendingView:
    view: PendingView = {
        "action": "pending",
        "run_id": action.run_id,
        "sop_name": action.sop_name,
        "step": action.step,
        "reason": masked_text(action.reason),
    }
    if look.snapshot.run.pause is not None:
        when = "only after whoever operates this server has ended the pause"
        view["call"] = {"tool": "sop_resume", "arguments": {"run_id": action.run_id}, "when": when}
    elif look.polling:
        view["call"] = _look_again(action.run_id)
    if action.due_at is not None:
        view["due_at"] = stamp(action.due_at)
    return view


def _delegated(look: _Look, action: m.Delegated) -> DelegatedView:
    view: DelegatedView = {
        "action": "delegated",
        "run_id": action.run_id,
        "execution_id": action.execution_id,
        "step": _step(action.step),
        "agent": action.agent,
        "since": stamp(action.since),
    }
    if look.polling:
        view["poll_after_s"] = _poll_after(look, action) or _POLL_S
        view["call"] = _look_again(action.run_id)
    if action.due_at is not None:
        view["due_at"] = stamp(action.due_at)
    return view


def _ended(look: _Look, action: m.Ended) -> CompletedView | FailedView | CancelledView:
    if action.status is Status.COMPLETED:
        output = links.cut(masked(action.output), _ACTION_OUTPUT_LIMIT, links.output(action.run_id))
        return {"action": "completed", "run_id": action.run_id, "sop_name": action.sop_name, "output": output}
    reason = masked_text(action.reason)
    if action.status is Status.FAILED:
        return {"action": "failed", "run_id": action.run_id, "sop_name": action.sop_name, "reason": reason}
    end = look.snapshot.run.end
    return {
        "action": "cancelled",
        "run_id": action.run_id,
        "sop_name": action.sop_name,
        "reason": reason,
        "by": action.by,
        "at": stamp(end.at if end is not None else look.snapshot.run.active_at),
        "denied": end is not None and end.denied,
    }
