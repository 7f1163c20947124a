"""What `procedo.toml` says about agents, as it stands there: frozen tables, not yet a contract."""

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias

from msgspec import Struct, field

from procedo.credentials import SecretRef
from procedo.hosts import HostPattern

__all__ = [
    "NO_AGENTS",
    "AgentSettings",
    "AgentTable",
    "BundleTable",
    "FilterTable",
    "ProviderTable",
    "RiskTable",
    "RuntimeTable",
    "ServerTable",
]

Words: TypeAlias = str | SecretRef


class AgentTable(Struct, frozen=True):
    """`[agents.<agent>]`. `provider` is "type.alias"; `runtime` None: the default limits."""

    alias: str
    enabled: bool
    kind: str
    provider: str
    risk: str
    runtime: str | None
    bundles: tuple[str, ...]
    instructions: str
    instructions_file: Path | None
    workspace: Path
    writable: bool
    unrestricted: bool


class RiskTable(Struct, frozen=True):
    """`[risk_profiles.<profile>]`. Paths are absolute; `sandbox` is "bubblewrap" or "none"."""

    name: str
    level: str
    allowed_tools: tuple[str, ...]
    excluded_tools: tuple[str, ...]
    auto_approve: tuple[str, ...]
    always_ask: tuple[str, ...]
    allowed_commands: tuple[str, ...]
    allowed_hosts: tuple[HostPattern, ...]
    forbidden_paths: tuple[Path, ...]
    allowed_roots: tuple[Path, ...]
    workspace_only: bool
    block_high_risk: bool
    ask_medium_risk: bool
    environment: tuple[str, ...]
    sandbox: str
    policy: str | None
    ask_timeout_s: float


class FilterTable(Struct, frozen=True):
    """One of `[[runtime_profiles.<profile>.tool_filter_groups]]`."""

    mode: str
    tools: tuple[str, ...]
    keywords: tuple[str, ...]


class RuntimeTable(Struct, frozen=True):
    """`[runtime_profiles.<profile>]`. None sets no limit; money is in USD."""

    name: str
    iterations: int
    actions_per_hour: int | None
    cost_usd_per_day: Decimal | None
    cost_usd_per_step: Decimal | None
    cost_usd_per_run: Decimal | None
    tokens_per_run: int | None
    tokens_per_step: int | None
    shell_timeout_s: float
    wall_time_s: float
    depth: int
    history_messages: int
    context_tokens: int
    system_prompt_chars: int | None
    result_chars: int
    parallel_calls: int
    dedup_exempt: tuple[str, ...]
    output_retries: int
    on_interrupted: str
    groups: tuple[FilterTable, ...]


class ProviderTable(Struct, frozen=True):
    """`[providers.models.<type>.<alias>]`. None: not set, and then not sent. Prices are USD per million tokens."""

    type: str
    alias: str
    model: str
    endpoint: str
    key: SecretRef | None
    temperature: float | None
    max_output_tokens: int | None
    tool_mode: str
    timeout_s: float
    input_usd: Decimal | None
    output_usd: Decimal | None
    script: Path | None


class ServerTable(Struct, frozen=True):
    """One of `[[mcp.servers]]`. `command` is for stdio, `url` for http."""

    name: str
    transport: str
    command: str
    args: tuple[str, ...]
    env: Mapping[str, Words]
    url: str
    headers: Mapping[str, Words]
    required: bool
    connect_timeout_s: float
    tool_timeout_s: float
    read_only: tuple[str, ...]
    idempotent: tuple[str, ...]


class BundleTable(Struct, frozen=True):
    """`[mcp_bundles.<bundle>]`."""

    name: str
    servers: tuple[str, ...]
    exclude: tuple[str, ...]


class AgentSettings(Struct, frozen=True):
    """All of it, by name. `mcp` False: no agent has a server. `default_runtime` is for agents that name no profile."""

    agents: Mapping[str, AgentTable]
    risks: Mapping[str, RiskTable]
    runtimes: Mapping[str, RuntimeTable]
    providers: Mapping[str, ProviderTable]
    servers: Mapping[str, ServerTable]
    bundles: Mapping[str, BundleTable]
    mcp: bool
    default_runtime: RuntimeTable
    secret_files: tuple[Path, ...] = field(default=())


NO_AGENTS: Final = AgentSettings(
    agents=MappingProxyType({}),
    risks=MappingProxyType({}),
    runtimes=MappingProxyType({}),
    providers=MappingProxyType({}),
    servers=MappingProxyType({}),
    bundles=MappingProxyType({}),
    mcp=True,
    default_runtime=RuntimeTable(
        "", 10, 20, None, None, None, None, None, 60.0, 300.0, 3, 50, 32_000, None, 50_000, 1, (), 2, "gate", ()
    ),
)
"""A workspace that declares none."""
