"""Our entries in the hosts of this machine."""

import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.examination.finding import OK, PROBLEM, WARNING, Finding
from procedo.surfaces.cli.installation.entry import START, Started, State, Wanted
from procedo.surfaces.cli.installation.hosts import Surroundings
from procedo.surfaces.cli.installation.survey import Entry, Seen, survey

__all__ = ["entries", "starts", "surveyed"]

_NAME = "procedo"
_STATES = {State.CURRENT: OK, State.ELSEWHERE: OK, State.OTHER_PROGRAM: WARNING, State.BROKEN: PROBLEM}


def surveyed(call: Call, root: Path) -> tuple[Seen, ...]:
    """How every host stands."""
    wanted = Wanted(os.path.abspath(sys.executable), str(root))  # noqa: PTH100  # the link of a virtual environment stays
    return tuple(survey(Surroundings(call.environ, call.cwd), wanted))


def entries(seen: Sequence[Seen], root: Path) -> Iterator[Finding]:
    """Whether what stands in each host leads to a program and a workspace that are there."""
    none = True
    for host in seen:
        for entry in host.entries:
            none = False
            yield _found(host, entry, root)
    if none:
        here = ", ".join(host.host.name for host in seen if host.here)
        hint = f"See: procedo install{f' (found here: {here})' if here else ''}"
        yield Finding("hosts", WARNING, "no host on this machine has an entry for procedo", hint)


def _found(seen: Seen, entry: Entry, root: Path) -> Finding:
    state = PROBLEM if entry.how is None else _STATES[State(entry.state)]
    which = f", {entry.name!r}" if entry.name not in ("", _NAME) else ""
    found = f"{seen.host.title}, {entry.file}{which}: {entry.why or entry.state}"
    mend = f"Write it anew with: procedo install {seen.host.name}{_options(entry, root)}"
    return Finding("hosts", state, found, "" if state == OK else mend if entry.how else "Mend that place.")


def _options(entry: Entry, root: Path) -> str:
    """What makes the command write this very entry, for the workspace that it has as long as that is there."""
    words = [] if entry.scope == "user" else ["--scope", str(entry.scope)]
    if entry.name != _NAME:
        words += ["--name", entry.name]
    of = None if entry.how is None else entry.how.workspace
    if of and of != str(root) and Path(of).is_dir():
        words += ["--workspace", of]
    return "".join(f" {shlex.quote(word)}" for word in words)


def starts(seen: Sequence[Seen], root: Path) -> Mapping[str, Started]:
    """What is to be started on trial, each different command once: this installation, and those of hosts."""
    own = Started(sys.executable, START, str(root), (), {})
    found = {"this installation": own}
    known = {(own.command, own.args)}
    for host in seen:
        for entry in host.entries:
            how = entry.how
            if how is None or entry.state == State.BROKEN:
                continue
            command = (how.command, how.args[: how.args.index("serve") + 1])
            if command not in known or how.env:
                known.add(command)
                found[f"the entry of {host.host.title}"] = how
    return found
