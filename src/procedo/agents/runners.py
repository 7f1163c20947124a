"""Which runner enforces which control, as data. A promise does not satisfy a contract that needs a control.

Only `local` is available in this version; the other columns say why nothing falls back to them.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

__all__ = ["AVAILABLE", "ENFORCEMENT", "Control", "Hold", "Runner", "not_enforced"]


class Control(StrEnum):
    """What a contract may need to be enforced."""

    TOOLS = "tool_allow_list"
    APPROVALS = "approvals"
    SANDBOX = "sandbox"
    FILES = "file_scope"
    MODEL = "model"
    TEMPERATURE = "temperature"
    ITERATIONS = "iterations"
    RESULT_SIZE = "result_size"
    CONTEXT_SIZE = "context_size"
    WALL_TIME = "wall_time"
    ISOLATION = "transcript_isolation"
    CANCEL = "cancel"
    TOKENS = "tokens"
    COST = "cost"


class Hold(StrEnum):
    """Enforced by us, promised by the peer, or unknown."""

    ENFORCED = "enforced"
    PROMISED = "promised"
    UNKNOWN = "unknown"


class Runner(StrEnum):
    """What carries out a contract: our own loop, an installed coding agent, a peer server, a remote agent."""

    LOCAL = "local"
    ACP = "acp"
    MCP_PEER = "mcp_peer"
    REMOTE = "remote"


_E, _P, _U = Hold.ENFORCED, Hold.PROMISED, Hold.UNKNOWN
_COLUMNS: Final = (Runner.LOCAL, Runner.ACP, Runner.MCP_PEER, Runner.REMOTE)
_ROWS: Final[Mapping[Control, tuple[Hold, Hold, Hold, Hold]]] = {
    Control.TOOLS: (_E, _P, _P, _U),
    Control.APPROVALS: (_E, _P, _P, _P),
    Control.SANDBOX: (_E, _E, _U, _U),
    Control.FILES: (_E, _E, _U, _U),
    Control.MODEL: (_E, _P, _P, _U),
    Control.TEMPERATURE: (_E, _P, _P, _U),
    Control.ITERATIONS: (_E, _U, _P, _U),
    Control.RESULT_SIZE: (_E, _E, _P, _E),
    Control.CONTEXT_SIZE: (_E, _U, _P, _U),
    Control.WALL_TIME: (_E, _E, _E, _E),
    Control.ISOLATION: (_E, _E, _P, _P),
    Control.CANCEL: (_E, _E, _E, _P),
    Control.TOKENS: (_E, _P, _P, _U),
    Control.COST: (_E, _P, _P, _U),
}

ENFORCEMENT: Final[Mapping[Runner, Mapping[Control, Hold]]] = MappingProxyType(
    {
        runner: MappingProxyType({control: row[place] for control, row in _ROWS.items()})
        for place, runner in enumerate(_COLUMNS)
    }
)
"""How each runner holds each control."""

AVAILABLE: Final = frozenset({Runner.LOCAL})
"""Runners that exist in this version."""


def not_enforced(runner: Runner, needed: Iterable[Control]) -> tuple[Control, ...]:
    """The needed controls that this runner does not enforce itself, in the order of the table."""
    wanted = set(needed)
    return tuple(control for control in Control if control in wanted and ENFORCEMENT[runner][control] is not _E)
