"""What `doctor` looks at: versions, workspace, configuration, procedures, store, terminal."""

import asyncio
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any, Final

from procedo.errors import InvalidConfig, ProcedoError
from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.library import opened
from procedo.surfaces.cli.output import duration
from procedo.surfaces.cli.person import operator
from procedo.surfaces.cli.terminal import has_controlling_terminal
from procedo.surfaces.cli.versions import installed, procedo_version

if TYPE_CHECKING:
    from collections.abc import Sequence

    from procedo.config import Settings
    from procedo.core.notice import Telling

__all__ = ["BROKEN", "Finding", "examine"]

OK: Final = "ok"
WARNING: Final = "warning"
BROKEN: Final = "broken"
_OLDEST_PYTHON: Final = (3, 11)
_IDLE: Final = timedelta(seconds=30)
"""How long work may wait before it is said that nobody does it."""
_GATES_WAIT: Final = "The gates wait all the same: procedo inbox lists them."
_MOST_NOTICES: Final = 10
_OLDEST_SQLITE: Final = (3, 37, 0)
"""The first SQLite with strict tables."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    about: str
    state: str
    found: str
    hint: str = ""

    def value(self) -> dict[str, Any]:
        """The finding as JSON."""
        return asdict(self)


def _versions() -> Iterator[Finding]:
    yield Finding("procedo", OK, f"{procedo_version()} on Python {sys.version.split()[0]} ({sys.executable})")
    if sys.version_info < _OLDEST_PYTHON:
        yield Finding("python", BROKEN, f"Python {sys.version.split()[0]} is too old", "Install Python 3.11 or newer.")
    mcp = installed("mcp")
    if mcp is None:
        yield Finding("mcp", BROKEN, "the MCP SDK is not installed", "Install procedo anew, with its dependencies.")
    elif int(mcp.split(".")[0]) != 2:
        yield Finding("mcp", BROKEN, f"the MCP SDK is {mcp}, and 2.x is needed", 'Install "mcp>=2.3,<3".')
    else:
        yield Finding("mcp", OK, f"SDK {mcp}")
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        hint = "Use a Python that was built with SQLite 3.37 or newer."
        yield Finding("sqlite", BROKEN, f"SQLite {sqlite3.sqlite_version} has no strict tables", hint)
    else:
        yield Finding("sqlite", OK, f"SQLite {sqlite3.sqlite_version}")


def _command() -> Iterator[Finding]:
    found = which("procedo")
    if found is None:
        hint = f"Tell the MCP host the absolute command: {sys.executable} -m procedo serve"
        yield Finding("command", WARNING, "no `procedo` on the PATH", hint)
    else:
        yield Finding("command", OK, f"{found}  (graphical hosts want this absolute path)")


def _workspace(call: Call) -> Iterator[Finding]:
    root = call.workspace()
    if not root.exists():
        hint = "Make it with: procedo new NAME, in the folder where your procedures are to live."
        yield Finding("workspace", WARNING, f"{root} does not exist yet", hint)
        return
    if not os.access(root, os.W_OK | os.X_OK):
        yield Finding("workspace", BROKEN, f"{root} cannot be written to", "Give your account write access to it.")
        return
    yield Finding("workspace", OK, str(root))


def _configuration(settings: "Settings") -> Iterator[Finding]:
    shell = "on" if settings.capabilities.shell.enabled else "off"
    hosts = len(settings.capabilities.http.allowed_hosts)
    facts = (
        f"mode {settings.default_mode}, policies {', '.join(settings.policies)}, shell.exec {shell}, {hosts} http hosts"
    )
    file = settings.root / "procedo.toml"
    yield Finding("configuration", OK, f"{file if file.exists() else 'no procedo.toml, every default holds'}: {facts}")


def _procedures(call: Call) -> Iterator[Finding]:
    library, settings = opened(call)
    entries = library.entries()
    broken = [entry.name for entry in entries if entry.sop is None]
    warned = [entry.name for entry in entries if entry.sop is not None and entry.problems]
    if not entries:
        yield Finding("procedures", WARNING, f"none in {settings.sops_dir}", "Make one with: procedo new NAME")
    elif broken:
        yield Finding("procedures", BROKEN, f"cannot be started: {', '.join(broken)}", "See: procedo check")
    elif warned:
        yield Finding(
            "procedures", WARNING, f"{len(entries)} load, with remarks on {', '.join(warned)}", "See: procedo check"
        )
    else:
        yield Finding("procedures", OK, f"{len(entries)} load without a problem")


async def _opened(call: Call) -> Iterator[Finding]:
    async with call.app() as app:
        counts = await app.runs.counts()
        live = sum(number for status, number in counts.items() if not status.final)
        gates = len(await app.runs.inbox(call.surface()))
        size = sum(file.stat().st_size for file in app.settings.data_dir.glob("*") if file.is_file())
        total = sum(counts.values())
        now = datetime.now(UTC)
        due = await app.store.read(lambda reader: reader.next_job_at(now))
        failed = await call.seen(app).read(lambda reader: reader.tellings())
    found = f"{total} runs, {live} live, {gates} open gates, {size / 1_048_576:.1f} MiB"
    findings = [Finding("store", OK, found)]
    if due is not None and now - due > _IDLE:
        hint = "Start `procedo serve` through your MCP host, or drive one run with: procedo resume RUN"
        findings.append(
            Finding("worker", WARNING, f"work has been waiting for {duration((now - due).total_seconds())}", hint)
        )
    return iter([*findings, *_untold(failed)])


def _routes(settings: "Settings") -> Iterator[Finding]:
    """Whether people can be told about gates."""
    from procedo.notices.delivery import Delivery
    from procedo.notices.means import Means

    means = Means(os.environ, settings.root, lambda: datetime.now(UTC))
    objections = Delivery(settings.notices, means).objections()
    used = settings.notices.routing.named(settings.policies.values())
    for name, route in settings.notices.routes.items():
        if name in objections:
            yield Finding("notices", WARNING, f"{name!r} cannot be delivered: {objections[name]}", _GATES_WAIT)
        elif name not in used:
            hint = f'Name it: request_route = "{name}" in [sop.approval], a group or a policy.'
            yield Finding("notices", WARNING, f"{name!r} is named by nothing, so nobody is told over it", hint)
        else:
            yield Finding("notices", OK, f"{name!r} ({route.type})")


def _untold(failed: "Sequence[Telling]") -> Iterator[Finding]:
    for one in failed[-_MOST_NOTICES:]:
        ended = "given up" if one.given_up else "it is tried again"
        found = f"{one.route!r} was not told that gate {one.gate_id} is {one.occasion}: {one.error} ({ended})"
        yield Finding("notices", WARNING, found, _GATES_WAIT)


def _store(call: Call, data_dir: Path) -> Iterator[Finding]:
    if not data_dir.exists():
        yield Finding("store", OK, f"none yet; the first run makes it in {data_dir}")
        return
    yield from asyncio.run(_opened(call))


def _terminal(call: Call) -> Iterator[Finding]:
    who = operator()
    if has_controlling_terminal():
        yield Finding("terminal", OK, f"you can decide gates from here, as {who}")
    else:
        hint = "Open a terminal of your own to approve or deny; everything else works from here."
        yield Finding("terminal", WARNING, f"no controlling terminal: {who} cannot decide gates from here", hint)
    encoding = getattr(call.output.stream, "encoding", "utf-8") or "utf-8"
    if encoding.replace("-", "").casefold() != "utf8":
        yield Finding(
            "encoding", WARNING, f"output is {encoding}", "Set PYTHONUTF8=1, so that no character is escaped."
        )


def _told(about: str, look: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """What a look found; a look that fails is itself a finding."""
    try:
        return list(look())
    except ProcedoError as error:
        problems = "".join(f"\n{problem}" for problem in error.problems) if isinstance(error, InvalidConfig) else ""
        return [Finding(about, BROKEN, f"{error.message}{problems}", error.hint)]


def examine(call: Call) -> list[Finding]:
    """Look at everything; what depends on something broken is left out."""
    from procedo.config import load

    findings = [*_versions(), *_command(), *_told("workspace", lambda: _workspace(call))]
    terminal = [*_terminal(call)]
    if any(finding.about == "workspace" and finding.state != OK for finding in findings):
        return findings + terminal
    root = call.workspace()
    configuration = _told("configuration", lambda: _configuration(load(root)))
    findings += configuration
    if configuration[0].state == OK:
        settings = load(root)
        findings += _told("procedures", lambda: _procedures(call))
        findings += _told("notices", lambda: _routes(settings))
        findings += _told("store", lambda: _store(call, settings.data_dir))
    return findings + terminal
