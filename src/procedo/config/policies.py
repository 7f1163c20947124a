"""Groups and approval policies of `procedo.toml`, resolved against each other.

A policy that nobody could ever satisfy is a problem here, not a surprise at the gate.
"""

from collections.abc import Mapping
from difflib import get_close_matches

from procedo.config.document import Document
from procedo.config.notices import check_route
from procedo.core.approval import HUMAN, Policy

__all__ = ["default_policy", "policies"]

_GROUP = "sop.approval.groups.<group>"
_POLICY = "sop.approval.policies.<policy>"


def _people(members: frozenset[str]) -> frozenset[str]:
    """One person is one, whatever the door and the letter case."""
    return frozenset(member.rpartition(":")[2].strip().casefold() for member in members)


def policies(document: Document) -> Mapping[str, Policy]:
    """Every policy by name, the built-in one included. Problems go to the document."""
    groups = {name: frozenset[str](document.value(_GROUP, "members", name)) for name in document.names(_GROUP)}
    routes = {name: check_route(document, _GROUP, "request_route", name) for name in groups}
    known = {HUMAN.name: HUMAN}
    for name in document.names(_POLICY):
        if name == HUMAN.name:
            hint = "choose another name and make it the default with [sop.approval] default_policy"
            document.object_to(_place(name), "reserved-name", f"the policy {name!r} is built in", hint)
            continue
        known[name] = _policy(document, name, groups, routes)
    return known


def default_policy(document: Document, known: Mapping[str, Policy]) -> Policy:
    """The policy of gates that name none. An unknown name is a problem."""
    name = document.value("sop.approval", "default_policy")
    if name in known:
        if known[name].auto_approve:
            message = f"default_policy names {name!r}, which approves by itself: no gate would stop anybody"
            hint = "approving by itself goes by name only: name the policy at the steps that it is for"
            document.object_to(("sop", "approval", "default_policy"), "auto-approve-default", message, hint)
        if known[name].agents:
            message = f"default_policy names {name!r}, by which an agent decides: any gate could be passed by a model"
            hint = "agents decide by name only: name the policy at the steps that it is for"
            document.object_to(("sop", "approval", "default_policy"), "agents-default", message, hint)
        return known[name]
    message = f"default_policy names the policy {name!r}, which does not exist"
    document.object_to(("sop", "approval", "default_policy"), "unknown-policy", message, _meant(name, known))
    return HUMAN


def _place(name: str, *key: str) -> tuple[str, ...]:
    return ("sop", "approval", "policies", name, *key)


def _meant(name: str, known: Mapping[str, object]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known) or 'none'}"


def _policy(
    document: Document, name: str, groups: Mapping[str, frozenset[str]], routes: Mapping[str, str | None]
) -> Policy:
    group = document.value(_POLICY, "required_group", name)
    if group is not None and group not in groups:
        message = f"policy {name!r} requires the group {group!r}, which does not exist"
        hint = f"{_meant(group, groups)} A group is declared as [sop.approval.groups.{group}] with members"
        document.object_to(_place(name, "required_group"), "unknown-group", message, hint)
    policy = Policy(
        name=name,
        members=None if group is None else groups.get(group, frozenset()),
        group=group,
        quorum=max(1, document.value(_POLICY, "quorum", name)),
        distinct_from=document.value(_POLICY, "distinct_from", name),
        timeout_s=document.value(_POLICY, "timeout", name),
        on_expiry=document.value(_POLICY, "on_timeout", name),
        reminders=document.value(_POLICY, "max_reminders", name),
        agents=frozenset(document.value(_POLICY, "agents", name)),
        out_of_band=document.value(_POLICY, "out_of_band", name),
        auto_approve=document.value(_POLICY, "auto_approve", name),
        by_token=group in groups and document.value(_GROUP, "by_token", group),
        request_route=check_route(document, _POLICY, "request_route", name) or routes.get(group or ""),
        escalation_route=check_route(document, _POLICY, "escalation_route", name),
    )
    broken = document.broke(_GROUP, "members", str(group)) or document.broke(_POLICY, "agents", name)
    if not broken and (group is None or group in groups):
        _object_to_unsatisfiable(document, policy)
    _object_to_idle_keys(document, policy)
    return policy


def _object_to_unsatisfiable(document: Document, policy: Policy) -> None:
    if policy.members is None or policy.by_token or document.value("sop.approval", "break_glass"):
        # With somebody who may break the glass there is a way past it; `check` still tells it.
        return
    people = _people(policy.members | policy.agents)
    if len(people) >= policy.quorum:
        return
    message = (
        f"policy {policy.name!r} is unsatisfiable: its quorum is {policy.quorum}, and "
        f"{len(people)} may decide (group {policy.group!r}: {', '.join(sorted(people)) or 'nobody'})"
    )
    hint = (
        "lower the quorum or add members, one person at two doors is one; or name in [sop.approval] break_glass who "
        "may decide alone in an emergency"
    )
    document.object_to(_place(policy.name, "quorum"), "unsatisfiable-policy", message, hint)


def _object_to_idle_keys(document: Document, policy: Policy) -> None:
    if policy.timeout_s or document.broke(_POLICY, "timeout", policy.name):
        return
    for key in ("on_timeout", "max_reminders"):
        if document.stated(_POLICY, key, policy.name):
            message = f"{key} of policy {policy.name!r} has no effect, for its gates never time out"
            document.object_to(_place(policy.name, key), "idle-key", message, 'add timeout = "2h", or leave it out')
