"""What a result causes: schema, verification, retries, and the failure rule. The one place that closes executions."""

from datetime import timedelta

from procedo.core import messages as m
from procedo.core.dispatch import finish_branch
from procedo.core.draft import Draft, scope_of
from procedo.core.gates import deadline, open_gate, present_draft
from procedo.core.model import Json, OnFailure, Step
from procedo.core.outputs import digest, recover
from procedo.core.state import Arrival, Execution, GateKind, Pending, Phase

__all__ = ["accept", "attempt_failed", "complete", "halt", "identity_of", "judge", "skip"]


def identity_of(status: Phase, reported: Json) -> str:
    """What tells two results of an execution apart."""
    return digest([status.value, reported])


def accept(draft: Draft, execution: Execution, reported: Json, by: str, identity: str) -> None:
    """A performer says that the work is done: the output must fit its schema and pass its verification."""
    step = draft.step(execution.step)
    output = reported
    if step.output_schema is not None:
        output, violations = recover(step.output_schema, reported)
        if violations:
            told = "; ".join(str(v) for v in violations)
            attempt_failed(draft, execution, f"the output breaks its schema: {told}", by, reported, identity)
            return
    if step.verify is None:
        complete(draft, execution, output, by, identity)
        return
    draft.emit(m.OutputClaimed(execution.id, output, identity, by))
    if step.verify.condition is not None:
        scope = {**scope_of(draft.run, execution.arrival), "output": output}
        truth = step.verify.condition.test(scope)
        source = step.verify.condition.source
        if truth.value:
            judge(draft, execution.id, "pass", "")
        elif truth.note:
            judge(draft, execution.id, "cannot_evaluate", f"{source}: {truth.note}")
        else:
            judge(draft, execution.id, "fail", f"verification failed: {source} is false")


def judge(draft: Draft, execution_id: str, verdict: str, reason: str) -> None:
    """Apply the verdict on a claimed output. Whatever is neither pass nor fail never passes: a person decides."""
    execution = draft.execution(execution_id)
    if verdict == "pass":
        complete(draft, execution, execution.claimed, execution.claim_by, execution.claim_digest)
    elif verdict == "fail":
        told = reason or "verification failed"
        attempt_failed(draft, execution, told, execution.claim_by, execution.claimed, execution.claim_digest)
    else:
        halt(draft, execution, GateKind.VERIFY, reason or "the verifier gave no verdict", execution.claimed)


def complete(draft: Draft, execution: Execution, output: Json, by: str, identity: str) -> None:
    """Close an execution with a good output, and go on; a new draft goes back to the gate that asked for it."""
    draft.emit(m.ExecutionCompleted(execution.id, output, identity, by))
    gate = draft.run.gates.get(execution.arrival.redraft)
    if gate is not None:
        present_draft(draft, gate, execution.id, output)
        return
    finish_branch(draft, draft.step(execution.step), execution.id, (execution.id,))


def skip(draft: Draft, execution: Execution, reported: Json, by: str, identity: str) -> None:
    """Close an execution as skipped: the success path is taken, and the step hands its own input on."""
    draft.emit(m.ExecutionSkipped(execution.id, identity, by, reported))
    if execution.arrival.redraft:
        _no_draft(draft, execution.arrival.redraft, "the step was skipped")
        return
    finish_branch(draft, draft.step(execution.step), execution.id, execution.arrival.sources)


def attempt_failed(
    draft: Draft, execution: Execution, reason: str, by: str, output: Json = None, identity: str = ""
) -> None:
    """Close an execution as failed and follow the step's failure rule."""
    step = draft.step(execution.step)
    draft.emit(m.ExecutionFailed(execution.id, reason, identity, by, output))
    retries = _retries(draft, step, execution)
    if execution.arrival.attempt <= retries:
        _retry(draft, step, execution.arrival, reason)
    elif execution.arrival.redraft:
        _no_draft(draft, execution.arrival.redraft, reason)
    elif step.on_failure.target is not None:
        _abandon_items(draft, execution, reason)
        draft.emit(m.Routed(step.number, (step.on_failure.target,), "on_failure"))
        draft.queue.append(Arrival(step.on_failure.target, (execution.id,)))
    elif retries:
        draft.emit(m.RunFailed(f"step {step.number} failed {retries + 1} times (retry limit {retries}): {reason}"))
    else:
        draft.emit(m.RunFailed(reason if reason.startswith("step ") else f"step {step.number} failed: {reason}"))


def _no_draft(draft: Draft, gate_id: str, reason: str) -> None:
    """A failed redraft leaves the old draft to be answered; it is no failure of the run."""
    draft.emit(m.RevisionFailed(gate_id, reason, deadline(draft, draft.run.gates[gate_id].policy)))


def _retries(draft: Draft, step: Step, execution: Execution) -> int:
    own = step.on_failure.retries if step.on_failure.kind is OnFailure.RETRY else 0
    overdue = execution.due_at is not None and execution.due_at <= draft.moment.now
    if overdue and step.on_timeout.value == "retry":
        return max(own, draft.moment.limits.timeout_retries)
    return own


def _retry(draft: Draft, step: Step, arrival: Arrival, reason: str) -> None:
    again = Arrival(
        arrival.step,
        arrival.sources,
        arrival.attempt + 1,
        reason=reason,
        item=arrival.item,
        guidance=arrival.guidance,
        redraft=arrival.redraft,
    )
    if step.on_failure.backoff_s:
        due_at = draft.moment.now + timedelta(seconds=step.on_failure.backoff_s)
        draft.emit(m.ArrivalPended(Pending(again, due_at=due_at)))
    else:
        draft.queue.append(again)


def _abandon_items(draft: Draft, execution: Execution, reason: str) -> None:
    if execution.arrival.item is not None:
        draft.emit(m.FanAbandoned(execution.step, f"item {execution.arrival.item} failed: {reason}"))


def halt(draft: Draft, execution: Execution, kind: GateKind, why: str, value: Json) -> None:
    """Stop an execution until a person has decided about it."""
    draft.emit(m.ExecutionHalted(execution.id, why))
    open_gate(draft, kind, execution.arrival, value, execution=execution.id, why=why)
