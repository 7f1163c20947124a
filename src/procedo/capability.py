"""Deterministic work that the server does itself, as the engine room sees it."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from msgspec import Struct

from procedo.core.model import Json

__all__ = ["Capabilities", "Capability", "CapabilityCall", "OutcomeUnknown"]


class OutcomeUnknown(Exception):
    """Raised by a capability when its effect may or may not have happened (a time-out after sending, say)."""


class CapabilityCall(Struct, frozen=True):
    """One call: the validated arguments, and a deterministic id by which a peer can recognise a repeat."""

    arguments: Json
    run_id: str
    execution_id: str
    effect_id: str


class Capability(Struct, frozen=True):
    """Deterministic work that the server does itself.

    `pure` work has no effect outside and may always be repeated. `idempotent` work may be repeated after
    a crash; `repeats` tells the same of a single call by its arguments. Anything else stops at a gate
    then. `run` raises `Refused` or `ValueError` for a failed attempt: it is known not to have acted, or
    its peer said so, or a repeat does no harm; `OutcomeUnknown` otherwise. `objection` tells at load why
    it cannot be used in this workspace (switched off, no host allowed), or None.
    """

    id: str
    description: str
    input_schema: Json
    output_schema: Json
    run: Callable[[CapabilityCall], Awaitable[Json]]
    pure: bool = False
    idempotent: bool = False
    objection: str | None = None
    repeats: Callable[[Json], bool] | None = None

    def repeatable(self, arguments: Json) -> bool:
        """True when a call with these arguments may happen again without harm."""
        return self.pure or self.idempotent or (self.repeats is not None and self.repeats(arguments))


class Capabilities(Protocol):
    """The registry of capabilities."""

    def get(self, capability_id: str) -> Capability | None:
        """The capability with this id."""

    def all(self) -> tuple[Capability, ...]:
        """Every capability, by id."""
