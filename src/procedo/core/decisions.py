"""Answers at gates: the one path for every door, a timer included.

The order of the checks: gate, presentation, policy, verdict, person, votes, consequence.
"""

from datetime import timedelta
from typing import Final

from procedo.core import messages as m
from procedo.core.altered import altered
from procedo.core.approval import ANSWERS, OnExpiry, Policy, answers, glass_objection, objection, tally
from procedo.core.dispatch import leave, proceed
from procedo.core.draft import Draft
from procedo.core.model import Json, Step
from procedo.core.outputs import digest
from procedo.core.results import attempt_failed, identity_of, judge, skip
from procedo.core.state import (
    Arrival,
    Execution,
    Gate,
    GateKind,
    Performer,
    Phase,
    Principal,
    PrincipalKind,
    Source,
    Verdict,
    Vote,
)
from procedo.errors import BadArgument, Conflict, NotFound, Refused

__all__ = ["CLOCK", "answer", "approve_by_policy", "check_verdict", "expire"]

CLOCK: Final = Principal(Source.SYSTEM, "clock", PrincipalKind.SYSTEM)


def answer(draft: Draft, command: m.Decide) -> None:
    """Take an answer at a gate. Nothing is emitted when the same answer was given before."""
    gate = draft.run.gates.get(command.gate_id)
    if gate is None:
        raise NotFound("unknown_gate", f"Run {draft.run.id} has no gate {command.gate_id}.", "List the open gates.")
    step = draft.step(gate.step)
    value = _amended(gate, step, command)
    if gate.redrafting:
        message = f"A new draft is being made for gate {gate.code}; the one you saw is superseded."
        raise Refused("superseded", message, "Look at the gate again when the draft has come.")
    if not gate.open:
        _answered_before(gate, command, value)
        return
    _check_presentation(gate, command)
    policy = _policy(draft, gate)
    check_verdict(gate, step, command.verdict)
    if command.break_glass:
        _break_glass(draft, gate, policy, command, value)
        return
    reason = objection(policy, command.by, draft.run)
    if reason is not None:
        raise Refused("not_authorised", f"Nothing is decided: {reason}.", "The gate stays open for those it names.")
    if command.verdict is Verdict.RETRACT:
        _retract(draft, gate, command.by)
    elif command.verdict is Verdict.REVISE:
        _revise(draft, gate, command)
    elif command.verdict in (Verdict.APPROVE, Verdict.AMEND):
        _vote(draft, gate, policy, command, value)
    else:
        _resolve(draft, gate, command, value)


def _amended(gate: Gate, step: Step, command: m.Decide) -> Json:
    """The value that the answer stands for: the content, with the declared field replaced when it amends."""
    if command.verdict is not Verdict.AMEND:
        if command.value is not None:
            raise BadArgument("unexpected_value", f"A value comes with amend only, not with {command.verdict}.")
        return gate.content
    if gate.kind is GateKind.TOOL_CALL:
        if not isinstance(command.value, dict):
            raise BadArgument("missing_value", "To amend a tool call, give its new arguments as an object.")
        return {**(gate.content if isinstance(gate.content, dict) else {}), "arguments": command.value}
    if step.edit is None:
        raise Refused("not_editable", f"Step {step.number} declares no field to amend.", "Approve or deny it.")
    if not isinstance(gate.content, dict) or step.edit not in gate.content:
        raise Refused("not_editable", f"What is being approved has no field {step.edit!r}.", "Approve or deny it.")
    if command.value is None:
        raise BadArgument("missing_value", f"To amend, give the new value of {step.edit!r}.")
    return {**gate.content, step.edit: command.value}


def _answered_before(gate: Gate, command: m.Decide, value: Json) -> None:
    if gate.withdrawn:
        raise Conflict("withdrawn", f"Gate {gate.code} is void: {gate.withdrawn}.", "Nothing is left to decide.")
    told = f"Gate {gate.code} was answered already: {gate.verdict} by {gate.decided_by} at {gate.decided_at:%F %T} UTC"
    if gate.expired:
        raise Conflict("expired", f"Gate {gate.code} expired at {gate.decided_at:%F %T} UTC; nothing changes.")
    same = command.verdict is gate.verdict and (
        command.verdict is not Verdict.AMEND or digest(value) == gate.value_digest
    )
    if not same:
        raise Conflict("already_decided", f"{told}.", "The first decision stands.")


def _check_presentation(gate: Gate, command: m.Decide) -> None:
    seen_other = command.revision not in (None, gate.revision) or command.digest not in (None, gate.digest)
    if seen_other:
        message = f"What you saw at gate {gate.code} is superseded; a newer presentation exists."
        raise Conflict("superseded", message, "Look at the gate again before you decide.")


def _policy(draft: Draft, gate: Gate) -> Policy:
    policy = draft.moment.policy(gate.policy)
    if policy is None:
        message = f"policy missing: gate {gate.code} asks for policy {gate.policy!r}, which is not configured."
        raise Refused("policy_missing", message, "Put it back into procedo.toml; the gate stays open until then.")
    return policy


def check_verdict(gate: Gate, step: Step, verdict: Verdict) -> None:
    """Raises `BadArgument` for an answer that this gate does not take now."""
    allowed = answers(gate, editable=step.edit is not None)
    if verdict is Verdict.RETRACT and Verdict.APPROVE in allowed:
        return
    if verdict not in allowed:
        words = ", ".join(allowed)
        raise BadArgument("wrong_verdict", f"{verdict} is no answer at gate {gate.code}.", f"It takes: {words}.")


def _break_glass(draft: Draft, gate: Gate, policy: Policy, command: m.Decide, value: Json) -> None:
    """Decide alone, against the policy's group, quorum and roles, and say so in the record."""
    if command.verdict in (Verdict.RETRACT, Verdict.REVISE):
        message = f"{command.verdict} decides nothing, so there is no glass to break for it."
        raise BadArgument("wrong_verdict", message, "Break the glass to approve, amend or deny.")
    barred = glass_objection(draft.moment.break_glass, command.by, command.comment)
    if barred is not None:
        raise Refused("glass_not_broken", f"Nothing is decided: {barred}.", "The gate stays open for those it names.")
    against = objection(policy, command.by, draft.run)
    if against is None and policy.quorum > 1 and command.verdict in (Verdict.APPROVE, Verdict.AMEND):
        against = f"policy {policy.name!r} asks for {policy.quorum} different people"
    if against is None:
        message = f"{command.by} may decide at gate {gate.code} without breaking the glass."
        raise Refused("glass_not_needed", message, "Decide as usual; nothing was decided by this call.")
    draft.emit(m.GlassBroken(gate.id, command.by, command.comment, policy.name, against))
    _resolve(draft, gate, command, value)


def approve_by_policy(draft: Draft) -> bool:
    """Approve what has just opened where the step's policy does so by itself; False when there was nothing.

    Only a gate that asks whether something may go on is approved so, and only under a policy that its step names:
    never by default, never later, and never a question about what has happened.
    """
    opened = [event.gate.id for event in draft.events if isinstance(event, m.GateOpened)]
    for gate in (draft.run.gates[gate_id] for gate_id in opened):
        policy = draft.moment.policy(gate.policy) if draft.step(gate.step).policy == gate.policy else None
        asks = gate.kind in (GateKind.APPROVAL, GateKind.CHECKPOINT)
        if draft.run.end is None and gate.open and asks and policy is not None and policy.auto_approve:
            by = Principal(Source.SYSTEM, f"policy {policy.name}", PrincipalKind.SYSTEM)
            draft.emit(m.AutoApproved(gate.id, policy.name))
            draft.emit(m.GateResolved(gate.id, Verdict.APPROVE, by, f"policy {policy.name!r} approves by itself"))
            _carry_out(draft, gate, Verdict.APPROVE, by, "", gate.content)
            return True
    return False


def _revise(draft: Draft, gate: Gate, command: m.Decide) -> None:
    """Ask the drafting step for another draft; it runs again with its own input and the guidance."""
    if not command.comment.strip():
        raise BadArgument("missing_guidance", "To revise, say in the comment what the new draft should be like.")
    drafted = draft.execution(gate.draft)
    draft.emit(m.RevisionAsked(gate.id, command.by, command.comment))
    draft.queue.append(Arrival(drafted.step, drafted.arrival.sources, guidance=command.comment, redraft=gate.id))


def _retract(draft: Draft, gate: Gate, by: Principal) -> None:
    if all(vote.identity != by.identity for vote in gate.votes):
        raise Refused("no_vote", f"{by} has no vote at gate {gate.code}.", "There is nothing to take back.")
    draft.emit(m.VoteRetracted(gate.id, by.identity, by))


def _vote(draft: Draft, gate: Gate, policy: Policy, command: m.Decide, value: Json) -> None:
    chosen = gate.digest if command.verdict is Verdict.APPROVE else digest(value)
    known = next((v for v in gate.votes if v.identity == command.by.identity), None)
    vote = Vote(
        command.by.identity, command.by, command.verdict, chosen, draft.moment.now, command.value, command.comment
    )
    others = tuple(v for v in gate.votes if v.identity != vote.identity)
    count = tally(policy, (*others, vote), draft.run).get(chosen, 0)
    if count >= policy.quorum:
        _resolve(draft, gate, command, value)
    elif known is None or known.digest != chosen:
        draft.emit(m.VoteCast(gate.id, vote))


def _resolve(draft: Draft, gate: Gate, command: m.Decide, value: Json) -> None:
    value_digest = digest(value) if command.verdict is Verdict.AMEND else ""
    amended = command.value if command.verdict is Verdict.AMEND else None
    draft.emit(
        m.GateResolved(
            gate.id,
            command.verdict,
            command.by,
            command.comment,
            amended,
            value_digest,
            lasting=command.lasting,
            policy=gate.policy or "",
        )
    )
    _carry_out(draft, gate, command.verdict, command.by, command.comment, value)


def _carry_out(draft: Draft, gate: Gate, verdict: Verdict, by: Principal, comment: str, value: Json) -> None:
    if gate.execution is not None:
        _carry_out_on_execution(draft, gate, verdict, by, comment)
    elif verdict is Verdict.DENY:
        _denied(draft, gate, by, comment)
    elif gate.kind is GateKind.CHECKPOINT:
        _released(draft, gate, by, value)
    else:
        proceed(draft, gate.arrival)


def _released(draft: Draft, gate: Gate, by: Principal, value: Json) -> None:
    """A released checkpoint is an execution of its own, whose output is the value that was released."""
    step = draft.step(gate.step)
    execution = Execution(
        id=f"{step.number}.{draft.run.steps[step.number].executions + 1}",
        arrival=gate.arrival,
        performer=Performer.SERVER,
        agent="",
        opened_at=draft.moment.now,
    )
    draft.emit(m.ExecutionOpened(execution))
    draft.emit(m.ExecutionCompleted(execution.id, value, gate.digest, by.key))
    leave(draft, step, (execution.id,))


def _denied(draft: Draft, gate: Gate, by: Principal, comment: str) -> None:
    """A denial takes the route that the step declares for it, else it cancels the run."""
    step = draft.step(gate.step)
    target = step.on_deny if step.on_deny is not None else step.on_failure.target
    if target is None:
        draft.emit(m.RunCancelled(comment or f"denied at step {step.number}", by, denied=True))
        return
    draft.emit(m.Routed(step.number, (target,), "on_deny", (comment,) if comment else ()))
    draft.queue.append(altered(gate.arrival, step=target, attempt=1, reason=comment, item=None))


def _carry_out_on_execution(draft: Draft, gate: Gate, verdict: Verdict, by: Principal, comment: str) -> None:
    execution = draft.execution(gate.execution or "")
    step = draft.step(execution.step)
    if gate.call:
        # What the answer means for the call is the session's affair; it finds the answer at the gate.
        waited = draft.moment.now - gate.opened_at
        due_at = execution.due_at + waited if execution.due_at is not None else None
        if execution.phase is Phase.HALTED:
            draft.emit(m.ExecutionResumed(execution.id, due_at))
    elif gate.kind is GateKind.VERIFY:
        judge(draft, execution.id, "pass" if verdict is Verdict.APPROVE else "fail", comment)
    elif gate.kind is GateKind.TIMEOUT and verdict is Verdict.APPROVE:
        due_at = draft.moment.now + timedelta(seconds=step.timeout_s) if step.timeout_s else None
        draft.emit(m.ExecutionExtended(execution.id, due_at))
    elif verdict is Verdict.REPEAT:
        draft.emit(m.EffectRepeated(execution.id, comment or f"{by} said to repeat it"))
    elif verdict is Verdict.SKIP:
        skip(draft, execution, None, by.key, identity_of(Phase.SKIPPED, None))
    else:
        attempt_failed(draft, execution, comment or gate.prompt.partition(":")[2].strip() or "denied", by.key)


def expire(draft: Draft, gate: Gate) -> None:
    """Nobody answered in time: remind or escalate, and after the last reminder say no. Never approve.

    No is a denial, or, of an effect that may or may not have happened, a failure. A gate whose policy is missing
    keeps waiting without a limit.
    """
    policy = draft.moment.policy(gate.policy)
    if gate.own_limit:
        _expired(draft, gate, "nobody answered in time")
    elif policy is None or not policy.timeout_s:
        draft.emit(m.GateReminded(gate.id, escalated=False, due_at=None))
    elif policy.on_expiry is OnExpiry.DENY or gate.reminders >= policy.reminders:
        _expired(draft, gate, f"nobody answered within {policy.timeout_s:g} s")
    else:
        due_at = draft.moment.now + timedelta(seconds=policy.timeout_s)
        draft.emit(m.GateReminded(gate.id, policy.on_expiry is OnExpiry.ESCALATE, due_at))


def _expired(draft: Draft, gate: Gate, reason: str) -> None:
    no = Verdict.DENY if Verdict.DENY in ANSWERS[gate.kind] else Verdict.FAIL
    draft.emit(m.GateResolved(gate.id, no, CLOCK, reason, expired=True))
    _carry_out(draft, gate, no, CLOCK, reason, gate.content)
