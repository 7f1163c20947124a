"""Puts this server into the configuration of an MCP host, and takes it out again with --remove.

The host starts the interpreter that runs this command, by its full path, in the workspace. Other servers, comments
and layout of the file stay as they are, and a copy of it is left beside it. Without HOST: the hosts of this machine,
and how they stand.
"""

import os
import re
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from procedo.errors import BadArgument
from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.installation.hosts import HOSTS, Host, Scope, Surroundings, host_file

if TYPE_CHECKING:
    from procedo.surfaces.cli.installation.change import Change
    from procedo.surfaces.cli.installation.entry import Wanted
    from procedo.surfaces.cli.installation.file import HostFile
    from procedo.surfaces.cli.installation.survey import Entry, Seen

EXAMPLES = (
    "procedo install  # which hosts are here, and how they stand",
    "procedo install claude-code",
    "procedo install cursor --scope project --dry-run",
    "procedo install claude-desktop --workspace /srv/operations --name operations",
    "procedo install zed --remove",
)
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET: Final = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
_PASSING: Final = re.compile(r"[\\/](?:uv[\\/]archive-v|uv[\\/](?:cache|builds)|pipx[\\/]\.cache|tmp[\\/]\.?uv)")
_STYLES: Final = {"installed": "green", "broken": "red", "unreadable": "red"}
_WORDS: Final = {"added": "added", "updated": "updated", "none": "already", "removed": "removed"}


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument("host", metavar="HOST", nargs="?", choices=tuple(HOSTS), help=", ".join(HOSTS))
    parser.add_argument(
        "--scope", choices=[*map(str, Scope)], default="user", help="for you everywhere (user), or in this folder"
    )
    parser.add_argument("--name", default="procedo", help="what the server is called there (procedo)")
    parser.add_argument(
        "--env", metavar="NAME=VALUE", action="append", default=[], help="a variable for the server; repeatable"
    )
    parser.add_argument("--remove", action="store_true", help="take our entry out again")
    parser.add_argument("--dry-run", action="store_true", help="show the change, and write nothing")


def _variables(words: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not _VARIABLE.fullmatch(name):
            raise BadArgument("bad_argument", f"--env {word!r} is no NAME=VALUE.", "Write it as --env LANG=de_DE.UTF-8")
        if name in {"PROCEDO_TOKEN", "PROCEDO_WORKSPACE"}:
            message = f"--env {name} has no place in a host's entry."
            raise BadArgument(
                "bad_argument", message, "A server acts for whoever calls it; name the folder: --workspace"
            )
        found[name] = value
    return found


def _checked(call: Call) -> Host | None:
    if call["host"] is None:
        if call["remove"] or call["dry_run"] or call["env"]:
            raise BadArgument("bad_argument", "These options want a host.", f"One of: {', '.join(HOSTS)}")
        return None
    host = HOSTS[call["host"]]
    if Scope(call["scope"]) not in host.scopes:
        raise BadArgument("bad_argument", f"{host.title} has no servers of a project.", "Leave --scope out.")
    if not _NAME.fullmatch(call["name"]):
        message = f"{call['name']!r} is no name that every host takes."
        raise BadArgument("bad_argument", message, "Use letters, digits, - and _.")
    return host


def _wanted(call: Call, *, existing: bool) -> "Wanted":
    from procedo.surfaces.cli.installation.entry import Wanted

    workspace = call.workspace()
    if existing and not workspace.is_dir():
        message = f"There is no workspace yet: {workspace} does not exist."
        raise BadArgument("no_workspace", message, "Make one with `procedo new NAME`, or name one: --workspace DIR.")
    for path in (sys.executable, str(workspace)):
        if not path or not path.isprintable():
            raise BadArgument("bad_argument", f"The path {path!r} cannot be written.", "Use one of plain text.")
    return Wanted(os.path.abspath(sys.executable), str(workspace), _variables(call["env"]))  # noqa: PTH100  # a venv's link stays


def _remarks(host: Host, wanted: "Wanted", scope: Scope) -> Iterator[str]:
    """What the person had better know about the entry that was written."""
    from procedo.surfaces.cli.versions import installed

    if installed("procedo") is None:
        yield f"procedo is not installed in {wanted.interpreter}, so the host cannot start it: install it there first."
    if _PASSING.search(wanted.interpreter):
        yield f"{wanted.interpreter} is cleaned away some day: install procedo for good, then run this again."
    if scope is Scope.PROJECT:
        yield "The file names paths of this machine: do not share it as it is."
    for name in wanted.env:
        if _SECRET.search(name):
            yield f"{name} now stands in that file in plain text; procedo.toml can refer to a file or keyring instead."
    written = [wanted.interpreter, wanted.workspace, *wanted.env.values()]
    if host.expands and any("$" in text for text in written):
        yield f"{host.title} replaces what follows a $ in these values."


def _file_value(call: Call, host: Host, scope: Scope, file: "HostFile", change: "Change") -> dict[str, object]:
    return {
        "host": host.name,
        "scope": str(scope),
        "file": str(file.path),
        "name": call["name"],
        "change": change.kind,
        "dry_run": call["dry_run"],
        "by_hand": list(change.by_hand),
    }


def _carry_out(call: Call, host: Host) -> int:
    from procedo.surfaces.cli.installation.change import added, removed
    from procedo.surfaces.cli.installation.file import read
    from procedo.surfaces.cli.installation.file import replace as put_in_place

    scope = Scope(call["scope"])
    wanted = _wanted(call, existing=not call["remove"])
    file = read(host_file(host, scope, Surroundings(call.environ, call.cwd)))
    change = (removed if call["remove"] else added)(file, host, call["name"], wanted)
    value = _file_value(call, host, scope, file, change)
    if change.kind != "none" and call["dry_run"]:
        diff = change.diff(file.path, file.data is None)
        call.output.value({**value, "diff": diff}) if call.json else call.output.line(diff.rstrip("\n"))
        return 0
    backup = None if change.kind == "none" else put_in_place(file, change.after, datetime.now(UTC))
    remarks = [] if call["remove"] else [*_remarks(host, wanted, scope)]
    then = _next(host, change)
    if call.json:
        call.output.value({**value, "backup": str(backup) if backup else None, "remarks": remarks, "then": then})
        return 0
    _tell(call, host, file, change, backup)
    for remark in remarks:
        call.output.line(f"{call.output.style('yellow', 'note')}  {remark}")
    if then:
        call.output.line(f"next  {then}")
    if then and change.kind != "removed":
        call.output.line("      procedo doctor starts the server as the host will, and says what is wrong.")
    return 0


def _next(host: Host, change: "Change") -> str:
    if change.kind == "removed":
        return f"{host.title} is without it from its next start on."
    return "" if change.kind == "none" else host.then


def _tell(call: Call, host: Host, file: "HostFile", change: "Change", backup: Path | None) -> None:
    out = call.output
    word = "not there" if change.kind == "none" and call["remove"] else _WORDS[change.kind]
    out.line(f"{out.style('green', word)}  {call['name']!r} in {host.title}: {file.path}")
    rows = [("backup", str(backup))] if backup else []
    if change.by_hand:
        kept = "kept" if change.kind == "updated" else "in the backup"
        rows.append(("also held", f"{', '.join(change.by_hand)} ({kept})"))
    out.pairs(rows)


def _row(seen: "Seen", entry: "Entry | None") -> tuple[str, str, str]:
    if entry is None:
        return seen.host.name, "not installed", f"procedo install {seen.host.name}"
    named = f"{entry.name!r} " if entry.name != "procedo" and entry.name else ""
    place = f"{named}{entry.file}" + (f" ({entry.scope})" if entry.scope is Scope.PROJECT else "")
    return seen.host.name, entry.state, f"{place}: {entry.why}" if entry.why else place


def _list(call: Call) -> int:
    from procedo.surfaces.cli.installation.survey import survey

    wanted = _wanted(call, existing=False)
    found = [*survey(Surroundings(call.environ, call.cwd), wanted)]
    if call.json:
        call.output.value({"workspace": wanted.workspace, "hosts": [seen.value() for seen in found]})
        return 0
    here = [seen for seen in found if seen.here or seen.entries]
    rows = [_row(seen, entry) for seen in here for entry in (seen.entries or (None,))]
    if rows:
        call.output.table(("host", "state", "where"), rows)
    absent = [seen.host.name for seen in found if seen not in here]
    if absent:
        call.output.line(f"not found here: {', '.join(absent)}")
    return 0


def run(call: Call) -> int:
    """Install, remove, or list."""
    host = _checked(call)
    return _list(call) if host is None else _carry_out(call, host)
