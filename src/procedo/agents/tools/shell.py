"""`shell`: one program with its arguments, inside the sandbox of the contract. There is no shell in between."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from procedo.agents.parts import SecurityPolicy
from procedo.agents.ports import ToolDenied, ToolFailed
from procedo.agents.risk import Risk, command_risk
from procedo.agents.sandbox import enclosed
from procedo.capabilities.shell_exec import shell_exec
from procedo.config.capability_settings import ShellSettings
from procedo.core.model import Json
from procedo.errors import Refused
from procedo.ports import CapabilityCall

__all__ = ["run"]

_EVERY_EXIT: Final = list(range(1, 256))
_DENIED: Final = frozenset({"command_not_allowed", "outside"})


async def run(policy: SecurityPolicy, environ: Mapping[str, str], arguments: Json, effect_id: str) -> str:
    """Run it and give exit code and outputs as text; a failing program is a result, not a failed call."""
    _check_roots(policy)
    home = policy.roots[0].path
    settings = ShellSettings(
        root=home,
        cwd=home,
        enabled=True,
        allowed_commands=frozenset(policy.commands),
        env=frozenset(policy.environment),
        timeout_s=policy.shell_timeout_s,
        max_output_bytes=policy.max_bytes,
    )
    capability = shell_exec(settings, environ, lambda command, folder: _enclosed(policy, list(command), folder))
    call = CapabilityCall({**arguments, "accept_exit": _EVERY_EXIT}, "", "", effect_id)
    try:
        result = await capability.run(call)
    except Refused as error:
        told = str(error).removeprefix("shell.exec: ")
        raise (ToolDenied if error.code in _DENIED else ToolFailed)(told) from error
    except ValueError as error:  # text that no program can be given
        raise ToolFailed(f"the command cannot be started: {error}") from error
    return _shown(result)


def _check_roots(policy: SecurityPolicy) -> None:
    for root in policy.roots:
        if os.path.realpath(root.path) != str(root.path):
            raise ToolDenied(f"the folder {root.path} is no longer what it was when this agent was assembled")


def _enclosed(policy: SecurityPolicy, command: list[str], folder: Path) -> list[str]:
    # The program's own link was followed by now: a harmless name may lead to what is blocked.
    if policy.block_high_risk and command_risk(command, os.path.realpath(command[0])) is Risk.HIGH:
        raise ToolDenied(f"{command[0]} with these arguments is a high-risk command, and those are blocked")
    return list(enclosed(policy, command, folder))


def _shown(result: Json) -> str:
    cut = result.get("cut", [])
    parts = [f"exit code {result['exit_code']}"]
    for name in ("stdout", "stderr"):
        if result[name]:
            note = " (only its beginning)" if name in cut else ""
            parts.append(f"{name}{note}:\n{result[name]}")
    return "\n".join(parts)
