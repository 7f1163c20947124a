"""Capabilities and the notifier of a server with spans around what they do, and numbers of it."""

from collections.abc import Mapping
from typing import Any

from procedo.core.altered import altered
from procedo.ports import Capabilities, Capability, CapabilityCall, Notice, Notifier, OutcomeUnknown
from procedo.telemetry import instruments
from procedo.telemetry.meters import Meters
from procedo.telemetry.spans import CAPABILITY, NOTICE, Spans

__all__ = ["WatchedCapabilities", "WatchedNotifier"]


class WatchedCapabilities:
    """Implements `Capabilities`; what it hands out is watched."""

    def __init__(self, inner: Capabilities, meters: Meters, spans: Spans) -> None:
        self._inner = inner
        self._meters = meters
        self._spans = spans

    def get(self, capability_id: str) -> Capability | None:
        """See `Capabilities.get`."""
        found = self._inner.get(capability_id)
        return None if found is None else self._watched(found)

    def all(self) -> tuple[Capability, ...]:
        """See `Capabilities.all`."""
        return tuple(self._watched(one) for one in self._inner.all())

    def _watched(self, one: Capability) -> Capability:
        async def run(call: CapabilityCall) -> Any:
            attributes = {
                "procedo.capability": one.id,
                "procedo.run.id": call.run_id,
                "procedo.execution.id": call.execution_id,
            }
            outcome = "interrupted"
            try:
                with self._spans.open(CAPABILITY, one.id, attributes) as span:
                    try:
                        result = await one.run(call)
                        outcome = "success"
                    except OutcomeUnknown:
                        raise
                    except Exception:
                        outcome = "failed"
                        raise
                    finally:
                        span.set({"procedo.outcome": outcome})
                    return result
            finally:
                self._meters.add(instruments.CAPABILITIES, 1, one.id, outcome)

        return altered(one, run=run)


class WatchedNotifier:
    """Implements `Notifier`."""

    def __init__(self, inner: Notifier, spans: Spans) -> None:
        self._inner = inner
        self._spans = spans

    def objections(self) -> Mapping[str, str]:
        """See `Notifier.objections`."""
        return self._inner.objections()

    async def deliver(self, notice: Notice) -> None:
        """See `Notifier.deliver`."""
        with self._spans.open(NOTICE, notice.route, {"procedo.notice.route": notice.route}) as span:
            outcome = "failed"
            try:
                await self._inner.deliver(notice)
                outcome = "success"
            finally:
                span.set({"procedo.outcome": outcome})
