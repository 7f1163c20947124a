"""What the built-in capabilities may do in a workspace. Frozen; read once from `procedo.toml`."""

from pathlib import Path

from msgspec import Struct, field

from procedo.hosts import HostPattern

__all__ = ["CapabilitySettings", "HttpSettings", "ShellSettings"]


class HttpSettings(Struct, frozen=True):
    """Limits of `http.request`. No allowed host means that it is off. `max_bytes` bounds an answer's body."""

    allowed_hosts: tuple[HostPattern, ...] = ()
    timeout_s: float = 30.0
    max_bytes: int = 32768


class ShellSettings(Struct, frozen=True):
    """Limits of `shell.exec`.

    `root` is the workspace, which no command's working folder leaves; `cwd` is where commands start.
    `allowed_commands` are names looked up on the server's PATH, or absolute paths. `env` names
    the variables that are passed on. `max_output_bytes` bounds each of the two outputs.
    """

    root: Path
    cwd: Path
    enabled: bool = False
    allowed_commands: frozenset[str] = frozenset()
    env: frozenset[str] = frozenset()
    timeout_s: float = 60.0
    max_output_bytes: int = 16384


class CapabilitySettings(Struct, frozen=True):
    """Everything that the built-in capabilities need to know."""

    shell: ShellSettings
    http: HttpSettings = field(default_factory=HttpSettings)

    @classmethod
    def off(cls) -> "CapabilitySettings":
        """What holds without a `procedo.toml`: nothing outward is allowed."""
        return cls(ShellSettings(Path(), Path()))
