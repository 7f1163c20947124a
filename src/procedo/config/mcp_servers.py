"""MCP servers and bundles of `procedo.toml`."""

from procedo.config.agent_keys import BUNDLE, SERVERS
from procedo.config.agent_settings import BundleTable, ServerTable
from procedo.config.document import Document
from procedo.core.model import Json

__all__ = ["bundles", "servers"]

_NEEDED = {"stdio": ("command", ("url", "headers")), "http": ("url", ("command", "args", "env"))}


def servers(document: Document) -> tuple[ServerTable, ...]:
    """Every server, in the order of the file. A doubled name is a problem."""
    found: dict[str, ServerTable] = {}
    for place in range(document.count(SERVERS)):
        server = _server(document, place)
        _check_transport(document, server, place)
        alike = [name for name in found if name.casefold() == server.name.casefold()]
        if alike and server.name:
            message = f"two servers are called {alike[0]!r} and {server.name!r}"
            document.object_to(("mcp", "servers", place, "name"), "name-collision", message, "rename one of them")
        found.setdefault(server.name, server)
    return tuple(found.values())


def _server(document: Document, place: int) -> ServerTable:
    def value(name: str) -> Json:
        return document.value(SERVERS, name, place)

    both = set(value("read_only_tools")) & set(value("idempotent_tools"))
    if both:
        message = f"{sorted(both)[0]!r} is both read-only and idempotent"
        document.object_to(("mcp", "servers", place, "idempotent_tools"), "ambiguous", message, "read-only says more")
    return ServerTable(
        name=value("name") or "",
        transport=value("transport"),
        command=value("command") or "",
        args=value("args"),
        env=value("env"),
        url=value("url") or "",
        headers=value("headers"),
        required=value("required"),
        connect_timeout_s=float(value("connect_timeout_secs")),
        tool_timeout_s=float(value("tool_timeout_secs")),
        read_only=value("read_only_tools"),
        idempotent=value("idempotent_tools"),
    )


def _check_transport(document: Document, server: ServerTable, place: int) -> None:
    needed, idle = _NEEDED[server.transport]
    where = ("mcp", "servers", place)
    if not document.stated(SERVERS, needed, place) and not document.broke(SERVERS, needed, place):
        message = f"server {server.name!r} is reached by {server.transport} and has no {needed}"
        document.object_to(where, "missing-key", message, f"add {needed}")
    for key in idle:
        if document.stated(SERVERS, key, place):
            message = f"{key} of server {server.name!r} has no effect, for it is reached by {server.transport}"
            document.object_to((*where, key), "idle-key", message, "leave it out, or change transport")


def bundles(document: Document) -> tuple[BundleTable, ...]:
    """Every bundle."""
    return tuple(
        BundleTable(name, document.value(BUNDLE, "servers", name) or (), document.value(BUNDLE, "exclude", name))
        for name in document.names(BUNDLE)
    )
