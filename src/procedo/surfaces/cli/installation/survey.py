"""Looking over this machine: which hosts are here, and how our entries in them stand. Changes nothing."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from procedo.errors import ProcedoError
from procedo.surfaces.cli.installation.change import servers_in
from procedo.surfaces.cli.installation.entry import Started, Wanted, started, state_of
from procedo.surfaces.cli.installation.file import read
from procedo.surfaces.cli.installation.hosts import HOSTS, Host, Scope, Surroundings, host_file, host_folders

__all__ = ["Entry", "Seen", "survey"]


class Entry(Struct, frozen=True):
    """One of our entries: where it stands, how, and why. `how` None: its file could not be read."""

    scope: Scope
    file: Path
    name: str
    state: str
    why: str
    how: Started | None

    def value(self) -> dict[str, Any]:
        """The entry as JSON."""
        workspace = None if self.how is None else self.how.workspace
        return {
            "scope": str(self.scope),
            "file": str(self.file),
            "name": self.name,
            "state": self.state,
            "why": self.why,
            "workspace": workspace,
        }


class Seen(Struct, frozen=True):
    """One host, whether it is on this machine, and our entries in it."""

    host: Host
    here: bool
    entries: tuple[Entry, ...]

    def value(self) -> dict[str, Any]:
        """The host as JSON."""
        entries = [entry.value() for entry in self.entries]
        return {"host": self.host.name, "title": self.host.title, "here": self.here, "entries": entries}


def survey(around: Surroundings, wanted: Wanted) -> Iterator[Seen]:
    """Look at every host. `wanted` is the entry that would be made now."""
    for host in HOSTS.values():
        entries = [entry for scope in host.scopes for entry in _entries(host, scope, around, wanted)]
        yield Seen(host, _is_here(host, around), tuple(entries))


def _is_here(host: Host, around: Surroundings) -> bool:
    programs = [place for place in host.found if place[0] != "~"]
    path = around.environ.get("PATH", "")
    return any(folder.is_dir() for folder in host_folders(host, around)) or any(
        shutil.which(program, path=path) for program in programs
    )


def _entries(host: Host, scope: Scope, around: Surroundings, wanted: Wanted) -> Iterator[Entry]:
    place = host_file(host, scope, around)
    try:
        file = read(place)
        servers = {} if file.data is None else servers_in(file, host)
    except ProcedoError as error:
        yield Entry(scope, place, "", "unreadable", error.message, None)
        return
    for name, entry in servers.items():
        how = started(entry)
        if how is not None:
            state, why = state_of(how, wanted)
            yield Entry(scope, file.path, name, str(state), why, how)
