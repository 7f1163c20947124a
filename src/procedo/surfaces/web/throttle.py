"""Slowing down whoever guesses at the login."""

from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

__all__ = ["Throttle"]

_FREE: Final = 5
_WINDOW: Final = timedelta(minutes=1)
_CALLERS: Final = 1_000


class Throttle:
    """Counts failed logins for each caller's address: five within a minute, then a pause until the minute is over."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._failures: OrderedDict[str, list[datetime]] = OrderedDict()

    def wait_s(self, caller: str) -> int:
        """Seconds until this caller may try again; 0 is now."""
        recent = self._recent(caller)
        if len(recent) < _FREE:
            return 0
        return max(1, round((recent[0] + _WINDOW - self._now()).total_seconds()))

    def failed(self, caller: str) -> None:
        """Count a failure."""
        self._failures[caller] = [*self._recent(caller), self._now()][-_FREE:]
        self._failures.move_to_end(caller)
        while len(self._failures) > _CALLERS:
            self._failures.popitem(last=False)

    def passed(self, caller: str) -> None:
        """Forget the failures of somebody who is in."""
        self._failures.pop(caller, None)

    def _recent(self, caller: str) -> list[datetime]:
        since = self._now() - _WINDOW
        return [moment for moment in self._failures.get(caller, []) if moment > since]
