"""Checks the record's hash chain, or writes the record out as JSON lines.

Each record's hash covers everything before it in its run, so a line that was changed, left out or moved shows.
With a token, --unmasked needs the role operate.
"""

import asyncio
import json
import sys
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TextIO

from procedo.errors import BadArgument, NotFound
from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.output import Output
from procedo.surfaces.cli.progress import Progress

if TYPE_CHECKING:
    from procedo.app import App
    from procedo.ports import Record

EXAMPLES = (
    "procedo audit verify",
    "procedo audit verify run-4f…",
    "procedo audit export > record.jsonl",
    "procedo audit export run-4f… --output record.jsonl",
)
BROKEN_CHAIN = 1


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument("what", choices=["verify", "export"], help="check the chain, or write JSON lines")
    parser.add_argument("run", metavar="RUN", nargs="?", help="one run (default: all)")
    parser.add_argument("--output", metavar="FILE", type=Path, help="export: write there; nothing is overwritten")
    parser.add_argument("--unmasked", action="store_true", help="export: secrets as they are (needed to check hashes)")


async def _ids(call: Call, app: "App") -> tuple[str, ...]:
    ids = await call.seen(app).read(lambda reader: reader.run_ids())
    if call["run"] is None:
        return ids
    if call["run"] not in ids:
        import difflib

        near = difflib.get_close_matches(call["run"], ids, n=3)
        hint = f"Did you mean {', '.join(near)}?" if near else "See: procedo status --all"
        raise NotFound("unknown_run", f"No run has the id {call['run']!r}.", hint, near)
    return (call["run"],)


async def _verify(call: Call) -> int:
    from procedo.audit import verify

    async with call.app() as app:
        ids = await _ids(call, app)
        broken: dict[str, list[str]] = {}
        records = 0
        with Progress(Output.of(sys.stderr, call.environ, json=call.json)) as progress:
            for number, run_id in enumerate(ids, 1):
                progress.say(f"run {number} of {len(ids)}")
                found = await verify(call.seen(app), run_id)
                records += found.records
                if found.broken:
                    broken[run_id] = list(found.broken)
    if call.json:
        call.output.value({"ok": not broken, "runs": len(ids), "records": records, "broken": broken})
    else:
        for run_id, reasons in broken.items():
            for reason in reasons:
                call.output.line(f"{call.output.style('red', 'broken')}  {run_id}  {reason}")
        what = (
            call.output.style("green", "intact")
            if not broken
            else call.output.style("red", f"{len(broken)} runs are broken")
        )
        call.output.line(f"{records} records of {len(ids)} runs: {what}.")
    return BROKEN_CHAIN if broken else 0


LINE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "run_id": "The run.",
        "seq": "The number of the line in its run, from 1.",
        "revision": "The revision of the run that the event belongs to.",
        "at": "When, in UTC.",
        "kind": "Which event it is.",
        "data": "The fields of the event; secrets are masked without `--unmasked`.",
        "acting": "Who acted.",
        "delegating": "On whose behalf, where that is somebody else.",
        "root": "Who started the run.",
        "execution_id": "The execution that it is about, where there is one.",
        "hash": "SHA-256 over this line and the hash before it.",
    }
)
"""What an exported line holds."""


def _line(record: "Record", *, unmasked: bool) -> dict[str, Any]:
    from procedo.surfaces.redaction import masked

    return {
        "run_id": record.run_id,
        "seq": record.seq,
        "revision": record.revision,
        "at": record.at.isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "kind": record.kind,
        "data": record.data if unmasked else masked(record.data),
        "acting": record.acting,
        "delegating": record.delegating,
        "root": record.root,
        "execution_id": record.execution_id,
        "hash": record.hash,
    }


async def _export(call: Call, stream: TextIO) -> int:
    count = 0
    async with call.app() as app:
        for run_id in await _ids(call, app):
            # One run at a time, so that a large record never stands in memory as a whole.
            for record in await call.seen(app).read(lambda reader, run=run_id: reader.records(run)):  # type: ignore[misc]  # mypy infers no type for a lambda with a default
                stream.write(json.dumps(_line(record, unmasked=call["unmasked"]), ensure_ascii=True) + "\n")
                count += 1
    stream.flush()
    return count


def _export_to_file(call: Call, file: Path) -> int:
    try:
        with file.open("x", encoding="ascii", newline="\n") as stream:
            count = asyncio.run(_export(call, stream))
    except OSError as error:
        message = f"{file} cannot be written: {error.strerror}."
        raise BadArgument(
            "not_writable", message, "Name a file that does not exist yet, in a folder you may write to."
        ) from error
    if call.json:
        call.output.value({"records": count, "file": str(file)})
    else:
        call.output.line(f"{count} records written to {file}.")
    return 0


def run(call: Call) -> int:
    """Verify or export."""
    if call["what"] == "verify":
        if call["output"] is not None or call["unmasked"]:
            raise BadArgument("bad_argument", "--output and --unmasked belong to export.", "See: procedo audit --help")
        return asyncio.run(_verify(call))
    if call["unmasked"]:
        from procedo.core.access import Role

        call.access.require(Role.OPERATE)
    if call["output"] is not None:
        return _export_to_file(call, call["output"])
    asyncio.run(_export(call, call.output.stream))
    return 0
