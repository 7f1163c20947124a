"""The security policy of an agent, out of its tables; the workspace's own files are always kept from it."""

from pathlib import Path

from procedo.agents.parts import Level, Root, Sandbox, SecurityPolicy
from procedo.agents.refusal import Cause, Reason
from procedo.config import Settings
from procedo.config.agent_settings import AgentTable, RiskTable, RuntimeTable

__all__ = ["security_policy"]

_HTTP_S = 30.0
_MAX_BYTES = 1_048_576
_CONFIG = "procedo.toml"


def security_policy(
    settings: Settings, agent: AgentTable, risk: RiskTable, runtime: RuntimeTable
) -> tuple[SecurityPolicy, list[Reason]]:
    """The policy, and the reasons why it cannot hold."""
    reasons: list[Reason] = []
    level = Level(risk.level)
    if not agent.workspace.is_dir():
        message = f"the workspace {agent.workspace} is no folder"
        reasons.append(Reason(Cause.WORKSPACE, message, "create it, or change [agents.<agent>.workspace] path"))
    if agent.unrestricted and risk.workspace_only:
        message = f"agent {agent.alias!r} is to reach the whole disk, and its risk profile keeps it in the workspace"
        reasons.append(Reason(Cause.WORKSPACE, message, "write workspace_only = false, or leave unrestricted out"))
    writable = agent.writable and level is not Level.READONLY
    roots = [Root(agent.workspace, writable), *(Root(path, False) for path in risk.allowed_roots)]
    if agent.unrestricted and not risk.workspace_only:
        roots.append(Root(Path("/"), writable))
    policy = SecurityPolicy(
        level=level,
        roots=tuple(roots),
        forbidden=tuple(sorted({settings.data_dir, *settings.agents.secret_files, *risk.forbidden_paths})),
        protected=tuple(sorted(_own_files(settings))),
        commands=risk.allowed_commands,
        block_high_risk=risk.block_high_risk,
        ask_medium_risk=risk.ask_medium_risk,
        hosts=risk.allowed_hosts,
        environment=risk.environment,
        sandbox=Sandbox(risk.sandbox),
        shell_timeout_s=runtime.shell_timeout_s,
        http_timeout_s=_HTTP_S,
        max_bytes=_MAX_BYTES,
        actions_per_hour=runtime.actions_per_hour,
    )
    return policy, reasons


def _own_files(settings: Settings) -> set[Path]:
    """What says what agents may do: an agent that could write it would write its own permissions."""
    agents = settings.agents
    found = {settings.root / _CONFIG, settings.sops_dir}
    found |= {agent.instructions_file for agent in agents.agents.values() if agent.instructions_file is not None}
    return found | {provider.script for provider in agents.providers.values() if provider.script is not None}
