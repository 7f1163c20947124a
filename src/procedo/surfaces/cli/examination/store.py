"""The store: whether the record is kept durably, by whom it can be read, and what waits in it."""

import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.examination.finding import OK, PROBLEM, WARNING, Finding
from procedo.surfaces.cli.examination.workspace import GATES_WAIT
from procedo.surfaces.cli.output import duration

if TYPE_CHECKING:
    from procedo.app import App
    from procedo.config import Settings
    from procedo.core.access import Token
    from procedo.core.notice import Telling
    from procedo.ports import Reader

__all__ = ["Contents", "contents", "older", "place", "there"]

_IDLE: Final = timedelta(seconds=30)
"""How long work may wait before it is said that nobody does it."""
_AHEAD: Final = timedelta(minutes=1)
"""How far the record may be ahead of the clock."""
_SOON: Final = timedelta(days=7)
_LITTLE: Final = 200 * 1_048_576
_TOO_LITTLE: Final = 20 * 1_048_576
_MOST: Final = 10
_FAR: Final = frozenset(
    ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "vboxsf", "fuse.sshfs",
     "fuse.rclone", "fuse.s3fs", "davfs", "fuse.glusterfs", "virtiofs")
)  # fmt: skip
"""File systems over a network, on which several processes and a log beside the file are not safe."""


class Contents(Struct, frozen=True):
    """What an open store holds: the findings, and the pins of live sessions by server and tool."""

    findings: Sequence[Finding] = ()
    pins: Mapping[tuple[str, str], str] = field(default_factory=dict)


def place(data_dir: Path) -> Iterator[Finding]:
    """Where the store lies: its disk, its file system, and who may read it."""
    there = data_dir if data_dir.exists() else data_dir.parent
    free = shutil.disk_usage(there).free
    found = f"{free / 1_048_576:,.0f} MiB free at {there}"
    if free < _TOO_LITTLE:
        yield Finding("disk", PROBLEM, found, "Free some space: without it no step is recorded, so none is done.")
    elif free < _LITTLE:
        yield Finding("disk", WARNING, found, "Free some space before it is gone.")
    else:
        yield Finding("disk", OK, found)
    kind = _file_system(there)
    if kind in _FAR:
        hint = "Keep the workspace on a disk of this machine; several processes on a network share can lose writes."
        yield Finding("disk", WARNING, f"{there} lies on a network file system ({kind})", hint)
    if data_dir.exists() and not data_dir.is_dir():
        yield Finding("disk", PROBLEM, f"{data_dir} is no folder", "Move it away: the store is made there.")
    elif sys.platform != "win32" and data_dir.exists():
        yield from _permissions(data_dir)


def _file_system(path: Path) -> str:
    """The kind of file system of a path, as Linux tells it; an empty text elsewhere."""
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return r"\\" if str(path).startswith(r"\\") else ""
    best, kind = "", ""
    for line in mounts.splitlines():
        _, where, name, *_ = line.split(" ")
        where = where.replace(r"\040", " ")
        if len(where) >= len(best) and path.resolve().is_relative_to(where):
            best, kind = where, name
    return kind


def _permissions(data_dir: Path) -> Iterator[Finding]:
    mine = os.getuid()
    for path in (data_dir, *sorted(data_dir.iterdir())):
        status = _status(path)
        if status is None:
            continue
        if status.st_uid != mine:
            yield Finding("permissions", WARNING, f"{path} belongs to another account", "Run procedo as its owner.")
        elif path.name.startswith("procedo.db") and status.st_mode & 0o077:
            yield Finding("permissions", WARNING, f"{path} can be read by others", f"chmod go= {path}")


def _status(path: Path) -> os.stat_result | None:
    """None for a file that is gone: those beside a store come and go with its servers."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def there(data_dir: Path) -> bool:
    """True when opening the store would make no new one. A folder that is none is for the opening to tell."""
    from procedo.app import STORE_FILE

    return (data_dir / STORE_FILE).exists() or (data_dir.exists() and not data_dir.is_dir())


def older(settings: "Settings") -> Iterator[Finding]:
    """A store that is empty or of an earlier version, which is not opened here: that would bring it up to date."""
    from procedo.app import store_versions

    lies, known = store_versions(settings)
    if lies == 0:
        yield Finding("store", OK, "empty; the first run fills it")
    elif lies is not None and lies < known:
        found = f"the store has schema version {lies}, and this procedo brings it to {known} when it starts"
        yield Finding("store", WARNING, found, "End servers of an earlier version first: they cannot read it then.")


async def contents(call: Call) -> Contents:
    """Open the store and look into it. Raises `StoreError` when it cannot be opened as it has to be."""
    async with call.app() as app:
        return await _looked(call, app)


async def _looked(call: Call, app: "App") -> Contents:
    counts = await app.runs.counts()
    live = sum(number for status, number in counts.items() if not status.final)
    gates = len(await app.runs.inbox(call.surface()))
    sizes = (_status(file) for file in app.settings.data_dir.glob("*") if file.is_file())
    size = sum(status.st_size for status in sizes if status is not None)
    now = datetime.now(UTC)
    due = await app.store.read(lambda reader: reader.next_job_at(now))
    newest = await app.store.read(_newest)
    untold = await app.store.read(lambda reader: reader.tellings())
    # Gates of runs that do not exist for this caller are not named.
    failed = await call.seen(app).read(lambda reader: [one for one in untold if reader.run(one.run_id) is not None])
    pins = await app.store.read(_pins)
    found = f"{sum(counts.values())} runs, {live} live, {gates} open gates, {size / 1_048_576:.1f} MiB"
    findings = [Finding("store", OK, found), *_durable(app.settings.data_dir)]
    if due is not None and now - due > _IDLE:
        hint = "Start `procedo serve` through your MCP host, or drive one run with: procedo resume RUN"
        waiting = duration((now - due).total_seconds())
        found = f"work has been waiting for {waiting}: no server runs here, or the one that had it is gone"
        findings.append(Finding("worker", WARNING, found, hint))
    if newest is not None and newest - now > _AHEAD:
        ahead = duration((newest - now).total_seconds())
        hint = "Set the clock: deadlines and the order of the record go by it."
        findings.append(Finding("clock", WARNING, f"the record is {ahead} ahead of this machine's clock", hint))
    return Contents([*findings, *_tokens(await app.tokens.list(), now), *_untold(failed)], pins)


def _durable(data_dir: Path) -> Iterator[Finding]:
    """Whether the file is in the mode in which a commit survives a crash and readers wait for nobody."""
    for file in sorted(data_dir.glob("*.db")):
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
            (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
        if mode != "wal":
            hint = "Close every other program on the file; the next start of procedo sets it right."
            yield Finding("store", WARNING, f"{file.name} is in journal mode {mode}, and wal is wanted", hint)


def _newest(reader: "Reader") -> datetime | None:
    from procedo.ports import Filter

    found = reader.runs(Filter(limit=1))
    return found[0].active_at if found else None


def _pins(reader: "Reader") -> Mapping[tuple[str, str], str]:
    """The tools that sessions still hold, as they were when those began."""
    from procedo.ports import Filter

    found: dict[tuple[str, str], str] = {}
    for run in reader.runs(Filter(live=True, limit=1000)):
        for row in reader.sessions(run.run_id):
            if not row.state.final and isinstance(row.contract, Mapping):
                found |= {(server["name"], pin["name"]): pin["digest"] for server, pin in _held(row.contract)}
    return found


def _held(contract: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    for server in contract["mcp"]["servers"]:
        for pin in server["pins"]:
            yield server, pin


def _tokens(tokens: "Sequence[Token]", now: datetime) -> Iterator[Finding]:
    ended = [token.name for token in tokens if token.state(now) == "expired"]
    live = [token for token in tokens if token.state(now) == "live"]
    soon = [token.name for token in live if token.expires_at is not None and token.expires_at - now < _SOON]
    if ended:
        hint = "Make new ones for who still needs them: procedo token create"
        yield Finding("tokens", WARNING, f"expired: {', '.join(ended[-_MOST:])}", hint)
    if soon:
        yield Finding("tokens", WARNING, f"expire within a week: {', '.join(soon[:_MOST])}", "See: procedo token list")
    if live and not soon:
        yield Finding("tokens", OK, f"{len(live)} live")


def _untold(failed: "Sequence[Telling]") -> Iterator[Finding]:
    for one in failed[-_MOST:]:
        ended = "given up" if one.given_up else "it is tried again"
        found = f"{one.route!r} was not told that gate {one.gate_id} is {one.occasion}: {one.error} ({ended})"
        yield Finding("notices", WARNING, found, GATES_WAIT)
