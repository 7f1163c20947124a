"""Names and digests of tools: one rule for what is offered, what is pinned, and what a name in a list means."""

import re
from collections.abc import Iterable
from typing import Final

from procedo.agents.parts import Origin, ToolId
from procedo.config.tool_names import EVERYTHING
from procedo.core.model import Json, Scope
from procedo.core.outputs import digest

__all__ = ["admits", "matches", "named", "offered_name", "schema_digest", "usable_name"]

_USABLE: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


def schema_digest(name: str, description: str, schema: Json) -> str:
    """The digest that a tool is pinned by. What it says of itself counts: a description instructs a model."""
    return digest({"name": name, "description": description, "input": schema})


def offered_name(server: str, name: str) -> str:
    """The name under which a server's tool is offered."""
    return f"{server}__{name}"


def usable_name(offered: str) -> bool:
    """True for a name that every provider takes."""
    return _USABLE.fullmatch(offered) is not None


def matches(entry: str, identity: ToolId) -> bool:
    """True when an entry of a list means this tool."""
    if identity.origin is Origin.MCP:
        if entry in EVERYTHING:
            return True
        # A server's name holds no `__`, so the first one ends it, whatever the tool is called.
        server, cut, name = entry.partition("__")
        return bool(cut) and server == identity.server and name in {"*", identity.name}
    return entry in EVERYTHING or entry == identity.name


def named(entries: Iterable[str], identity: ToolId) -> bool:
    """True when one of the entries means this tool."""
    return any(matches(entry, identity) for entry in entries)


def admits(scope: Scope, identity: ToolId) -> bool:
    """True when a scope lets a tool through. No `allow` narrows nothing, an empty one admits nothing, deny wins."""
    if any(matches(entry, identity) for entry in scope.deny):
        return False
    return scope.allow is None or named(scope.allow, identity)
