"""Working out a change of one host's file: the new text, and what is to be said about it. Writes nothing."""

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from procedo.core.altered import altered
from procedo.errors import InvalidConfig, Refused
from procedo.surfaces.cli.installation import jsonedit, jsonscan, tomledit
from procedo.surfaces.cli.installation.entry import Started, Wanted, started
from procedo.surfaces.cli.installation.file import HostFile
from procedo.surfaces.cli.installation.hosts import Form, Host
from procedo.surfaces.cli.installation.malformed import Malformed

__all__ = ["Change", "Kind", "added", "removed", "servers_in"]

Kind: TypeAlias = Literal["added", "updated", "none", "removed"]
_LEFT_ALONE: Final = "Mend that place, or take the file away; nothing was changed."


class Change(Struct, frozen=True):
    """A change that may be made: the text before and after. `by_hand` names what people had put into our entry."""

    kind: Kind
    before: str
    after: str
    by_hand: tuple[str, ...] = ()

    def diff(self, path: Path, newly: bool) -> str:
        """The change as a unified diff."""
        old, new = self.before.splitlines(keepends=True), self.after.splitlines(keepends=True)
        lines = difflib.unified_diff(old, new, "/dev/null" if newly else str(path), str(path))
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _malformed(file: HostFile, host: Host, error: Malformed) -> InvalidConfig:
    message = f"{file.path}:{error.line}:{error.column}: {error.message}."
    return InvalidConfig("cannot_parse", f"{message} {host.title} reads {host.form}.", _LEFT_ALONE)


def servers_in(file: HostFile, host: Host, name: str = "procedo") -> Mapping[str, Any]:
    """The servers that stand in a file, by name.

    Raises `InvalidConfig` for one that is malformed, or says twice what its servers, or the one of this name, are.
    """
    try:
        value: Any
        if host.form is Form.TOML:
            value = tomledit.value_of(file.text)
        else:
            value = jsonscan.value_of(file.text, host.form)
            jsonscan.walked(jsonscan.Scan(file.text, host.form), (host.key, name))
        servers = value.get(host.key, {})
        if not isinstance(servers, Mapping):
            raise Malformed(1, 1, f"{host.key} is no object")
    except Malformed as error:
        raise _malformed(file, host, error) from error
    return servers


def _ours(file: HostFile, host: Host, name: str) -> tuple[Mapping[str, Any], Started] | None:
    """The entry of this name and how it starts us; None where there is none. Raises `Refused` for anybody else's."""
    entry = servers_in(file, host, name).get(name)
    if entry is None:
        return None
    how = started(entry)
    if how is None:
        message = f"{file.path} has a server {name!r} already, and it is another one."
        raise Refused("name_taken", message, "Choose another name with --name, or take that one out by hand.")
    return entry, how


def _put(text: str, host: Host, way: tuple[str, ...], value: Any) -> str:
    if host.form is Form.TOML:
        return tomledit.put(text, way, value)
    return jsonedit.put(text, host.form, way, value)


def added(file: HostFile, host: Host, name: str, wanted: Wanted) -> Change:
    """Put our entry in, or bring it up to date; what people added to it stays.

    Raises `InvalidConfig` for a file that is malformed, and `Refused` when the name is somebody else's.
    """
    known = _ours(file, host, name)
    text = file.text
    try:
        if known is None and host.form is not Form.TOML:
            text = _put(text, host, (host.key, name), wanted.value(host))
        else:
            wanted = altered(wanted, more=known[1].more) if known else wanted
            for way, value in wanted.leaves(host):
                text = _put(text, host, (host.key, name, *way), value)
    except Malformed as error:
        raise _malformed(file, host, error) from error
    if text == file.text:
        return Change("none", text, text)
    by_hand = tuple(_additions(known[0], wanted, host)) if known else ()
    return Change("updated" if known else "added", file.text, text, by_hand)


def removed(file: HostFile, host: Host, name: str, wanted: Wanted) -> Change:
    """Take our entry out, and nothing else. `by_hand` of the change says what it had beside what we write."""
    known = _ours(file, host, name)
    if known is None:
        return Change("none", file.text, file.text)
    path = (host.key, name)
    try:
        toml = host.form is Form.TOML
        text = tomledit.take_out(file.text, path) if toml else jsonedit.take_out(file.text, host.form, path)
    except Malformed as error:
        raise _malformed(file, host, error) from error
    return Change("removed", file.text, text, tuple(_additions(known[0], wanted, host)))


def _additions(entry: Mapping[str, Any], wanted: Wanted, host: Host) -> list[str]:
    """What an entry has that we did not write: keys, variables, arguments."""
    ours = {way[0] for way, _ in wanted.leaves(host)} | {"type"}
    found = [key for key, value in entry.items() if key not in ours and key != "env" and value not in ({}, [])]
    how = started(entry)
    if how is None:
        return found
    found += [f"env.{name}" for name in how.env if name not in wanted.env]
    return found + list(how.more)
