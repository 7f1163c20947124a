"""Which tools a contract holds: agent ∩ every scope of the ceiling ∩ step scope, each named once. Pure.

What is left out narrows; what is named and cannot be is a reason to refuse. Nothing here can add a tool.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from procedo.agents.identity import admits, matches, named, offered_name, schema_digest, usable_name
from procedo.agents.parts import Effect, FilterGroup, Origin, SecurityPolicy, Tool, ToolId
from procedo.agents.ports import Ceiling
from procedo.agents.refusal import Cause, Reason
from procedo.agents.tools.catalogue import built_in
from procedo.agents.toolschema import compile_tool_schema
from procedo.config.agent_settings import RiskTable, ServerTable
from procedo.config.tool_names import BUILT_IN, EVERYTHING, objection
from procedo.core.model import Json, Scope

__all__ = ["Authority", "ServerTool", "candidates", "chosen"]


class ServerTool(Struct, frozen=True):
    """A tool as a server listed it."""

    name: str
    description: str
    input_schema: Json


class Authority(Struct, frozen=True):
    """Everything that narrows: the agent's profile, the caller's ceiling, the step's scope, the filter groups."""

    risk: RiskTable
    ceiling: Ceiling
    scope: Scope
    groups: tuple[FilterGroup, ...]
    told: str

    def owns(self, identity: ToolId) -> bool:
        """True when the agent's own profile grants the tool."""
        return named(self.risk.allowed_tools, identity) and not named(self.risk.excluded_tools, identity)

    def admits(self, identity: ToolId) -> bool:
        """True when nothing takes the tool away."""
        if not self.owns(identity) or not admits(self.scope, identity):
            return False
        if not all(admits(scope, identity) for scope in self.ceiling.scopes):
            return False
        return identity.origin is not Origin.MCP or self._passes(offered_name(identity.server, identity.name))

    def _passes(self, offered: str) -> bool:
        if not self.groups:
            return True
        told = self.told.casefold()
        for group in self.groups:
            on = group.mode == "always" or any(word.casefold() in told for word in group.keywords)
            if on and any(_fits(pattern, offered) for pattern in group.tools):
                return True
        return False


def _fits(pattern: str, offered: str) -> bool:
    before, star, after = pattern.partition("*")
    if not star:
        return pattern == offered
    return len(offered) >= len(before) + len(after) and offered.startswith(before) and offered.endswith(after)


def candidates(
    security: SecurityPolicy,
    listed: Mapping[str, Sequence[ServerTool]],
    tables: Mapping[str, ServerTable],
    exempt: tuple[str, ...],
) -> tuple[Tool, ...]:
    """Every tool that there is for an agent with these servers, before anything is taken away."""
    found = [built_in(name, security, repeats=name in exempt) for name in BUILT_IN]
    for server, tools in listed.items():
        found += [_of_server(tables[server], tool, exempt) for tool in tools]
    return tuple(found)


def _of_server(table: ServerTable, tool: ServerTool, exempt: tuple[str, ...]) -> Tool:
    effect = Effect.ACTING
    if tool.name in table.read_only:
        effect = Effect.READ_ONLY
    elif tool.name in table.idempotent:
        effect = Effect.IDEMPOTENT
    digest = schema_digest(tool.name, tool.description, tool.input_schema)
    identity = ToolId(Origin.MCP, table.name, tool.name, digest)
    return Tool(
        id=identity,
        offered=offered_name(table.name, tool.name),
        description=tool.description,
        input_schema=tool.input_schema,
        effect=effect,
        time_limit_s=table.tool_timeout_s,
        repeats=named(exempt, identity),
    )


def chosen(
    authority: Authority,
    available: tuple[Tool, ...],
    security: SecurityPolicy,
    absent: Mapping[str, bool],
    servers: Iterable[str],
) -> tuple[tuple[Tool, ...], list[Reason]]:
    """The tools of the contract, by name, and the reasons to refuse.

    `absent` holds the servers in scope that could not be listed; `servers` are all that are configured.
    """
    reasons = _unknown(authority, available, absent, tuple(servers))
    kept: list[Tool] = []
    for tool in available:
        if not authority.admits(tool.id):
            continue
        if (why := _unusable(tool, security)) is None:
            kept.append(tool)
        elif tool.id.origin is not Origin.BUILT_IN or tool.id.name in authority.risk.allowed_tools:
            # Named by itself it was wanted; under "*" it is merely not there.
            reasons.append(why)
    reasons += _collisions(kept)
    return tuple(sorted(kept, key=lambda tool: tool.offered)), reasons


def _unusable(tool: Tool, security: SecurityPolicy) -> Reason | None:
    hint = ""
    if tool.id.origin is Origin.BUILT_IN:
        why = None
        if tool.id.name == "shell" and not security.commands:
            why, hint = "no command is allowed", "list them in allowed_commands"
        elif tool.id.name == "http_request" and not security.hosts:
            why, hint = "no host is allowed", "list them in allowed_hosts"
        elif tool.id.name in {"file_write", "file_edit"} and not any(root.writable for root in security.roots):
            why, hint = "nothing may be written", "change the level or workspace.access, or leave the tool out"
        return None if why is None else Reason(Cause.TOOL_UNUSABLE, f"{tool.id.name} can do nothing: {why}", hint)
    if not usable_name(tool.offered):
        message = f"{tool.offered!r} is no name that providers take"
        return Reason(Cause.TOOL_UNUSABLE, message, "letters, digits, _ and -, at most 64; exclude the tool")
    try:
        compile_tool_schema(tool.input_schema)
    except ValueError as error:
        return Reason(
            Cause.TOOL_UNUSABLE, f"the schema of {tool.offered!r} cannot be used: {error}", "exclude the tool"
        )
    return None


def _collisions(tools: Iterable[Tool]) -> list[Reason]:
    known: dict[str, Tool] = {}
    reasons: list[Reason] = []
    for tool in tools:
        other = known.setdefault(tool.offered.casefold(), tool)
        if other is not tool:
            message = f"two tools are called {tool.offered!r}: {other.id.key} and {tool.id.key}"
            reasons.append(Reason(Cause.TOOL_COLLISION, message, "exclude one of them"))
    return reasons


def _unknown(
    authority: Authority, available: tuple[Tool, ...], absent: Mapping[str, bool], servers: tuple[str, ...]
) -> list[Reason]:
    """Names that lead nowhere: a misspelt name in a list that denies would deny nothing."""
    reasons: list[Reason] = []
    risk = authority.risk
    own = {
        "allowed_tools": risk.allowed_tools,
        "excluded_tools": risk.excluded_tools,
        "always_ask": risk.always_ask,
    }
    in_scope = {tool.id.server for tool in available if tool.id.server} | set(absent)
    for where, entries in own.items():
        for entry in entries:
            if entry in EVERYTHING or any(matches(entry, tool.id) for tool in available):
                continue
            server = entry.partition("__")[0]
            if server in absent or (server not in in_scope and where != "allowed_tools"):
                continue
            reasons.append(_no_tool(f"{where} of risk profile {risk.name!r}", entry, in_scope))
    scopes = [("the step's scope", authority.scope), *(("the caller's ceiling", s) for s in authority.ceiling.scopes)]
    for where, scope in scopes:
        for entry in (*(scope.allow or ()), *scope.deny):
            if objection(entry, servers, everything=True) is not None:
                reasons.append(_no_tool(where, entry, in_scope))
    return list(dict.fromkeys(reasons))


def _no_tool(where: str, entry: str, servers: Iterable[str]) -> Reason:
    told = ", ".join(sorted(servers)) or "none"
    return Reason(
        Cause.UNKNOWN_TOOL, f"{where} names {entry!r}, and there is no such tool", f"servers in scope: {told}"
    )
