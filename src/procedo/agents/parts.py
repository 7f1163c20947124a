"""The parts of a contract: frozen, complete, and free of anything secret.

No part has a default. What is absent is written as an explicit denial: an empty tuple, `NO_SERVERS`,
`False`, a limit of nothing. The one exception is a value whose absence means something by itself, and
that is said where it stands (`temperature` None: the key is not sent).
"""

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct

from procedo.core.model import Json
from procedo.credentials import SecretRef
from procedo.hosts import HostPattern

__all__ = [
    "NO_SERVERS",
    "Actor",
    "ApprovalManager",
    "Effect",
    "FilterGroup",
    "Level",
    "McpScope",
    "OnInterrupted",
    "Origin",
    "Pin",
    "Prices",
    "ProviderBinding",
    "Root",
    "RuntimeControls",
    "Sandbox",
    "SecurityPolicy",
    "ServerBinding",
    "Tool",
    "ToolId",
    "ToolMode",
    "TranscriptSeed",
    "Transport",
    "Words",
]

Words: TypeAlias = str | SecretRef
"""A value of an environment or a header: plain text, or where the secret lies."""


class Origin(StrEnum):
    """Where a tool comes from."""

    BUILT_IN = "built_in"
    MCP = "mcp"


class Effect(StrEnum):
    """What our own registry declares of a tool; what a server says about itself is a claim and decides nothing."""

    READ_ONLY = "read_only"
    IDEMPOTENT = "idempotent"
    ACTING = "acting"

    @property
    def repeatable(self) -> bool:
        """True when an interrupted call may be repeated without asking."""
        return self is not Effect.ACTING


class ToolId(Struct, frozen=True):
    """What a tool *is*. Policy, approval, scope, dedup and audit key on this, never on the offered name.

    `server` is empty unless the origin is MCP; `schema` is the digest of name, description and input schema.
    """

    origin: Origin
    server: str
    name: str
    schema: str

    @property
    def key(self) -> str:
        """The same tool whatever its schema is at the moment: `built_in:file_read`, `mcp:github/search`."""
        return f"{self.origin}:{self.server}/{self.name}" if self.server else f"{self.origin}:{self.name}"


class Tool(Struct, frozen=True):
    """A tool as it is offered to the model. `repeats` exempts it from dedup (a clock, a poll)."""

    id: ToolId
    offered: str
    description: str
    input_schema: Json
    effect: Effect
    time_limit_s: float
    repeats: bool


class Level(StrEnum):
    """How much an agent may do by itself."""

    READONLY = "readonly"
    SUPERVISED = "supervised"
    FULL = "full"


class Sandbox(StrEnum):
    """What encloses the programs that an agent starts. `none` has to be written."""

    BUBBLEWRAP = "bubblewrap"
    NONE = "none"


class Root(Struct, frozen=True):
    """A folder that the agent's file tools reach, and whether they may change what is in it."""

    path: Path
    writable: bool


class SecurityPolicy(Struct, frozen=True):
    """What the agent's built-in tools may touch. The first root is where its programs start.

    `forbidden` paths are neither read nor written, `protected` ones are never written; both win over
    roots. `commands` are programs, `hosts` the network allowlist, `environment` the variables that are
    passed on. `actions_per_hour` None sets no budget; the count is kept by the store, for each agent.
    """

    level: Level
    roots: tuple[Root, ...]
    forbidden: tuple[Path, ...]
    protected: tuple[Path, ...]
    commands: tuple[str, ...]
    block_high_risk: bool
    ask_medium_risk: bool
    hosts: tuple[HostPattern, ...]
    environment: tuple[str, ...]
    sandbox: Sandbox
    shell_timeout_s: float
    http_timeout_s: float
    max_bytes: int
    actions_per_hour: int | None


class Transport(StrEnum):
    """How an MCP server is reached."""

    STDIO = "stdio"
    HTTP = "http"


class Pin(Struct, frozen=True):
    """A tool of a server as it was at assembly; another digest on a later connection ends its use."""

    name: str
    digest: str


class ServerBinding(Struct, frozen=True):
    """One MCP server in scope. `env` and `headers` are exactly what it gets; `pins` are the tools that are offered."""

    name: str
    transport: Transport
    command: str
    args: tuple[str, ...]
    env: Mapping[str, Words]
    url: str
    headers: Mapping[str, Words]
    required: bool
    connect_timeout_s: float
    tool_timeout_s: float
    pins: tuple[Pin, ...]


class McpScope(Struct, frozen=True):
    """The servers in scope and those that a bundle excludes."""

    servers: tuple[ServerBinding, ...]
    excluded: tuple[str, ...]


NO_SERVERS: Final = McpScope((), ())


class ToolMode(StrEnum):
    """How a model is told about tools: by its own tool calls, or by a schema for its answer."""

    TOOLS = "tools"
    SCHEMA = "schema"


class Prices(Struct, frozen=True):
    """What the operator says a model costs, in USD per million tokens."""

    input_usd: Decimal
    output_usd: Decimal


class ProviderBinding(Struct, frozen=True):
    """The model and how it is reached. `endpoint` empty: the vendor's own.

    `credential` None: the endpoint wants none. `temperature` and `max_output_tokens` None: the key is
    not sent. `prices` None: looked up by provider and model, and unknown when they are not listed.
    `script` and `script_digest` are set for the type `scripted` alone, which is no model.
    """

    type: str
    alias: str
    model: str
    endpoint: str
    credential: SecretRef | None
    temperature: float | None
    max_output_tokens: int | None
    tool_mode: ToolMode
    timeout_s: float
    prices: Prices | None
    script: Path | None
    script_digest: str

    @property
    def scripted(self) -> bool:
        """True when the answers come from a file; every record says so."""
        return self.type == "scripted"


class FilterGroup(Struct, frozen=True):
    """Which tools of MCP servers are offered: always, or when a keyword stands in the step."""

    mode: str
    tools: tuple[str, ...]
    keywords: tuple[str, ...]


class OnInterrupted(StrEnum):
    """What follows a call that may or may not have acted, when its tool is not repeatable."""

    GATE = "gate"
    FAIL = "fail"


class RuntimeControls(Struct, frozen=True):
    """The limits of one session. Every one of them ends it as exhausted, with its name and value.

    `iterations` are model turns. `context_tokens` and `history_messages` bound what is sent, not what is kept.
    `total_tokens`, `cost_usd` (this session) and `cost_usd_per_day` (this agent) None set no limit;
    neither do `run_tokens` and `run_cost_usd`, which all sessions of a run and of its sub-runs share.
    `parallel_calls` 1 is strictly one after the other. `system_prompt_chars` None: no cap.
    """

    iterations: int
    result_chars: int
    context_tokens: int
    history_messages: int
    total_tokens: int | None
    cost_usd: Decimal | None
    cost_usd_per_day: Decimal | None
    run_tokens: int | None
    run_cost_usd: Decimal | None
    wall_time_s: float
    parallel_calls: int
    dedup_exempt: tuple[str, ...]
    filter_groups: tuple[FilterGroup, ...]
    output_retries: int
    on_interrupted: OnInterrupted
    max_depth: int

    @property
    def limits_cost(self) -> bool:
        """True when some cost is limited, so that what a request costs has to be known."""
        return any(limit is not None for limit in (self.cost_usd, self.cost_usd_per_day, self.run_cost_usd))


class ApprovalManager(Struct, frozen=True):
    """Who is asked before a tool runs. `auto` and `always_ask` hold tool keys, resolved once; the latter win.

    `askable` False: nobody can be asked, and whatever would be asked is denied. `route` tells in words
    where the question waits. `policy` names the approval policy of the gate (None: the workspace's default);
    `timeout_s` 0 waits for ever.
    """

    level: Level
    auto: tuple[str, ...]
    always_ask: tuple[str, ...]
    askable: bool
    route: str
    policy: str | None
    timeout_s: float


class TranscriptSeed(Struct, frozen=True):
    """All that the first request holds: the agent's own instructions and the step. Nothing of the caller's.

    `output_schema` None: the final text is the output as it is.
    """

    instructions: str
    context: str
    output_schema: Json | None


class Actor(Struct, frozen=True):
    """Whose session this is, and for whom. `root` is a principal key; `depth` counts delegations from 1.

    `lineage` are the runs that stand above, this one included.
    """

    acting: str
    delegating: str
    root: str
    run: str
    execution: str
    depth: int
    lineage: tuple[str, ...]
