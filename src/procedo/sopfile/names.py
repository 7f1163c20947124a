"""Checks the names that a definition uses against the workspace: agents, tools, policies, capabilities, procedures."""

import fnmatch
from collections.abc import Iterable

from procedo.core.approval import Policy
from procedo.core.bindings import BindingError, references
from procedo.core.model import Json, Kind, Step
from procedo.jsonschemas import compile_schema
from procedo.ports import Capabilities, Capability
from procedo.sopfile.checked import Checked
from procedo.sopfile.problems import nearest
from procedo.sopfile.surroundings import Surroundings

__all__ = ["check_names"]


def check_names(one: Checked, around: Surroundings) -> None:
    """Tell every name that the workspace does not have, or that cannot be used there."""
    if one.sop.agent is not None and one.sop.agent not in around.agents:
        _unknown(
            one, "unknown-agent", f"there is no agent {one.sop.agent!r}", one.sop.agent, around.agents, field="agent"
        )
    told: set[str] = set()
    for step in one.sop.steps:
        if step.agent is not None and step.agent not in around.agents:
            _unknown(
                one, "unknown-agent", f"there is no agent {step.agent!r}", step.agent, around.agents, step, "agent"
            )
        if step.policy is not None:
            _policy(one, around, step, step.policy, told)
        if step.sub_sop is not None and around.sops is not None and step.sub_sop not in around.sops:
            message = f"there is no procedure {step.sub_sop!r}"
            _unknown(one, "unknown-sop", message, step.sub_sop, around.sops, step, "sop")
        _tools(one, around.tools, step)
        if around.capabilities is not None:
            _capabilities(one, around.capabilities, step)


def _unknown(
    one: Checked, code: str, message: str, name: str, known: Iterable[str], step: Step | None = None, field: str = ""
) -> None:
    names = sorted(known)
    near = nearest(name, names)
    hint = f"did you mean {near}?" if near else f"known are: {', '.join(names) or 'none'}"
    one.tell(code, message, hint, step, field)


# --- policies ------------------------------------------------------------------------------------


def _policy(one: Checked, around: Surroundings, step: Step, name: str, told: set[str]) -> None:
    policy = around.policies.get(name)
    if policy is None:
        _unknown(one, "unknown-policy", f"there is no approval policy {name!r}", name, around.policies, step, "policy")
    elif name not in told and (why := _unsatisfiable(policy)):
        told.add(name)
        message = f"policy {name!r} can never be satisfied: {why}"
        hint = "add members to its group, or ask for fewer in procedo.toml"
        if around.break_glass:
            people = ", ".join(sorted(around.break_glass))
            way = f"{hint}; until then only {people} can decide: procedo approve GATE --break-glass --comment WHY"
            one.tell("break-glass-policy", message, way, step, "policy")
        else:
            way = f"{hint}; or name in [sop.approval] break_glass who may decide alone (procedo approve --break-glass)"
            one.tell("unsatisfiable-policy", message, way, step, "policy")
    elif name not in told and policy.auto_approve:
        told.add(name)
        message = f"policy {name!r} approves by itself, so this gate stops nobody"
        one.tell("auto-approve", message, "name another policy where a person has to decide", step, "policy")


def _unsatisfiable(policy: Policy) -> str:
    if policy.members is None or policy.by_token or policy.auto_approve:
        return ""
    people = {name.strip().casefold().rpartition(":")[2] for name in policy.members | policy.agents}
    people.discard("")
    if not people:
        return f"group {policy.group!r} has no members"
    if len(people) < policy.quorum:
        return f"it asks for {policy.quorum} people, and group {policy.group!r} has {len(people)}"
    return ""


# --- tools ---------------------------------------------------------------------------------------


def _tools(one: Checked, tools: frozenset[str] | None, step: Step) -> None:
    called = tuple(call["tool"] for call in step.calls if isinstance(call, dict))
    if tools is not None:
        _known_tools(one, tools, step, called)
    for name in called:
        if name in step.scope.deny or (step.scope.allow is not None and not _listed(name, step.scope.allow)):
            hint = "allow the tool in the step's scope, or remove the call"
            one.tell(
                "call-denied", f"the step plans a call of {name!r}, which its scope does not allow", hint, step, "calls"
            )


def _known_tools(one: Checked, tools: frozenset[str], step: Step, called: tuple[str, ...]) -> None:
    allowed = step.scope.allow or ()
    lists = (
        ("suggested_tools", step.tools, "no agent has the tool"),
        ("scope.allow", allowed if "scope.allow" in one.written(step).fields else (), "no agent has the tool"),
        ("scope.deny", step.scope.deny, "it denies nothing: no agent has the tool"),
        ("calls", called, "no agent has the tool"),
    )
    for field, names, why in lists:
        for name in names:
            if not _listed(name, tools) and not fnmatch.filter(tools, name):
                _unknown(one, "unknown-tool", f"{why} {name!r}", name, tools, step, field)


def _listed(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


# --- capabilities --------------------------------------------------------------------------------


def _capabilities(one: Checked, capabilities: Capabilities, step: Step) -> None:
    if step.kind is Kind.CAPABILITY and step.capability is not None:
        found = _capability(one, capabilities, step, step.capability, "capability")
        if found is not None and step.has_arguments:
            _arguments(one, found, step.arguments, step, "with")
    if step.verify is not None and step.verify.capability is not None:
        found = _capability(one, capabilities, step, step.verify.capability, "verify")
        if found is not None and step.verify.arguments is not None:
            _arguments(one, found, step.verify.arguments, step, "verify", given=("output",))


def _capability(one: Checked, known: Capabilities, step: Step, name: str, field: str) -> Capability | None:
    found = known.get(name)
    if found is None:
        names = [capability.id for capability in known.all()]
        _unknown(one, "unknown-capability", f"there is no capability {name!r}", name, names, step, field)
    elif found.objection is not None:
        one.tell("capability-off", f"capability {name!r} cannot be used: {found.objection}", "", step, field)
    return found


def _arguments(
    one: Checked, capability: Capability, value: Json, step: Step, field: str, given: tuple[str, ...] = ("input",)
) -> None:
    """Authored arguments without bindings can be judged now; `given` are those that the run adds."""
    try:
        if references(value):
            return
    except BindingError:
        return  # told already
    for violation in compile_schema(capability.input_schema).violations(value):
        if violation.path.split(".")[0] not in given:
            message = f"{field!r} does not fit capability {capability.id!r}: {violation}"
            one.tell("bad-arguments", message, capability.description, step, field)
