"""The routes of a workspace as one `Notifier`: each notice goes to the sender of its route's kind."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from procedo.config.notices import NoticeRoute, NoticeSettings
from procedo.notices import command, services, webhook
from procedo.notices.means import Means
from procedo.ports import Notice, Undelivered

__all__ = ["Delivery"]

_SENDERS: Final[Mapping[str, Callable[[NoticeRoute, Notice, Means], Awaitable[None]]]] = {
    "webhook": webhook.send,
    "command": command.send,
    "apprise": services.send,
}
_OBJECTIONS: Final[Mapping[str, Callable[[NoticeRoute, Means], str | None]]] = {
    "webhook": webhook.objection,
    "command": command.objection,
    "apprise": services.objection,
}


class Delivery:
    """A `Notifier` over the routes of `procedo.toml`."""

    def __init__(self, settings: NoticeSettings, means: Means) -> None:
        self._routes = settings.routes
        self._means = means

    def objections(self) -> Mapping[str, str]:
        """See `Notifier.objections`."""
        found = {r.name: _OBJECTIONS[r.type](r, self._means) for r in self._routes.values()}
        return {name: why for name, why in found.items() if why is not None}

    async def deliver(self, notice: Notice) -> None:
        """See `Notifier.deliver`."""
        route = self._routes.get(notice.route)
        if route is None:
            raise Undelivered(f"procedo.toml has no notice {notice.route!r} any more")
        await _SENDERS[route.type](route, notice, self._means)
