"""What delivering needs of the outside."""

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

from msgspec import Struct

__all__ = ["Means"]


class Means(Struct, frozen=True):
    """Where programs and secrets are looked up, the workspace, and the time."""

    environ: Mapping[str, str]
    root: Path
    now: Callable[[], datetime]
