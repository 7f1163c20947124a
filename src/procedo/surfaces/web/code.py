"""The login code that a person reads in the terminal of the server.

It opens one session, within ten minutes, and dies after a few wrong guesses. A new one is shown in the same
terminal when somebody asks for it at the login page and the last one opens nothing any more: whoever reaches the
page may ask, and must not take a code away from the person who is typing it. A model that talks to this server
never sees it; an agent with a shell of the same account can read that account's terminal log, and act as that
account anyway.
"""

import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

__all__ = ["LIFETIME", "TerminalCode"]

LIFETIME: Final = timedelta(minutes=10)
_ALPHABET: Final = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
_LENGTH: Final = 8
_GUESSES: Final = 5
_PAUSE: Final = timedelta(seconds=10)
"""The shortest time between two codes: asking for them must not flood the terminal."""


class _Live(Struct):
    code: str
    until: datetime
    guesses: int = 0


def _plain(typed: str) -> str:
    return "".join(c for c in typed.upper() if c.isalnum())


class TerminalCode:
    """One code at a time. `show` puts a new one, and its end, before the person at the terminal."""

    def __init__(self, now: Callable[[], datetime], show: Callable[[str, datetime], None]) -> None:
        self._now = now
        self._show = show
        self._live: _Live | None = None
        self._shown_at: datetime | None = None

    @property
    def good_until(self) -> datetime | None:
        """Until when the code in the terminal opens a session; None when there is none that does."""
        live = self._live
        return None if live is None or live.until <= self._now() else live.until

    def renew(self) -> bool:
        """Show a new code. False, and nothing is shown, while the last one is good, or a moment after it was shown."""
        now = self._now()
        if self.good_until is not None:
            return False
        if self._shown_at is not None and now - self._shown_at < _PAUSE:
            return False
        letters = "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))
        self._live = _Live(letters, now + LIFETIME)
        self._shown_at = now
        self._show(f"{letters[:4]}-{letters[4:]}", self._live.until)
        return True

    def take(self, typed: str) -> bool:
        """True for the right code, which is used up by that. Blanks, dashes and case do not matter."""
        live = self._live
        if live is None or live.until <= self._now():
            self._live = None
            return False
        if secrets.compare_digest(_plain(typed).encode(), live.code.encode()):
            self._live = None
            return True
        live.guesses += 1
        if live.guesses >= _GUESSES:
            self._live = None
        return False
