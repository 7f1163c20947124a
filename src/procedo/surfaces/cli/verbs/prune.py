"""Deletes runs that ended long ago, with their records, from the store.

Runs that have not ended are never touched, and a sub-run stays as long as the run above it. Deleting takes a person who
types `y` at a terminal, or a human's token with the role operate.
"""

import asyncio
from argparse import ArgumentParser
from datetime import UTC, datetime, timedelta

from procedo.core.access import Role
from procedo.errors import BadArgument, Refused
from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.credential import require_person
from procedo.surfaces.cli.terminal import controlling_terminal, has_controlling_terminal

EXAMPLES = (
    "procedo prune --older-than 30d",
    "procedo prune --older-than 90d --yes  # with PROCEDO_TOKEN: a human's token with the role operate",
    "procedo prune --older-than 30d --dry-run",
)


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument("--older-than", metavar="TIME", required=True, help="since their end, such as 30d or 12h")
    parser.add_argument("--dry-run", action="store_true", help="only say how many")
    parser.add_argument("--yes", action="store_true", help="do not ask; takes a human's token")


def _age(text: str) -> timedelta:
    from procedo.duration import seconds

    try:
        return timedelta(seconds=seconds(text))
    except (ValueError, OverflowError) as error:
        raise BadArgument(
            "bad_argument", f"--older-than {text!r} is no time.", "Write it as 30d, 12h or 90m."
        ) from error


async def _old(call: Call, before: datetime) -> int:
    from procedo.core.retention import forgotten
    from procedo.ports import Filter

    async with call.app() as app:
        runs = await call.seen(app).read(lambda reader: reader.runs(Filter(limit=2**31 - 1)))
    old = {one.run_id for one in runs if one.ended_at is not None and one.ended_at < before}
    return len(forgotten(old, {one.run_id: one.parent_run for one in runs}))


async def _prune(call: Call, before: datetime) -> int:
    async with call.app() as app:
        return await app.store.write(lambda writer: writer.prune(before))


def _asked(count: int, before: datetime) -> None:
    if not has_controlling_terminal():
        message = f"Nothing was deleted: there is no terminal to ask a person at about {count} runs."
        raise Refused(
            "no_terminal", message, "Run it in a terminal, or with a human's token that has the role operate."
        )
    with controlling_terminal() as terminal:
        question = f"Delete {count} runs that ended before {before:%Y-%m-%d %H:%M} UTC, with their records? [y/N]"
        if not terminal.confirmed(question):
            raise Refused("not_confirmed", "Nothing was deleted: it was not confirmed.")


def run(call: Call) -> int:
    """Delete."""
    before = datetime.now(UTC) - _age(call["older_than"])
    if not call["dry_run"]:
        require_person(call.access, Role.OPERATE, "deletes no runs")
        if call.access.reach:
            message = "Runs are deleted whatever their procedure, and your token is limited to some."
            raise Refused("not_permitted", message, "Somebody with a token without limits does that.")
    count = asyncio.run(_old(call, before))
    if count and not call["dry_run"]:
        # Without a token `--yes` says nothing: any program of this account could pass it.
        if call.holder is None:
            _asked(count, before)
        count = asyncio.run(_prune(call, before))
    if call.json:
        call.output.value({"runs": count, "ended_before": before.isoformat(), "deleted": not call["dry_run"]})
    else:
        would = "would be deleted" if call["dry_run"] else "deleted"
        call.output.line(f"{count} runs {would} (ended before {before:%Y-%m-%d %H:%M} UTC).")
    return 0
