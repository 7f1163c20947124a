"""What stands in a host's configuration about us, and what of it is right."""

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from procedo.surfaces.cli.installation.hosts import Host

__all__ = ["START", "Started", "State", "Wanted", "started", "state_of"]

START: Final = ("-P", "-m", "procedo", "serve")
"""What the interpreter is given. `-P`: no module is looked for in the folder that the host happens to have open."""
_MODULE: Final = START[1:]
_PROGRAM: Final = re.compile(r"procedo(\.exe)?", re.IGNORECASE)
_RUNNERS: Final = re.compile(r"(uv|uvx|pipx)(\.exe)?", re.IGNORECASE)


class Wanted(Struct, frozen=True):
    """The entry that is to stand there: the interpreter, the workspace, and variables, all of it absolute."""

    interpreter: str
    workspace: str
    env: Mapping[str, str] = field(default_factory=dict)
    more: tuple[str, ...] = ()
    """Arguments that were added by hand, and stay."""

    def leaves(self, host: Host) -> Iterator[tuple[tuple[str, ...], Any]]:
        """The values of the entry, each with its way: what is ours, and nothing else."""
        if host.typed:
            yield ("type",), "stdio"
        yield ("command",), self.interpreter
        yield ("args",), [*START, "--workspace", self.workspace, *self.more]
        for name, value in self.env.items():
            yield ("env", name), value

    def value(self, host: Host) -> dict[str, Any]:
        """The entry as it is where there was none."""
        value: dict[str, Any] = {}
        for way, leaf in self.leaves(host):
            inner = value
            for key in way[:-1]:
                inner = inner.setdefault(key, {})
            inner[way[-1]] = leaf
        return value


class Started(Struct, frozen=True):
    """How an entry starts procedo. `workspace` None: it is not named; `more` are the other arguments of `serve`."""

    command: str
    args: tuple[str, ...]
    workspace: str | None
    more: tuple[str, ...]
    env: Mapping[str, str]


def _words(value: Any) -> tuple[str, ...] | None:
    if isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(word, str) for word in value):
        return tuple(value)
    return None


def _serving(command: str, args: Sequence[str]) -> int | None:
    """Where `serve` stands in the arguments of something that starts procedo."""
    if "serve" not in args:
        return None
    at = args.index("serve")
    program = re.split(r"[\\/]", command)[-1]
    if _PROGRAM.fullmatch(program) and at == 0:
        return at
    if tuple(args[max(0, at - 2) : at + 1]) == _MODULE:
        return at
    named = at > 0 and re.match(r"procedo(\W|$)", args[at - 1])
    return at if named and _RUNNERS.fullmatch(program) else None


def started(entry: Any) -> Started | None:
    """How an entry starts procedo, or None when it starts something else."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("command"), str):
        return None
    command, args = entry["command"], _words(entry.get("args", []))
    at = None if args is None else _serving(command, args)
    if args is None or at is None:
        return None
    given = entry.get("env")
    env = {name: text for name, text in given.items() if isinstance(text, str)} if isinstance(given, Mapping) else {}
    workspace: str | None = env.get("PROCEDO_WORKSPACE")
    more: list[str] = []
    rest = iter(args[at + 1 :])
    for word in rest:
        if word == "--workspace":
            workspace = next(rest, None)
        elif word.startswith("--workspace="):
            workspace = word.partition("=")[2]
        else:
            more.append(word)
    return Started(command, args, workspace, tuple(more), env)


class State(StrEnum):
    """How an entry stands."""

    CURRENT = "installed"
    ELSEWHERE = "other workspace"
    OTHER_PROGRAM = "other installation"
    BROKEN = "broken"


def state_of(found: Started, wanted: Wanted) -> tuple[State, str]:
    """How an entry stands against the one that is wanted, and why in words."""
    if why := _broken(found):
        return State.BROKEN, why
    if found.workspace is None or Path(found.workspace) != Path(wanted.workspace):
        return State.ELSEWHERE, f"it works in {found.workspace or 'whatever workspace it finds'}"
    if found.command != wanted.interpreter:
        return State.OTHER_PROGRAM, f"it starts {found.command}"
    return State.CURRENT, ""


def _broken(found: Started) -> str:
    program = Path(found.command)
    if program.is_absolute():
        if shutil.which(found.command) is None:
            return f"there is no program {found.command} any more"
    elif shutil.which(found.command) is None:
        return f"there is no program {found.command!r} on the PATH"
    if found.workspace is not None and not Path(found.workspace).expanduser().is_dir():
        return f"there is no folder {found.workspace}"
    return ""
