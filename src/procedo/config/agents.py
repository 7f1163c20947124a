"""The tables of agents in `procedo.toml`, resolved against each other: every name that leads nowhere is a problem."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType

from procedo.config import tool_names
from procedo.config.agent_keys import AGENT, BUNDLE, PROVIDERS, RISK, WORKSPACE
from procedo.config.agent_settings import (
    AgentSettings,
    AgentTable,
    ProviderTable,
)
from procedo.config.document import Document
from procedo.config.mcp_servers import bundles, servers
from procedo.config.profiles import risk, runtime
from procedo.core.model import Json
from procedo.credentials import SecretRef, SecretSource

__all__ = ["agents"]


def agents(root: Path, document: Document, policies: Mapping[str, object], host_agent: str) -> AgentSettings:
    """Everything about agents; problems go to the document."""
    known_servers = servers(document)
    known = AgentSettings(
        agents=_table(_agent(root, document, name) for name in document.names(AGENT)),
        risks=_table(risk(root, document, name) for name in document.names(RISK)),
        runtimes=_table(runtime(document, name) for name in document.names("runtime_profiles.<profile>")),
        providers=MappingProxyType(
            {f"{p.type}.{p.alias}": p for table in PROVIDERS for p in _providers(root, document, table)}
        ),
        servers=MappingProxyType({server.name: server for server in known_servers}),
        bundles=_table(bundles(document)),
        mcp=document.value("mcp", "enabled"),
        default_runtime=runtime(document, ""),
        secret_files=tuple(_secret_files(root, document)),
    )
    _check_agents(document, known, host_agent)
    _check_bundles(document, known)
    tool_names.check(document, known)
    for name, profile in known.risks.items():
        if profile.policy is not None and profile.policy not in policies:
            place = (*_place(RISK, name), "approval_route", "policy")
            _object_to_name(document, place, f"risk profile {name!r}", "approval policy", profile.policy, policies)
    return known


def _table(items: Iterable[Json]) -> Mapping[str, Json]:
    return MappingProxyType({item.alias if isinstance(item, AgentTable) else item.name: item for item in items})


def _place(table: str, name: str) -> tuple[str, ...]:
    return (*table.split(".")[:-1], name)


def _agent(root: Path, document: Document, alias: str) -> AgentTable:
    def value(name: str) -> Json:
        return document.value(AGENT, name, alias)

    workspace = (root / document.value(WORKSPACE, "path", alias)).resolve()
    file = value("instructions_file")
    table = AgentTable(
        alias=alias,
        enabled=value("enabled"),
        kind=value("kind"),
        provider=value("model_provider") or "",
        risk=value("risk_profile") or "",
        runtime=value("runtime_profile"),
        bundles=value("mcp_bundles"),
        instructions=value("instructions") or "",
        instructions_file=None if file is None else (root / file).resolve(),
        workspace=workspace,
        writable=document.value(WORKSPACE, "access", alias) == "write",
        unrestricted=document.value(WORKSPACE, "unrestricted_filesystem", alias),
    )
    if not table.unrestricted and not workspace.is_relative_to(root):
        message = f"the workspace {workspace} of agent {alias!r} is outside of {root}"
        hint = "choose a folder of the workspace, or write unrestricted_filesystem = true"
        document.object_to((*_place(AGENT, alias), "workspace", "path"), "outside", message, hint)
    return table


def _providers(root: Path, document: Document, table: str) -> list[ProviderTable]:
    kind = table.split(".")[2]
    found = []
    for alias in document.names(table):
        if kind == "scripted":
            script = document.value(table, "script", alias)
            path = None if script is None else (root / script).resolve()
            blank = (None, None, None, "tools", 30.0, None, None)
            found.append(ProviderTable(kind, alias, "scripted", "", *blank, path))
            continue
        found.append(_provider(document, table, kind, alias))
    return found


def _provider(document: Document, table: str, kind: str, alias: str) -> ProviderTable:
    def value(name: str) -> Json:
        return document.value(table, name, alias)

    temperature = value("temperature")
    prices = (value("input_usd_per_million"), value("output_usd_per_million"))
    if (prices[0] is None) != (prices[1] is None):
        message = f"provider {kind}.{alias} gives one of two prices"
        hint = "write both input_usd_per_million and output_usd_per_million; 0 is free"
        document.object_to(_place(table, alias), "half-price", message, hint)
    return ProviderTable(
        type=kind,
        alias=alias,
        model=value("model") or "",
        endpoint=value("endpoint") or "",
        key=value("api_key"),
        temperature=None if temperature is None else float(temperature),
        max_output_tokens=value("max_output_tokens"),
        tool_mode=value("tool_mode") if kind == "openai_compatible" else "tools",
        timeout_s=float(value("timeout_secs")),
        input_usd=prices[0],
        output_usd=prices[1],
        script=None,
    )


def _check_agents(document: Document, known: AgentSettings, host_agent: str) -> None:
    for alias, agent in known.agents.items():
        place, whose = _place(AGENT, alias), f"agent {alias!r}"
        if alias.casefold() == host_agent.casefold():
            message = f"{whose} has the name under which the calling host acts, so it could never be assembled"
            document.object_to(place, "host-agent", message, "choose another name, or change [procedo] host_agent")
        if agent.kind != "local":
            message = f"{whose} is of the kind {agent.kind!r}, which is not available in this version"
            document.object_to((*place, "kind"), "unavailable-kind", message, 'write kind = "local", or leave it out')
        if agent.instructions and agent.instructions_file is not None:
            message = f"{whose} has both instructions and instructions_file"
            document.object_to((*place, "instructions_file"), "ambiguous", message, "keep one of them")
        wanted: list[tuple[str, str, str, Mapping[str, object]]] = [
            ("model_provider", "provider", agent.provider, known.providers),
            ("risk_profile", "risk profile", agent.risk, known.risks),
            ("runtime_profile", "runtime profile", agent.runtime or "", known.runtimes),
            *(("mcp_bundles", "bundle", bundle, known.bundles) for bundle in agent.bundles),
        ]
        for key, what, name, table in wanted:
            if name and name not in table:
                _object_to_name(document, (*place, key), whose, what, name, table)


def _check_bundles(document: Document, known: AgentSettings) -> None:
    for name, bundle in known.bundles.items():
        for key, names in (("servers", bundle.servers), ("exclude", bundle.exclude)):
            for server in names:
                if server not in known.servers:
                    place = (*_place(BUNDLE, name), key)
                    _object_to_name(document, place, f"bundle {name!r}", "server", server, known.servers)


def _object_to_name(
    document: Document, place: tuple[str, ...], whose: str, what: str, name: str, known: Mapping[str, object]
) -> None:
    near = get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known) or 'none'}"
    document.object_to(place, f"unknown-{what.replace(' ', '-')}", f"{whose} names the {what} {name!r}", hint)


def _secret_files(root: Path, document: Document) -> list[Path]:
    found: list[Path] = []
    for value in document.values.values():
        for one in value.values() if isinstance(value, Mapping) else (value,):
            if isinstance(one, SecretRef) and one.source is SecretSource.FILE:
                found.append((root / Path(one.name).expanduser()).resolve())
    return sorted(set(found))
