"""Starting what has to start: the MCP servers of agents, and ourselves as each host starts us."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from procedo.causes import causes
from procedo.core.altered import altered
from procedo.surfaces.cli.examination.finding import OK, PROBLEM, WARNING, Finding

if TYPE_CHECKING:
    from procedo.agents.parts import ServerBinding
    from procedo.agents.servers.link import Listed
    from procedo.config import Settings
    from procedo.config.agent_settings import ServerTable
    from procedo.surfaces.cli.installation.entry import Started

__all__ = ["agents_server", "agents_servers", "our_start"]

_LONGEST_S: Final = 15.0
_SLOW: Final = "did not answer within"
"""A busy machine is no fault of what is started."""
_BARE_PATH: Final = "/usr/bin:/bin:/usr/sbin:/sbin"
"""What a graphical program has as PATH where nobody gave it more."""
_HOME: Final = ("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "SYSTEMROOT", "TEMP", "TMPDIR")


async def _listed(server: "ServerBinding", environ: Mapping[str, str], root: Path) -> "Listed":
    """The tools of a server, which is ended again. Raises `Unreachable`."""
    from procedo.agents.servers.link import Link

    link = Link(server, environ, root)
    async with anyio.create_task_group() as group:
        try:
            await link.open(group)
        finally:
            link.close()
    return link.listed


def agents_servers(settings: "Settings") -> tuple["ServerTable", ...]:
    """The servers that an agent may have."""
    known = settings.agents
    if not known.mcp:
        return ()
    bundles = [known.bundles[name] for agent in known.agents.values() for name in agent.bundles if agent.enabled]
    named = {name for bundle in bundles for name in bundle.servers if name not in bundle.exclude}
    return tuple(table for name, table in known.servers.items() if name in named)


async def agents_server(
    settings: "Settings", table: "ServerTable", environ: Mapping[str, str], pins: Mapping[tuple[str, str], str]
) -> Iterator[Finding]:
    """Whether one server starts, and whether its tools are what live sessions hold."""
    from procedo.agents.scope import binding
    from procedo.agents.servers.link import Unreachable, schema_of

    server = binding(table)
    server = altered(server, connect_timeout_s=min(server.connect_timeout_s, _LONGEST_S))
    try:
        listed = await _unwrapped(server, environ, settings.root)
    except Unreachable as error:
        state = PROBLEM if table.required else WARNING
        hint = "A step of an agent that needs it is refused." if table.required else "It is optional: agents work on."
        return iter([Finding("servers", state, f"{table.name!r} cannot be reached: {error}", hint)])
    present = {name: schema_of(tool) for name, tool in listed.items()}
    held = {tool: digest for (name, tool), digest in pins.items() if name == table.name}
    changed = sorted(tool for tool, digest in held.items() if present.get(tool) != digest)
    if changed:
        hint = "Sessions that hold them use them no more; start the step anew: procedo resume RUN --retry STEP"
        found = f"{table.name!r} changed tools that a session holds: {', '.join(changed)}"
        return iter([Finding("servers", WARNING, found, hint)])
    return iter([Finding("servers", OK, f"{table.name!r} answers with {len(listed)} tools")])


async def _unwrapped(server: "ServerBinding", environ: Mapping[str, str], root: Path) -> "Listed":
    """As `_listed`, its error being the error itself and no group of one."""
    from procedo.agents.servers.link import Unreachable

    try:
        return await _listed(server, environ, root)
    except BaseExceptionGroup as group:
        for error in causes(group):
            if isinstance(error, Unreachable):
                raise error from None
        raise


async def our_start(called: str, how: "Started", environ: Mapping[str, str], folder: Path) -> Iterator[Finding]:
    """Whether an entry starts a server that answers, with nothing but what a host of the desktop gives it.

    It is started in an empty folder, so that it does no work of the workspace.
    """
    from procedo.agents.parts import ServerBinding, Transport
    from procedo.agents.servers.link import Unreachable

    env = {name: environ[name] for name in _HOME if name in environ} | dict(how.env)
    env.pop("PROCEDO_WORKSPACE", None)
    serve = how.args[: how.args.index("serve") + 1]
    server = ServerBinding(
        name=called,
        transport=Transport.STDIO,
        command=how.command,
        args=(*serve, "--workspace", str(folder)),
        env=env,
        url="",
        headers={},
        required=True,
        connect_timeout_s=_LONGEST_S,
        tool_timeout_s=_LONGEST_S,
        pins=(),
    )
    path = environ.get("PATH", "") if sys.platform == "win32" else _BARE_PATH
    try:
        listed = await _unwrapped(server, {"PATH": path}, folder)
    except Unreachable as error:
        if _SLOW in str(error):
            found = f"{called} takes long to start: {error}"
            return iter([Finding("start", WARNING, found, "Look again when the machine has less to do.")])
        hint = "Write it anew with: procedo install HOST. If that does not help, install procedo anew in that Python."
        return iter([Finding("start", PROBLEM, f"{called} does not start from a bare environment: {error}", hint)])
    if "sop_start" not in listed:
        return iter([Finding("start", PROBLEM, f"{called} starts another server", "See: procedo install")])
    return iter([Finding("start", OK, f"{called} starts from a bare environment and answers with {len(listed)} tools")])
