"""What reaches a capability beside its authored arguments. Every input schema takes these two."""

from typing import Final

from procedo.core.model import Json

__all__ = ["PIPED"]

PIPED: Final[dict[str, Json]] = {
    "input": {"description": "The piped value, filled in by the server when it is not authored."},
    "output": {"description": "The reported value, filled in by the server when this verifies a step."},
}
