"""Why a contract could not be assembled: every reason, typed, none hidden behind the first."""

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from procedo.errors import Refused

__all__ = ["Cause", "NotAssembled", "Reason"]


class Cause(StrEnum):
    """The kinds of reasons. Stable words for programs."""

    UNKNOWN_AGENT = "unknown_agent"
    DISABLED_AGENT = "disabled_agent"
    BEYOND_REACH = "beyond_reach"
    MISSING_PROFILE = "missing_profile"
    MISSING_PROVIDER = "missing_provider"
    MISSING_KEY = "missing_key"
    MISSING_EXTRA = "missing_extra"
    BAD_SCRIPT = "bad_script"
    BAD_INSTRUCTIONS = "bad_instructions"
    UNREACHABLE_SERVER = "unreachable_server"
    UNKNOWN_TOOL = "unknown_tool"
    TOOL_COLLISION = "tool_collision"
    TOOL_UNUSABLE = "tool_unusable"
    SANDBOX = "sandbox"
    CONTROL_NOT_ENFORCED = "control_not_enforced"
    PRICE_UNKNOWN = "price_unknown"
    TOO_DEEP = "too_deep"
    BAD_OUTPUT_SCHEMA = "bad_output_schema"
    WORKSPACE = "workspace"
    CHANGED = "changed"
    UNREADABLE = "unreadable"


class Reason(Struct, frozen=True):
    """One reason: its kind, what is wrong, and what would be right."""

    cause: Cause
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class NotAssembled(Refused):
    """An agent cannot be assembled as it would have to be; nothing ran. `agent` is the intended one."""

    def __init__(self, agent: str, reasons: Sequence[Reason]) -> None:
        told = "; ".join(map(str, reasons))
        super().__init__("not_assembled", f"Agent {agent!r} cannot be assembled: {told}.")
        self.agent = agent
        self.reasons = tuple(reasons)
