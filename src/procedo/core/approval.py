"""Who may decide at a gate, and when a gate has its answer. Pure.

The rules: a principal without identity decides nothing. By default one human decides, and never the
one who executed the run's steps. An agent decides only where a policy names it. Votes count per
person and per decided value; only members at the time of counting count.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from procedo.core.state import Gate, GateKind, Principal, PrincipalKind, Run, Verdict, Vote

__all__ = ["ANSWERS", "HUMAN", "MAX_REVISES", "OnExpiry", "Policy", "answers", "may_decide", "objection", "tally"]


class OnExpiry(StrEnum):
    """What follows when nobody answers in time. There is no approval by silence."""

    REMIND = "remind"
    ESCALATE = "escalate"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Policy:
    """Who may decide, how many of them, and how long they have.

    `members` None admits any human; otherwise bare subjects or `source:subject`. `timeout_s` 0 never
    expires. `reminders` bounds how often a gate is put again before it is denied. `agents` are
    agent subjects that may decide although they are not human. `distinct_from` names roles
    that may not decide: `executor`, `starter`. `by_token` opens the group to those whose credential
    names it; otherwise only its listed members count. `request_route` and `escalation_route` name
    the notices over which people are told about its gates.
    """

    name: str = "human"
    members: frozenset[str] | None = None
    group: str | None = None
    quorum: int = 1
    distinct_from: tuple[str, ...] = ("executor",)
    timeout_s: float = 0.0
    on_expiry: OnExpiry = OnExpiry.ESCALATE
    reminders: int = 3
    agents: frozenset[str] = frozenset()
    out_of_band: bool = False
    by_token: bool = False
    request_route: str | None = None
    escalation_route: str | None = None


HUMAN: Final = Policy()
MAX_REVISES: Final = 3
"""How often a new draft may be asked for at one gate."""

_APPROVAL: Final = (Verdict.APPROVE, Verdict.DENY, Verdict.RETRACT)
ANSWERS: Final[Mapping[GateKind, tuple[Verdict, ...]]] = {
    GateKind.APPROVAL: _APPROVAL,
    GateKind.CHECKPOINT: (*_APPROVAL, Verdict.AMEND, Verdict.REVISE),
    GateKind.TOOL_CALL: (*_APPROVAL, Verdict.AMEND),
    GateKind.INTERRUPTED: (Verdict.REPEAT, Verdict.SKIP, Verdict.FAIL),
    GateKind.VERIFY: _APPROVAL,
    GateKind.TIMEOUT: _APPROVAL,
}


def answers(gate: Gate, *, editable: bool) -> tuple[Verdict, ...]:
    """The verdicts that this gate takes now, without `retract`; `editable` tells whether a field may be amended."""
    allowed = [v for v in ANSWERS[gate.kind] if v is not Verdict.RETRACT]
    if not editable and Verdict.AMEND in allowed and gate.kind is GateKind.CHECKPOINT:
        allowed.remove(Verdict.AMEND)
    if not gate.draft or gate.revises >= MAX_REVISES:
        allowed = [v for v in allowed if v is not Verdict.REVISE]
    return tuple(allowed)


def _listed(principal: Principal, names: frozenset[str]) -> bool:
    bare = principal.identity
    wanted = {bare, f"{principal.source}:{bare}"}
    return any(name.strip().casefold() in wanted for name in names)


def _is_member(policy: Policy, principal: Principal) -> bool:
    if policy.members is None or _listed(principal, policy.members):
        return True
    return policy.by_token and policy.group in principal.groups


def objection(policy: Policy, principal: Principal, run: Run) -> str | None:
    """Why this principal may not decide under this policy, or None."""
    if not principal.identity:
        return "the caller has no identity, and only an identified person decides"
    if principal.kind is not PrincipalKind.HUMAN and not _listed(principal, policy.agents):
        return f"{principal} is not a person, and policy {policy.name!r} names no agent that may decide"
    if principal.kind is PrincipalKind.HUMAN and not _is_member(policy, principal):
        return f"{principal} is not a member of group {policy.group!r}, which policy {policy.name!r} requires"
    if "executor" in policy.distinct_from and principal.key in run.executors:
        return f"{principal} executed steps of this run, and the executor never decides"
    if "starter" in policy.distinct_from and principal.identity == run.starter.identity:
        return f"{principal} started this run, and policy {policy.name!r} asks for somebody else"
    return None


def may_decide(policy: Policy | None, gate: Gate) -> str:
    """Who may answer, in words. No policy: it is missing from the configuration, and nobody may."""
    if policy is None:
        return f"nobody: policy {gate.policy!r} is missing from the configuration"
    many = policy.quorum > 1
    whom = "persons" if many else "person"
    number = f"{policy.quorum} different {whom}" if many else f"a {whom}"
    words = f"{number} of group {policy.group!r}" if policy.members is not None else number
    if policy.agents:
        words += f", or agent {', '.join(sorted(policy.agents))}"
    barred = [f"the run's {role}" for role in policy.distinct_from]
    return f"{words} (not {' nor '.join(barred)})" if barred else words


def tally(policy: Policy, votes: tuple[Vote, ...], run: Run) -> Mapping[str, int]:
    """How many distinct people voted for each value digest; votes of those who may no longer decide lapse."""
    voters: dict[str, set[str]] = {}
    for vote in votes:
        if objection(policy, vote.principal, run) is None:
            voters.setdefault(vote.digest, set()).add(vote.identity)
    return {digest: len(people) for digest, people in voters.items()}
