"""Notices to whatever Apprise reaches: mail, chat, phones. The package is an extra and is imported at the first use."""

import importlib
import importlib.util

import anyio
import anyio.to_thread

from procedo.config.notices import NoticeRoute
from procedo.credentials import Missing, SecretRef, resolve
from procedo.notices.means import Means
from procedo.ports import Notice, Undelivered

__all__ = ["objection", "send"]


def _url(route: NoticeRoute, means: Means) -> str:
    """The address. Raises `Missing`."""
    if isinstance(route.url, SecretRef):
        return resolve(route.url, means.environ, means.root).reveal()
    return route.url or ""


def objection(route: NoticeRoute, means: Means) -> str | None:
    """Why nothing can be sent as things stand, or None."""
    if importlib.util.find_spec("apprise") is None:
        return "the package 'apprise' is not installed: install procedo[notify]"
    try:
        _url(route, means)
    except Missing as error:
        return str(error)
    return None


async def send(route: NoticeRoute, notice: Notice, means: Means) -> None:
    """Send a notice. Raises `Undelivered`; what Apprise itself says goes to the log, for it may hold addresses."""
    if (why := objection(route, means)) is not None:
        raise Undelivered(why)
    url = _url(route, means)

    def tell() -> bool | None:
        apprise = importlib.import_module("apprise")
        service = apprise.Apprise()
        if not service.add(url):
            return None
        return bool(service.notify(title=notice.title, body=notice.text))

    with anyio.move_on_after(route.timeout_s) as scope:
        delivered = await anyio.to_thread.run_sync(tell, abandon_on_cancel=True)
    if scope.cancelled_caught:
        raise Undelivered(f"no answer within {route.timeout_s:g} s")
    if delivered is None:
        raise Undelivered("its url is none that Apprise knows")
    if not delivered:
        raise Undelivered("the service did not take it")
