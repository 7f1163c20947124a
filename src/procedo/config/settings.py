"""The settings of a workspace: frozen values, read once at start."""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from procedo.config.agent_settings import NO_AGENTS, AgentSettings
from procedo.config.capability_settings import CapabilitySettings
from procedo.config.notices import NO_NOTICES, NoticeSettings
from procedo.config.serving import ServingSettings
from procedo.config.telemetry import LoggingSettings, TelemetrySettings
from procedo.core.admission import Limits
from procedo.core.approval import HUMAN, Policy
from procedo.core.model import Mode

__all__ = ["Settings"]


class Settings(Struct, frozen=True):
    """What `procedo.toml` says, with every default filled in.

    `root` is the workspace, `data_dir` where its store lies. `policies` holds every approval policy by
    name, the built-in `human` included; `default_policy` is for gates that name none, and `break_glass` names the
    people who may decide alone in an emergency. `max_value_bytes` bounds each input and output of a run; `lease_s`
    is how long a worker holds work without renewing, in seconds.
    `serving` says how `serve --http` is reached, `notices` how people are told about gates, `telemetry` and `logging`
    what a server tells about itself.
    """

    root: Path
    sops_dir: Path
    data_dir: Path
    capabilities: CapabilitySettings
    host_agent: str = "host"
    default_mode: Mode = Mode.SUPERVISED
    limits: Limits = field(default_factory=Limits)
    max_value_bytes: int = 65536
    policies: Mapping[str, Policy] = field(default_factory=lambda: {HUMAN.name: HUMAN})
    default_policy: Policy = HUMAN
    break_glass: frozenset[str] = frozenset()
    lease_s: float = 10.0
    agents: AgentSettings = NO_AGENTS
    serving: ServingSettings = field(default_factory=ServingSettings)
    notices: NoticeSettings = NO_NOTICES
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)
    logging: LoggingSettings = field(default_factory=LoggingSettings)
