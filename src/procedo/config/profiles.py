"""Risk and runtime profiles of `procedo.toml`."""

from decimal import Decimal
from pathlib import Path

from procedo.config.agent_keys import GROUPS, RISK, ROUTE, RUNTIME
from procedo.config.agent_settings import FilterTable, RiskTable, RuntimeTable
from procedo.config.document import Document
from procedo.config.keys import default
from procedo.core.model import Json

__all__ = ["risk", "runtime"]

_ITERATIONS = 10
_DEPTH = 3


def risk(root: Path, document: Document, name: str) -> RiskTable:
    """The profile of that name. Contradictions are problems."""

    def value(key: str) -> Json:
        return document.value(RISK, key, name)

    backend = value("sandbox_backend")
    if not value("sandbox_enabled") and backend == "bubblewrap":
        message = f"risk profile {name!r} switches the sandbox off and names one"
        place = ("risk_profiles", name, "sandbox_enabled")
        document.object_to(place, "ambiguous", message, 'write sandbox_backend = "none", or leave the switch out')
    return RiskTable(
        name=name,
        level=value("level"),
        allowed_tools=value("allowed_tools"),
        excluded_tools=value("excluded_tools"),
        auto_approve=value("auto_approve"),
        always_ask=value("always_ask"),
        allowed_commands=value("allowed_commands"),
        allowed_hosts=value("allowed_hosts"),
        # Not resolved: where a link leads is looked at when the path is used.
        forbidden_paths=tuple(root / path for path in value("forbidden_paths")),
        allowed_roots=tuple((root / path).resolve() for path in value("allowed_roots")),
        workspace_only=value("workspace_only"),
        block_high_risk=value("block_high_risk_commands"),
        ask_medium_risk=value("require_approval_for_medium_risk"),
        environment=value("shell_env_passthrough"),
        sandbox="none" if backend == "none" or not value("sandbox_enabled") else "bubblewrap",
        policy=document.value(ROUTE, "policy", name),
        ask_timeout_s=float(document.value(ROUTE, "timeout_secs", name)),
    )


def runtime(document: Document, name: str) -> RuntimeTable:
    """The profile of that name; the empty name is nobody's, so it has every default."""

    def value(key: str) -> Json:
        return document.value(RUNTIME, key, name) if name else default(RUNTIME, key)

    parallel = value("max_parallel_tools") if value("parallel_tools") else 1
    return RuntimeTable(
        name=name,
        iterations=value("max_tool_iterations") or _ITERATIONS,
        actions_per_hour=value("max_actions_per_hour") or None,
        cost_usd_per_day=_usd(value("max_cost_per_day_cents")),
        cost_usd_per_step=_usd(value("max_cost_per_step_cents")),
        cost_usd_per_run=_usd(value("max_cost_per_run_cents")),
        tokens_per_run=value("max_tokens_per_run") or None,
        tokens_per_step=value("max_tokens_per_step") or None,
        shell_timeout_s=float(value("shell_timeout_secs")),
        wall_time_s=float(value("agentic_timeout_secs")),
        depth=value("max_delegation_depth") or _DEPTH,
        history_messages=value("max_history_messages"),
        context_tokens=value("max_context_tokens"),
        system_prompt_chars=value("max_system_prompt_chars") or None,
        result_chars=value("max_tool_result_chars"),
        parallel_calls=parallel,
        dedup_exempt=value("tool_call_dedup_exempt"),
        output_retries=value("output_retries"),
        on_interrupted=value("on_interrupted"),
        groups=tuple(_group(document, name, place) for place in range(document.count(GROUPS, name))) if name else (),
    )


def _usd(cents: Decimal | int) -> Decimal | None:
    return Decimal(cents) / 100 if cents else None


def _group(document: Document, name: str, place: int) -> FilterTable:
    mode = document.value(GROUPS, "mode", name, place) or "always"
    keywords = document.value(GROUPS, "keywords", name, place)
    if (mode == "dynamic") != bool(keywords) and not document.broke(GROUPS, "mode", name, place):
        message = (
            f"a {mode} filter group of runtime profile {name!r} has {'no' if mode == 'dynamic' else 'idle'} keywords"
        )
        hint = "a dynamic group needs keywords, an always group has none"
        where = ("runtime_profiles", name, "tool_filter_groups", place)
        document.object_to(where, "keywords", message, hint)
    return FilterTable(mode, document.value(GROUPS, "tools", name, place) or (), keywords)
