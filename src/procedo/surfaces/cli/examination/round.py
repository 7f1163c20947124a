"""The round: looks at one thing after the other, and starts side by side what has to be started."""

import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from procedo.errors import ProcedoError
from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.examination import equipment, machine, servers, store, workspace
from procedo.surfaces.cli.examination.entries import entries, starts, surveyed
from procedo.surfaces.cli.examination.finding import OK, PROBLEM, WARNING, Finding, told, unseen
from procedo.surfaces.cli.examination.store import Contents

if TYPE_CHECKING:
    from procedo.config import Settings
    from procedo.surfaces.cli.installation.survey import Seen

__all__ = ["examine"]

_ALTOGETHER_S: Final = 20.0
_Look = Callable[[], Awaitable[Iterator[Finding]]]


def _of_settings(call: Call, settings: "Settings") -> list[Finding]:
    looks: Mapping[str, Callable[[], Iterator[Finding]]] = {
        "procedures": lambda: workspace.procedures(call),
        "notices": lambda: workspace.routes(settings),
        "agents": lambda: equipment.files(settings),
        "keys": lambda: equipment.keys(settings, call.environ),
        "programs": lambda: equipment.programs(settings, call.environ),
        "sandbox": lambda: equipment.sandbox(settings),
        "disk": lambda: store.place(settings.data_dir),
    }
    return [finding for about, look in looks.items() for finding in told(about, look)]


async def _contents(call: Call, settings: "Settings", *, there: bool) -> Contents:
    if not there:
        return Contents([Finding("store", OK, f"none yet; the first run makes it in {settings.data_dir}")])
    try:
        older = list(store.older(settings))
        if older:
            return Contents(older)
        return await store.contents(call)
    except ProcedoError as error:
        return Contents([Finding("store", PROBLEM, error.message, error.hint)])
    except OSError as error:
        return Contents([unseen("store", error)])


async def _side_by_side(looks: Mapping[str, _Look], say: Callable[[str], None]) -> list[Finding]:
    """Every look at once; one that takes too long is given up, and that is said."""
    found: dict[str, list[Finding]] = {}
    waiting = dict.fromkeys(looks)

    async def looked(name: str, look: _Look) -> None:
        found[name] = [*await look()]
        del waiting[name]
        say(f"waiting for {', '.join(waiting)}" if waiting else "")

    with anyio.move_on_after(_ALTOGETHER_S):
        async with anyio.create_task_group() as group:
            for name, look in looks.items():
                group.start_soon(looked, name, look)
            say(f"starting {', '.join(looks)}")
    late = [Finding("start", WARNING, f"{name} did not answer within {_ALTOGETHER_S:g} s") for name in waiting]
    return [*(finding for name in looks for finding in found.get(name, ())), *late]


async def _tried(
    call: Call, settings: "Settings", seen: tuple["Seen", ...], say: Callable[[str], None], there: bool
) -> list[Finding]:
    """What needs an open store, or starts something."""
    held = await _contents(call, settings, there=there)
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder)
        looks: dict[str, _Look] = {
            name: lambda name=name, how=how: servers.our_start(name, how, call.environ, empty)  # type: ignore[misc]
            for name, how in starts(seen, settings.root).items()
        }
        for table in servers.agents_servers(settings):
            looks[f"the server {table.name!r}"] = lambda table=table: servers.agents_server(  # type: ignore[misc]
                settings, table, call.environ, held.pins
            )
        return [*held.findings, *await _side_by_side(looks, say)]


def examine(call: Call, say: Callable[[str], None]) -> list[Finding]:
    """Look at everything; what depends on something that is wrong is left out. `say` hears what is being waited for."""
    from procedo.config import load

    findings = [*machine.versions(), *machine.command(call), *told("workspace", lambda: workspace.workspace(call))]
    last = [*machine.clock(datetime.now(UTC)), *machine.terminal(call)]
    if any(finding.about == "workspace" and finding.state != OK for finding in findings):
        return findings + last
    root = call.workspace()
    configuration = told("configuration", lambda: workspace.configuration(load(root)))
    seen = surveyed(call, root)
    findings += [*configuration, *told("hosts", lambda: entries(seen, root))]
    if configuration[0].state == OK:
        settings = load(root)
        findings += _of_settings(call, settings)
        findings += anyio.run(_tried, call, settings, seen, say, store.there(settings.data_dir))
    return findings + last
