"""Names of tools in profiles, checked as far as they can be before a server is asked.

A name is a built-in tool or `<server>__<tool>`; what the server has is known
when an agent is assembled, and an unknown tool is refused then. `<server>__*` means every tool of it.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from procedo.config.agent_settings import AgentSettings
from procedo.config.document import Document

__all__ = ["BUILT_IN", "CONTROL", "EVERYTHING", "check", "objection"]

BUILT_IN: Final = ("file_read", "file_write", "file_edit", "file_list", "file_search", "http_request", "shell")
"""The tools that procedo brings."""

CONTROL: Final = (
    "sop_list",
    "sop_describe",
    "sop_start",
    "sop_advance",
    "sop_approve",
    "sop_resume",
    "sop_status",
    "sop_cancel",
)
"""The control tools of procedo, which no agent has in this version."""

EVERYTHING: Final = ("*", "all")
"""What stands for every tool. It has to be written."""

_ANY: Final = frozenset({"allowed_tools", "excluded_tools"})


def objection(name: str, servers: Iterable[str], *, everything: bool = False) -> str | None:
    """Why a name can be no tool, as a hint; None when it can be one."""
    if name in CONTROL:
        return "agents have no control tools in this version; a step with `sop:` starts another procedure"
    known = list(BUILT_IN)
    if name in known or (everything and name in EVERYTHING):
        return None
    server, cut, tool = name.partition("__")
    if cut and tool and server in servers:
        return None if tool == "*" or "*" not in tool else "a * stands alone: server__*"
    if cut:
        near = get_close_matches(server, list(servers), n=1)
        return f"did you mean {near[0]}__{tool}?" if near else f"servers: {', '.join(servers) or 'none'}"
    near = get_close_matches(name, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(BUILT_IN)}, and <server>__<tool>"


def check(document: Document, known: AgentSettings) -> None:
    """Object to every name in a profile that can be no tool."""
    for profile in known.risks.values():
        lists = {
            "allowed_tools": profile.allowed_tools,
            "excluded_tools": profile.excluded_tools,
            "auto_approve": profile.auto_approve,
            "always_ask": profile.always_ask,
        }
        for key, names in lists.items():
            _check_list(document, known, ("risk_profiles", profile.name, key), names, everything=key in _ANY)
    for runtime in known.runtimes.values():
        place = ("runtime_profiles", runtime.name, "tool_call_dedup_exempt")
        _check_list(document, known, place, runtime.dedup_exempt, everything=False)
        for number, group in enumerate(runtime.groups):
            _check_group(document, known, ("runtime_profiles", runtime.name, "tool_filter_groups", number), group.tools)


def _check_list(
    document: Document, known: AgentSettings, place: tuple[str, ...], names: tuple[str, ...], *, everything: bool
) -> None:
    for name in names:
        if (hint := objection(name, known.servers, everything=everything)) is not None:
            document.object_to(place, "unknown-tool", f"{place[-1]} names {name!r}, which can be no tool", hint)


def _check_group(
    document: Document, known: AgentSettings, place: tuple[str | int, ...], names: tuple[str, ...]
) -> None:
    for name in names:
        server, _, tool = name.partition("__")
        if name.count("*") > 1:
            document.object_to((*place, "tools"), "bad-pattern", f"{name!r} has more than one *", "write one at most")
        elif "*" not in server and (not tool or server not in known.servers):
            hint = (
                f"concerns tools of MCP servers only: <server>__<tool>; servers: {', '.join(known.servers) or 'none'}"
            )
            document.object_to((*place, "tools"), "unknown-tool", f"{name!r} can be no tool of a server", hint)
