"""Notices about gates: which moments are told, over which route, and what became of telling. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from procedo.core.approval import OnExpiry, Policy
from procedo.core.model import EMPTY
from procedo.core.state import Gate

__all__ = ["NO_ROUTES", "Occasion", "Routing", "Telling"]


class Occasion(StrEnum):
    """A moment in the life of a gate that people are told about."""

    OPENED = "opened"
    PRESENTED = "presented"
    """Put again: a new draft, or the old one after no new one came about."""
    REMINDED = "reminded"
    ESCALATED = "escalated"
    RESOLVED = "resolved"
    """Decided, expired, or void because its run ended or moved on."""


class Telling(Struct, frozen=True):
    """What became of telling one route about a gate; a later moment of the gate takes its place.

    `error` is empty when it was delivered; `given_up` says that it is not tried again.
    """

    run_id: str
    gate_id: str
    route: str
    occasion: Occasion
    at: datetime
    attempts: int
    error: str = ""
    given_up: bool = False


class Routing(Struct, frozen=True):
    """Over which routes people are told. `events` holds every route with the moments that it is for.

    `request` and `escalation` are for gates whose policy names no route of its own, or is missing.
    """

    events: Mapping[str, frozenset[Occasion]] = field(default_factory=lambda: EMPTY)
    request: str | None = None
    escalation: str | None = None

    def routes(self, occasion: Occasion, gate: Gate, policy: Policy | None) -> Sequence[str]:
        """The routes that a moment of a gate is told over, each once."""
        asked = policy.request_route if policy is not None and policy.request_route else self.request
        higher = policy.escalation_route if policy is not None and policy.escalation_route else self.escalation
        escalates = policy is not None and policy.on_expiry is OnExpiry.ESCALATE and gate.reminders > 0
        if occasion is Occasion.ESCALATED:
            wanted = [higher or asked]
        elif occasion is Occasion.RESOLVED and escalates:
            # Whoever was called in is told as well that it is over.
            wanted = [asked, higher]
        else:
            wanted = [asked]
        named = dict.fromkeys(route for route in wanted if route is not None)
        return [route for route in named if occasion in self.events.get(route, ())]

    def named(self, policies: Iterable[Policy]) -> frozenset[str]:
        """The routes that somebody is told over."""
        own = [route for policy in policies for route in (policy.request_route, policy.escalation_route)]
        return frozenset(route for route in (*own, self.request, self.escalation) if route is not None)


NO_ROUTES: Final = Routing()
