"""What delivering needs of the outside."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

__all__ = ["Means"]


@dataclass(frozen=True, slots=True)
class Means:
    """Where programs and secrets are looked up, the workspace, and the time."""

    environ: Mapping[str, str]
    root: Path
    now: Callable[[], datetime]
