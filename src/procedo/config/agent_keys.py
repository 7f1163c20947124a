"""The keys of agents, their profiles, providers and MCP servers. `keys` puts them into the one table.

Names are ZeroClaw's where they exist there. Two defaults are not: an empty `allowed_tools` grants nothing,
and there is no cost limit unless one is written, because a limit on an unknown price refuses the agent.
"""

from collections.abc import Mapping
from typing import Final

from procedo.config import agent_forms, forms
from procedo.config.key import Key

__all__ = [
    "AGENT",
    "AGENT_KEYS",
    "BUNDLE",
    "GROUPS",
    "PROVIDERS",
    "RISK",
    "ROUTE",
    "RUNTIME",
    "SERVERS",
    "WORKSPACE",
    "not_here",
]

AGENT: Final = "agents.<agent>"
WORKSPACE: Final = f"{AGENT}.workspace"
RISK: Final = "risk_profiles.<profile>"
ROUTE: Final = f"{RISK}.approval_route"
RUNTIME: Final = "runtime_profiles.<profile>"
GROUPS: Final = f"{RUNTIME}.tool_filter_groups[]"
SERVERS: Final = "mcp.servers[]"
BUNDLE: Final = "mcp_bundles.<bundle>"
PROVIDERS: Final = tuple(
    f"providers.models.{t}.<alias>" for t in ("openai_compatible", "openai", "anthropic", "scripted")
)
"""The tables of providers, one for each type; the keys of a type are those that mean something for it."""

_COMPATIBLE, _OPENAI, _ANTHROPIC, _SCRIPTED = PROVIDERS
_NAMES = forms.listed(forms.name())
_TOOLS = forms.listed(agent_forms.text(200))

_AGENT: Final = (
    Key(AGENT, "enabled", forms.flag(), True, "A disabled agent refuses every step."),
    Key(AGENT, "kind", forms.word(["local", "acp", "remote"]), "local", "Which runner carries it out; only local yet."),
    Key(AGENT, "model_provider", agent_forms.provider(), None, "The model: a table of providers.", required=True),
    Key(AGENT, "risk_profile", forms.name(), None, "What it may do: a table of risk_profiles.", required=True),
    Key(AGENT, "runtime_profile", forms.name(), None, "Its limits: a table of runtime_profiles; none: the defaults."),
    Key(AGENT, "mcp_bundles", _NAMES, (), "Which MCP servers it has: the union of these; none: no server."),
    Key(AGENT, "instructions", agent_forms.text(), None, "Its system prompt."),
    Key(AGENT, "instructions_file", forms.folder(), None, "A file of the workspace that holds its system prompt."),
    Key(WORKSPACE, "path", forms.folder(), ".", "The folder that its tools work in."),
    Key(WORKSPACE, "access", forms.word(["read", "write"]), "write", "Whether its tools may change files there."),
    Key(WORKSPACE, "unrestricted_filesystem", forms.flag(), False, "With workspace_only = false: the whole disk."),
)  # fmt: skip

_RISK: Final = (
    Key(RISK, "level", forms.word(["readonly", "supervised", "full"]), "supervised", "How much it does by itself."),
    Key(RISK, "allowed_tools", _TOOLS, (), 'Its tools by name, "server__*", or "*"; empty: none.'),
    Key(RISK, "excluded_tools", _TOOLS, (), "Tools that it does not have; wins over allowed_tools."),
    Key(RISK, "auto_approve", _TOOLS, ("file_list", "file_read", "file_search"), "Tools that run without a question."),
    Key(RISK, "always_ask", _TOOLS, (), "Tools that are asked for at every call; wins over auto_approve."),
    Key(RISK, "allowed_commands", forms.listed(forms.command()), (), "Programs that `shell` may run."),
    Key(RISK, "allowed_hosts", forms.listed(forms.host()), (), "Hosts that `http_request` may call."),
    Key(RISK, "forbidden_paths", forms.listed(forms.folder()), (), "Paths that are neither read nor written."),
    Key(RISK, "allowed_roots", forms.listed(forms.folder()), (), "Further folders that its tools may read."),
    Key(RISK, "workspace_only", forms.flag(), True, "Keeps file tools inside the workspace and the allowed roots."),
    Key(RISK, "block_high_risk_commands", forms.flag(), True, "Blocks them whatever allowed_commands says."),
    Key(RISK, "require_approval_for_medium_risk", forms.flag(), True, "Asks for commands that change things."),
    Key(RISK, "shell_env_passthrough", forms.listed(forms.variable()), (), "Variables that programs are given."),
    Key(RISK, "sandbox_enabled", forms.flag(), True, "False: programs run without a sandbox."),
    Key(RISK, "sandbox_backend", forms.word(["auto", "bubblewrap", "none"]), "auto", "What encloses programs."),
    Key(ROUTE, "policy", forms.name(), None, "The approval policy of its questions; none: the workspace's default."),
    Key(ROUTE, "timeout_secs", forms.count(0, 31_622_400), 0, "How long a question waits; 0: as the policy says."),
)  # fmt: skip

_RUNTIME: Final = (
    Key(RUNTIME, "max_tool_iterations", forms.count(0, 1_000), 0, "Model turns in one session; 0 means 10."),
    Key(RUNTIME, "max_actions_per_hour", forms.count(0, 1_000_000), 20, "Acting calls in an hour; 0: no limit."),
    Key(RUNTIME, "max_cost_per_day_cents", agent_forms.number(0, 1e9), 0, "Of the agent, US cents; 0: no limit."),
    Key(RUNTIME, "max_cost_per_step_cents", agent_forms.number(0, 1e9), 0, "Of one session, in US cents; 0: no limit."),
    Key(RUNTIME, "max_cost_per_run_cents", agent_forms.number(0, 1e9), 0, "Of a run with its sub-runs; 0: no limit."),
    Key(RUNTIME, "max_tokens_per_run", forms.count(0, 10**9), 0, "Of a run with its sub-runs; 0: no limit."),
    Key(RUNTIME, "max_tokens_per_step", forms.count(0, 10**9), 0, "Of one session, in and out; 0: no limit."),
    Key(RUNTIME, "shell_timeout_secs", forms.count(1, 86_400), 60, "Time for one program."),
    Key(RUNTIME, "agentic_timeout_secs", forms.count(1, 604_800), 300, "Time for one session while it works."),
    Key(RUNTIME, "max_delegation_depth", forms.count(0, 64), 0, "How deep delegations may nest; 0 means 3."),
    Key(RUNTIME, "max_history_messages", forms.count(2, 100_000), 50, "Messages that are sent; all are kept."),
    Key(RUNTIME, "max_context_tokens", forms.count(256, 10**8), 32_000, "Size of what is sent, in tokens."),
    Key(RUNTIME, "max_system_prompt_chars", forms.count(0, 10**7), 0, "A longer prompt is refused; 0: no limit."),
    Key(RUNTIME, "max_tool_result_chars", forms.count(200, 10**7), 50_000, "What is shown of a result; all is kept."),
    Key(RUNTIME, "parallel_tools", forms.flag(), False, "Whether calls of one turn run side by side."),
    Key(RUNTIME, "max_parallel_tools", forms.count(1, 64), 4, "How many of them at once."),
    Key(RUNTIME, "tool_call_dedup_exempt", _TOOLS, (), "Tools whose identical calls each run, such as clocks."),
    Key(RUNTIME, "output_retries", forms.count(0, 20), 2, "Further tries after an output that breaks the schema."),
    Key(RUNTIME, "on_interrupted", forms.word(["gate", "fail"]), "gate", "What follows a call that may have happened."),
    Key(GROUPS, "mode", forms.word(["always", "dynamic"]), None, "dynamic: when a keyword occurs.", required=True),
    Key(GROUPS, "tools", _TOOLS, (), "Tools of MCP servers, with one * at most.", required=True),
    Key(GROUPS, "keywords", forms.listed(agent_forms.text(200)), (), "Words of a dynamic group."),
)  # fmt: skip

_MCP: Final = (
    Key("mcp", "enabled", forms.flag(), True, "False: no agent has a server."),
    Key(SERVERS, "name", agent_forms.server_name(), None, "Its tools are offered as name__tool.", required=True),
    Key(SERVERS, "transport", forms.word(["stdio", "http"]), "stdio", "How it is reached."),
    Key(SERVERS, "command", forms.command(), None, "The program of a stdio server."),
    Key(SERVERS, "args", agent_forms.arguments(), (), "Its arguments."),
    Key(SERVERS, "env", agent_forms.words_by_name("variable"), {}, "Exactly the variables that it gets, besides PATH."),
    Key(SERVERS, "url", agent_forms.endpoint(), None, "The address of an http server."),
    Key(SERVERS, "headers", agent_forms.words_by_name("header"), {}, "Headers that it is sent."),
    Key(SERVERS, "required", forms.flag(), True, "False: an agent works without it when it cannot be reached."),
    Key(SERVERS, "connect_timeout_secs", forms.count(1, 600), 10, "Time to connect and list its tools."),
    Key(SERVERS, "tool_timeout_secs", forms.count(1, 86_400), 60, "Time for one call."),
    Key(SERVERS, "read_only_tools", _TOOLS, (), "Its tools that change nothing: our word, not the server's."),
    Key(SERVERS, "idempotent_tools", _TOOLS, (), "Its tools whose repeated call does no harm."),
    Key(BUNDLE, "servers", _NAMES, (), "Servers of the bundle.", required=True),
    Key(BUNDLE, "exclude", _NAMES, (), "Servers that an agent with this bundle never has."),
)  # fmt: skip


def _provider(table: str, *more: Key) -> tuple[Key, ...]:
    return (
        Key(table, "model", agent_forms.text(200), None, "The name of the model.", required=True),
        Key(table, "temperature", agent_forms.number(0, 2), None, "Unset: the key is not sent."),
        Key(table, "max_output_tokens", forms.count(1, 10**7), None, "Of one answer; unset: the key is not sent."),
        Key(table, "timeout_secs", forms.count(1, 86_400), 120, "Time for one request."),
        Key(table, "input_usd_per_million", agent_forms.number(0, 1e6), None, "Price of a million tokens sent."),
        Key(table, "output_usd_per_million", agent_forms.number(0, 1e6), None, "Price of a million tokens received."),
        *more,
    )


_KEY: Final = "Where the credential lies; unset: the endpoint wants none."
_PROVIDER_KEYS: Final = (
    *_provider(
        _COMPATIBLE,
        Key(_COMPATIBLE, "endpoint", agent_forms.endpoint(), None, "Up to and with /v1.", required=True),
        Key(_COMPATIBLE, "api_key", agent_forms.secret(), None, _KEY),
        Key(_COMPATIBLE, "tool_mode", forms.word(["tools", "schema"]), "tools", "schema: no tool calls needed."),
    ),
    *_provider(
        _OPENAI,
        Key(_OPENAI, "endpoint", agent_forms.endpoint(), None, "Unset: the vendor's own."),
        Key(_OPENAI, "api_key", agent_forms.secret(), None, "Where the credential lies.", required=True),
    ),
    *_provider(
        _ANTHROPIC,
        Key(_ANTHROPIC, "endpoint", agent_forms.endpoint(), None, "Unset: the vendor's own."),
        Key(_ANTHROPIC, "api_key", agent_forms.secret(), None, "Where the credential lies.", required=True),
    ),
    Key(_SCRIPTED, "script", forms.folder(), None, "A TOML or JSON file with its answers; no model.", required=True),
)  # fmt: skip

AGENT_KEYS: Final[tuple[Key, ...]] = (*_AGENT, *_RISK, *_RUNTIME, *_MCP, *_PROVIDER_KEYS)

_NOT_HERE: Final[Mapping[tuple[str, str], str]] = {
    **{
        (AGENT, key): "agents have no such stores in this version; leave it out"
        for key in ("skill_bundles", "knowledge_bundles", "memory")
    },
    (AGENT, "temperature"): "the temperature is the provider's: [providers.models.<type>.<alias>] temperature",
    (AGENT, "system_prompt"): "write it as instructions, or instructions_file",
    (AGENT, "delegates"): "which agent does a step is said by the procedure; leave it out",
    (AGENT, "delegate_same_risk_profile"): "an agent never inherits a profile; leave it out",
    (RISK, "delegation_policy"): "which agent does a step is said by the procedure; leave it out",
    (RISK, "firejail_args"): "the sandbox is bubblewrap",
    (RUNTIME, "agentic"): "a session is always agentic; leave it out",
    (RUNTIME, "delegation_timeout_secs"): "write agentic_timeout_secs, and timeout on the step",
    (RUNTIME, "compact_context"): "what is sent is always trimmed to max_context_tokens; leave it out",
    (RUNTIME, "keep_tool_context_turns"): "whole turns are trimmed, by max_history_messages; leave it out",
    (RUNTIME, "memory_recall_limit"): "agents have no memory in this version; leave it out",
    (RUNTIME, "strict_tool_parsing"): "tool calls are always checked strictly; leave it out",
    (RUNTIME, "tool_dispatcher"): "the provider's tool_mode says it",
    ("mcp", "deferred_loading"): "tools are always listed at assembly; leave it out",
    (SERVERS, "pinned_resources"): "agents read no resources in this version; leave it out",
    (SERVERS, "tls_ca_cert_path"): "the system's own certificates are used; leave it out",
    **{(table, "api_key"): "it needs none: its answers come from a file" for table in (_SCRIPTED,)},
    **{(table, "uri"): "write it as endpoint" for table in PROVIDERS},
}
"""Keys that people bring from elsewhere, and what to do about them."""


def not_here(table: str, key: str) -> str | None:
    """What to do about a key that is known elsewhere, or None."""
    return _NOT_HERE.get((table, key))
