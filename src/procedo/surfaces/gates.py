"""How an open gate is shown: what is asked, about what, who may answer, how, and where."""

from collections.abc import Iterable

from procedo.core.altered import altered
from procedo.core.approval import Policy, answers, may_decide, objection, tally, when_due
from procedo.core.model import Sop
from procedo.core.notice import Telling
from procedo.core.state import Gate, GateKind, PrincipalKind, Run
from procedo.runs import Surface
from procedo.surfaces import links
from procedo.surfaces.redaction import masked, masked_text
from procedo.surfaces.shapes import GateView, VoteView
from procedo.surfaces.text import stamp

__all__ = ["failed_notices", "gate_view", "may_ask_here", "may_decide", "what_is_asked"]


def what_is_asked(gate: Gate) -> str:
    """The question as it is shown to whoever answers it."""
    return masked_text(gate.prompt)


def may_ask_here(policy: Policy | None, run: Run, surface: Surface) -> bool:
    """True when the person at this door can be asked, and would be allowed to answer."""
    if not surface.can_ask or policy is None or policy.out_of_band:
        return False
    person = altered(surface.principal, kind=PrincipalKind.HUMAN)
    return objection(policy, person, run) is None


def _votes(policy: Policy | None, gate: Gate, run: Run) -> list[VoteView]:
    if policy is None or not gate.votes:
        return []
    words = {vote.digest: str(vote.verdict) for vote in gate.votes}
    counts = tally(policy, gate.votes, run)
    return [{"answer": words[digest], "count": count, "of": policy.quorum} for digest, count in counts.items()]


def failed_notices(tellings: Iterable[Telling], gate: Gate) -> list[str]:
    """The notices about a gate that did not get through so far, in words."""
    return [
        f"notice {one.route!r} failed: {one.error} ({one.attempts} {'attempt' if one.attempts == 1 else 'attempts'}"
        + (", given up)" if one.given_up else ", tried again)")
        for one in tellings
        if one.gate_id == gate.id and one.error
    ]


def gate_view(
    gate: Gate, sop: Sop, run: Run, policy: Policy | None, limit: int, tellings: Iterable[Telling] = ()
) -> GateView:
    """An open gate; what is being approved is cut at `limit` characters."""
    step = sop.by_number[gate.step]
    view: GateView = {
        "gate_id": gate.id,
        "code": gate.code,
        "kind": gate.kind,
        "step": step.number,
        "title": step.title,
        "asks": what_is_asked(gate),
        "content": links.cut(masked(gate.content), limit, links.gate(run.id, gate.code)),
        "answers": [str(verdict) for verdict in answers(gate, editable=step.edit is not None)],
        "may_decide": may_decide(policy, gate),
        "since": stamp(gate.waiting_since),
        "revision": gate.revision,
    }
    if gate.named_policy is not None:
        view["policy"] = gate.named_policy
    if gate.due_at is not None:
        view["due_at"] = stamp(gate.due_at)
        view["when_due"] = when_due(policy, gate)
    if step.edit is not None and gate.kind is GateKind.CHECKPOINT:
        view["amends"] = step.edit
    if votes := _votes(policy, gate, run):
        view["votes"] = votes
    if failed := failed_notices(tellings, gate):
        view["notices_failed"] = failed
    return view
