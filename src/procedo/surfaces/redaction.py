"""Secrets are masked where people and models look, never where work is done.

A value is masked in a copy made for display: status, lists, details, exports, the content of a gate, a notice. What
is stored, compared, piped, or handed to the agent that performs a step keeps its true value.
"""

from procedo.credential_shapes import MASK, masked, masked_text

__all__ = ["MASK", "masked", "masked_text"]
