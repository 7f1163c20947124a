"""Who may decide at a gate, and when a gate has its answer. Pure.

The rules: a principal without identity decides nothing. By default one human decides, and never the
one who executed the run's steps. An agent decides only where a policy names it. Votes count per
person and per decided value; only members at the time of counting count.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct

from procedo.core.state import Gate, GateKind, Principal, PrincipalKind, Run, Source, Verdict, Vote

__all__ = [
    "ANSWERS",
    "HUMAN",
    "MAX_REVISES",
    "OnExpiry",
    "Policy",
    "answers",
    "deciders",
    "glass_objection",
    "may_decide",
    "objection",
    "repeated",
    "tally",
    "when_due",
]


class OnExpiry(StrEnum):
    """What follows when nobody answers in time. There is no approval by silence."""

    REMIND = "remind"
    ESCALATE = "escalate"
    DENY = "deny"


class Policy(Struct, frozen=True):
    """Who may decide, how many of them, and how long they have.

    `members` None admits any human; otherwise bare subjects or `source:subject`. `timeout_s` 0 never
    expires. `reminders` bounds how often a gate is put again before it is denied. `agents` are
    agent subjects that may decide although they are not human. `distinct_from` names roles
    that may not decide: `executor`, `starter`, or `delegation`: both, and whoever acted in the runs that this
    one came from. `out_of_band` wants the decision at another door than the calling host. `by_token` opens the
    group to those whose credential names it; otherwise only its listed members count. `request_route` and
    `escalation_route` name the notices over which people are told about its gates. With `auto_approve` a gate
    before a step or at a checkpoint is approved as it opens, where the step names this policy.
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
    auto_approve: bool = False


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
    if policy.out_of_band and principal.source in (Source.HOST, Source.HTTP):
        return f"policy {policy.name!r} wants this decided away from the calling host"
    return _role_objection(policy, principal, run)


def _role_objection(policy: Policy, principal: Principal, run: Run) -> str | None:
    if "executor" in policy.distinct_from and _executed(principal, run):
        return f"{principal} executed steps of this run, and the executor never decides"
    if "starter" in policy.distinct_from and principal.identity == run.starter.identity:
        return f"{principal} started this run, and policy {policy.name!r} asks for somebody else"
    if "delegation" in policy.distinct_from and principal.identity in _delegation(run):
        return f"{principal} is in this run's delegation chain, and policy {policy.name!r} asks for somebody outside"
    return None


def _executed(principal: Principal, run: Run) -> bool:
    """True when this very principal executed steps, at whatever door."""
    mine = (principal.kind.value, principal.identity)
    return any(
        (kind, identity) == mine for kind, _, identity in (key.split(":", 2) for key in _executors(run) if ":" in key)
    )


def _executors(run: Run) -> frozenset[str]:
    """A run that takes up a failed one has the outputs of those who executed there."""
    return run.executors if run.retry_of is None else run.executors | run.lineage


def _delegation(run: Run) -> frozenset[str]:
    """The identities of everybody, at whatever door, who had a hand in this run or in those that it came from."""
    keys = run.executors | run.lineage | {run.starter.key}
    return frozenset(key.split(":", 2)[2] for key in keys)


def glass_objection(names: frozenset[str], principal: Principal, reason: str) -> str | None:
    """Why this principal may not break the glass, or None: it takes a named person away from the host, and a reason."""
    if principal.kind is not PrincipalKind.HUMAN or not principal.identity or principal.source is Source.HOST:
        return f"{principal} is no person at a terminal or with a token, and only such a person breaks the glass"
    if not _listed(principal, names):
        return f"{principal} is not one of those who may break the glass ([sop.approval] break_glass)"
    return None if reason.strip() else "breaking the glass takes a reason, which is kept"


def may_decide(policy: Policy | None, gate: Gate) -> str:
    """Who may answer, in words. No policy: it is missing from the configuration, and nobody may."""
    if not gate.live:
        return "nobody: nothing is left to decide"
    if policy is None:
        return f"nobody: policy {gate.policy!r} is missing from the configuration"
    return deciders(policy)


def deciders(policy: Policy) -> str:
    """Whom a policy lets decide, in words."""
    many = policy.quorum > 1
    whom = "persons" if many else "person"
    number = f"{policy.quorum} different {whom}" if many else f"a {whom}"
    words = f"{number} of group {policy.group!r}" if policy.members is not None else number
    if policy.agents:
        words += f", or agent {', '.join(sorted(policy.agents))}"
    barred = [f"the run's {role}" for role in policy.distinct_from]
    return f"{words} (not {' nor '.join(barred)})" if barred else words


def when_due(policy: Policy | None, gate: Gate) -> str:
    """What follows at the gate's deadline when nobody has answered, in words."""
    again = policy is None or not policy.timeout_s
    if again and not gate.own_limit:
        return "it is put again"
    if gate.own_limit or policy is None or policy.on_expiry is OnExpiry.DENY or gate.reminders >= policy.reminders:
        return "it is denied" if Verdict.DENY in ANSWERS[gate.kind] else "the step fails"
    return "it is escalated" if policy.on_expiry is OnExpiry.ESCALATE else "it is put again"


def repeated(policy: Policy | None, gate: Gate, by: Principal, run: Run) -> str:
    """What to say of an answer that was given before and changed nothing."""
    own = next((vote for vote in gate.votes if vote.identity == by.identity), None)
    if not gate.open or policy is None or own is None:
        return f"already answered {gate.verdict} by {gate.decided_by}"
    count = tally(policy, gate.votes, run).get(own.digest, 0)
    return f"your answer {own.verdict} is counted already, {count} of {policy.quorum}"


def tally(policy: Policy, votes: tuple[Vote, ...], run: Run) -> Mapping[str, int]:
    """How many distinct people voted for each value digest; votes of those who may no longer decide lapse."""
    voters: dict[str, set[str]] = {}
    for vote in votes:
        if objection(policy, vote.principal, run) is None:
            voters.setdefault(vote.digest, set()).add(vote.identity)
    return {digest: len(people) for digest, people in voters.items()}
