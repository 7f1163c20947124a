"""Secrets are masked where people and models look, never where work is done.

A value is masked in a copy made for display: status, lists, details, exports, the content of a gate. What is stored,
compared, piped, or handed to the agent that performs a step keeps its true value.
"""

from procedo.core.model import Json
from procedo.credential_shapes import MASK, masked_text, names_secret

__all__ = ["MASK", "masked", "masked_text"]


def masked(value: Json) -> Json:
    """A copy of the value for display; equal to the value when it holds nothing that looks like a secret."""
    if isinstance(value, str):
        return masked_text(value)
    if isinstance(value, dict):
        return {key: _under(key, item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [masked(item) for item in value]
    return value


def _under(key: str, value: Json) -> Json:
    if not names_secret(key) or value is None or isinstance(value, bool):
        return masked(value)
    return MASK
