"""What has to happen next in a run, and who does it: a pure view of its state.

Nobody downstream resolves an agent, a binding or a dependency again; what an action says is how it is.
"""

from collections.abc import Mapping

from procedo.core import messages as m
from procedo.core.bindings import references, resolve
from procedo.core.draft import input_of, scope_of
from procedo.core.frames import frame
from procedo.core.model import Json, Sop, Step
from procedo.core.routing import reachable, resolved_agent
from procedo.core.state import Arrival, Execution, Gate, GateKind, Pending, Performer, Phase, Run

__all__ = ["actions", "context_of", "offer_of"]


def actions(sop: Sop, run: Run) -> tuple[m.Action, ...]:
    """The actions of a run: its end, or one for everything that is open in it, the caller's own work first."""
    if run.end is not None:
        end = run.end
        return (m.Ended(run.id, run.sop, end.status, end.output, end.reason, end.by),)
    found = [_of_execution(sop, run, e) for e in run.open_executions if e.phase is not Phase.HALTED]
    found.sort(key=lambda action: isinstance(action, m.Delegated))
    found += [_of_gate(sop, run, gate) for gate in run.open_gates]
    found += [_of_pending(sop, run, pending) for pending in run.pending]
    for held in run.held:
        paused = run.pause is not None
        reason = f"the run is paused by {run.pause.by}" if run.pause else f"it waits for a slot: {run.slot_reason}"
        if not paused or not any(isinstance(a, m.PendingStep) and a.step == held.arrival.step for a in found):
            found.append(m.PendingStep(run.id, run.sop, held.arrival.step, reason))
    return tuple(found)


def offer_of(run: Run, step: Step, arrival: Arrival, agent: str, *, body: bool) -> m.StepOffer:
    """A step as its performer or approver sees it; with `body`, everything that is needed to do it."""
    text: Json = ""
    calls: Json = []
    if body:
        scope = scope_of(run, arrival)
        text = resolve(step.body, scope, lambda value: frame(run.marker, value))
        if not isinstance(text, str):
            text = frame(run.marker, text)
        calls = resolve(list(step.calls), scope)
    return m.StepOffer(
        number=step.number,
        title=step.title,
        kind=step.kind.value,
        agent=agent,
        body=text,
        suggested_tools=step.tools,
        calls=tuple(calls),
        output_schema=step.output_schema.source if step.output_schema is not None and body else None,
        attempt=arrival.attempt,
        note=_note(arrival),
    )


def _note(arrival: Arrival) -> str:
    if arrival.attempt > 1:
        before = f"the attempt before failed ({arrival.reason})" if arrival.reason else "the attempt before failed"
        return f"Attempt {arrival.attempt}: {before}; it may have had effects already."
    if arrival.guidance:
        return f"An approver asks for a new draft: {arrival.guidance}"
    return arrival.reason


def context_of(run: Run, step: Step, arrival: Arrival) -> Mapping[str, Json]:
    """What the performer of a step is shown as data: inputs, its own input, and the outputs that it refers to."""
    shown: dict[str, Json] = {"inputs": run.inputs}
    if arrival.sources or arrival.item is not None:
        shown["input"] = input_of(run, arrival)
    if arrival.item is not None:
        shown["item_number"] = arrival.item + 1
        shown["item_count"] = len(run.fans[step.number].items)
    wanted = set(step.sees) or {int(r.step) for r in references(step.body) if r.step is not None}
    outputs = {
        str(n): run.steps[n].output for n in sorted(wanted) if n in run.steps and run.steps[n].completed is not None
    }
    if outputs:
        shown["outputs"] = outputs
    return shown


def _of_execution(sop: Sop, run: Run, execution: Execution) -> m.Action:
    step = sop.by_number[execution.step]
    arrival = execution.arrival
    if execution.phase is Phase.OPEN and execution.performer is Performer.HOST:
        offer = offer_of(run, step, arrival, execution.agent, body=True)
        return m.ExecuteStep(run.id, execution.id, offer, context_of(run, step, arrival), execution.due_at)
    if execution.phase is Phase.OPEN and execution.performer is Performer.PROGRAM:
        offer = offer_of(run, step, arrival, execution.agent, body=True)
        return m.DeterministicStep(run.id, execution.id, offer, input_of(run, arrival), execution.due_at)
    offer = offer_of(run, step, arrival, execution.agent, body=False)
    return m.Delegated(run.id, execution.id, offer, execution.agent, execution.opened_at, execution.due_at)


def _of_gate(sop: Sop, run: Run, gate: Gate) -> m.Action:
    step = sop.by_number[gate.step]
    agent = resolved_agent(sop, step, run.host_agent)
    offer = offer_of(run, step, gate.arrival, agent, body=False)
    made = m.CheckpointWait if gate.kind is GateKind.CHECKPOINT else m.WaitApproval
    return made(run.id, gate.id, offer, gate)


def _of_pending(sop: Sop, run: Run, pending: Pending) -> m.PendingStep:
    number = pending.arrival.step
    if pending.due_at is not None:
        reason = f"attempt {pending.arrival.attempt} of step {number} begins after its back-off"
        return m.PendingStep(run.id, run.sop, number, reason, due_at=pending.due_at)
    missing = ", ".join(str(n) for n in pending.missing)
    live = {e.step for e in run.open_executions} | {g.step for g in run.open_gates} | set(run.fans)
    live |= {h.arrival.step for h in run.held} | {p.arrival.step for p in run.pending if p is not pending}
    dead = [n for n in pending.missing if n not in reachable(sop, frozenset(live))]
    if dead:
        named = ", ".join(str(n) for n in dead)
        reason = (
            f"step {number} depends on step {missing}, and nothing open can complete step {named}: "
            f"resume at step {dead[0]} (retry) or cancel the run"
        )
        return m.PendingStep(run.id, run.sop, number, reason, satisfiable=False)
    return m.PendingStep(run.id, run.sop, number, f"step {number} waits for step {missing}")
