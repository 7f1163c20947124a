"""The tables `[notices.<name>]`, and which gates are told over which of them."""

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from procedo.config.document import Document, TablePath
from procedo.config.notice_keys import APPROVAL, NOTICE
from procedo.core.model import EMPTY
from procedo.core.notice import NO_ROUTES, Occasion, Routing
from procedo.credentials import SecretRef
from procedo.hosts import is_loopback

__all__ = ["NO_NOTICES", "NoticeRoute", "NoticeSettings", "check_route", "notices"]

_NEEDED: Final = {"webhook": "url", "command": "argv", "apprise": "url"}
_IDLE: Final = {"webhook": ("argv", "env"), "command": ("url", "secret"), "apprise": ("argv", "env", "secret")}


class NoticeRoute(Struct, frozen=True):
    """One way to tell people. `url` is an address or the place of a secret one; `timeout_s` bounds one delivery.

    `content` says whether what is being decided on is told; secrets in it are masked.
    """

    name: str
    type: str
    url: str | SecretRef | None = None
    secret: SecretRef | None = None
    argv: tuple[str, ...] = ()
    env: frozenset[str] = frozenset()
    timeout_s: float = 10.0
    content: bool = False


class NoticeSettings(Struct, frozen=True):
    """Every route by name, and which moments and gates go over which."""

    routes: Mapping[str, NoticeRoute]
    routing: Routing


NO_NOTICES: Final = NoticeSettings(EMPTY, NO_ROUTES)


def notices(document: Document) -> NoticeSettings:
    """Read the tables; problems go to the document."""
    routes = {name: _route(document, name) for name in document.names(NOTICE)}
    events = {name: frozenset(map(Occasion, document.value(NOTICE, "events", name))) for name in routes}
    return NoticeSettings(
        MappingProxyType(routes),
        Routing(
            MappingProxyType(events),
            check_route(document, APPROVAL, "request_route"),
            check_route(document, APPROVAL, "escalation_route"),
        ),
    )


def check_route(document: Document, table: str, key: str, *chosen: str) -> str | None:
    """The route that a key names. One that is not declared is a problem."""
    name: str | None = document.value(table, key, *chosen)
    known = document.names(NOTICE)
    if name is None or name in known:
        return name
    near = get_close_matches(name, known, n=1)
    meant = f"did you mean {near[0]!r}?" if near else f"declare it as [notices.{name}] with a type"
    place: TablePath = (*(part for part in table.split(".") if not part.startswith("<")), *chosen, key)
    document.object_to(place, "unknown-notice", f"{key} names the notice {name!r}, which does not exist", meant)
    return None


def _route(document: Document, name: str) -> NoticeRoute:
    route = NoticeRoute(
        name=name,
        type=document.value(NOTICE, "type", name) or "",
        url=document.value(NOTICE, "url", name),
        secret=document.value(NOTICE, "secret", name),
        argv=document.value(NOTICE, "argv", name),
        env=frozenset(document.value(NOTICE, "env", name)),
        timeout_s=document.value(NOTICE, "timeout", name),
        content=document.value(NOTICE, "content", name),
    )
    if route.type:
        _check_keys(document, route)
    if route.type == "webhook" and isinstance(route.url, str):
        _check_address(document, route.name, route.url)
    return route


def _check_keys(document: Document, route: NoticeRoute) -> None:
    place, needed = ("notices", route.name), _NEEDED[route.type]
    if not document.stated(NOTICE, needed, route.name) and not document.broke(NOTICE, needed, route.name):
        message = f"notice {route.name!r} is a {route.type} and has no {needed}"
        document.object_to(place, "missing-key", message, f"add {needed}")
    for key in _IDLE[route.type]:
        if document.stated(NOTICE, key, route.name):
            message = f"{key} of notice {route.name!r} has no effect, for it is a {route.type}"
            document.object_to((*place, key), "idle-key", message, "leave it out, or change type")


def _check_address(document: Document, name: str, url: str) -> None:
    """A webhook carries what is decided on: https, or this machine."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    place = ("notices", name, "url")
    if parts.scheme not in {"http", "https"} or not host or parts.username is not None or parts.fragment:
        hint = "write it as https://host/path, without user name and fragment"
        document.object_to(place, "bad-value", f"url of notice {name!r} is no web address", hint)
    elif parts.scheme == "http" and not is_loopback(host):
        message = f"url of notice {name!r} is not protected: whoever is on the way could read and change it"
        document.object_to(place, "insecure-url", message, "use https; plain http is for this machine alone")
