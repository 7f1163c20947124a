"""Pieces of text for surfaces: what `core.display` gives, and foreign text framed as data for a model."""

from procedo.core.display import capped, compact, line, stamp
from procedo.core.frames import frame
from procedo.core.model import Json

__all__ = ["capped", "compact", "framed", "line", "stamp"]


def framed(marker: str, label: str, value: Json) -> str:
    """The value as data under a label, between two marks that its content cannot forge."""
    return f"{label}: {frame(marker, value)}"
