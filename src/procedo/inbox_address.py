"""Where people find the inbox page, as far as this process knows."""

from urllib.parse import quote

__all__ = ["InboxAddress"]


class InboxAddress:
    """The page's address: `public_url` where one is configured, else where this process serves it, else none."""

    def __init__(self, public_url: str | None) -> None:
        self._origin = public_url
        self._fixed = public_url is not None

    def served_at(self, origin: str) -> None:
        """The page is served by this process at that origin (`scheme://host:port`)."""
        if not self._fixed:
            self._origin = origin

    def of_gate(self, gate_id: str) -> str | None:
        """The page of a gate, or None when no inbox page is known."""
        return None if self._origin is None else f"{self._origin}/inbox/gates/{quote(gate_id, safe='')}"
