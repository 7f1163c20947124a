"""What a definition is checked against: the workspace it is to run in."""

from collections.abc import Callable, Mapping

from msgspec import Struct, field

from procedo.core.approval import Policy
from procedo.core.model import Mode
from procedo.ports import Capabilities

__all__ = ["Surroundings"]


class Surroundings(Struct, frozen=True):
    """The names that a definition may use.

    `tools` None means that the tools of agents are not known here, so that none can be missing. `sops` are
    the names in the library; None means that they are not known. `break_glass` names who may decide alone.
    `disabled` are agents that refuse every step; `holds` tells whether an agent can have a tool, when that is known.
    """

    agents: frozenset[str]
    host_agent: str
    policies: Mapping[str, Policy] = field(default_factory=dict)
    tools: frozenset[str] | None = None
    capabilities: Capabilities | None = None
    sops: frozenset[str] | None = None
    default_mode: Mode = Mode.SUPERVISED
    break_glass: frozenset[str] = frozenset()
    disabled: frozenset[str] = frozenset()
    holds: Callable[[str, str], bool] | None = None
