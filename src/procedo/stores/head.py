"""A run and the row that heads it: columns for what is asked about, one small JSON for the rest."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from procedo.core.state import Execution, Fan, Gate, Principal, Run, Status
from procedo.ports import Summary
from procedo.stores.codec import FORMAT, Body, Origin, decode, encode
from procedo.stores.jsontext import instant, moment, parsed

__all__ = ["COLUMNS", "SUMMARY", "columns", "reason", "run_of", "summary", "summary_of"]

COLUMNS: Final = (
    "id", "sop", "digest", "version", "status", "reason", "started_at", "active_at", "ended_at", "key",
    "parent_run", "revision", "seq", "head_hash", "slot", "slot_since", "due_at", "gates", "fans", "format", "body",
)  # fmt: skip
"""The columns that `columns` gives, in order; the last output has columns of its own."""

SUMMARY: Final = (
    "id, sop, version, digest, status, reason, started_at, active_at, ended_at, gates, parent_run, runs.key, "
    "(SELECT json_extract(data, '$.starter') FROM origins WHERE origins.run = runs.run)"
)
"""The columns that `summary` reads, of the table `runs`."""


def _moment(value: datetime | None) -> str | None:
    return None if value is None else moment(value)


def reason(run: Run) -> str:
    """Why a run stands where it stands, when somebody gave a reason."""
    if run.end is not None:
        return run.end.reason
    return run.pause.reason if run.pause is not None else run.slot_reason


def columns(run: Run, head_hash: bytes) -> tuple[Any, ...]:
    """The head row of a run."""
    status = run.status
    return (
        run.id, run.sop, run.digest, run.version, str(status), reason(run), moment(run.started_at),
        moment(run.active_at), None if run.end is None else moment(run.end.at), run.key,
        None if run.parent is None else run.parent.run, run.revision, run.seq, head_hash, int(run.holds_slot),
        _moment(run.slot_since), _moment(run.due_at), len(run.open_gates), len(run.fans), FORMAT,
        encode(Body.of(run)),
    )  # fmt: skip


def run_of(
    head: Mapping[str, Any],
    body: Body,
    first: Origin,
    last_output: Any,
    executions: Mapping[str, Execution],
    gates: Mapping[str, Gate],
    fans: Mapping[int, Fan],
) -> Run:
    """The run of a head row, with what is open in it."""
    return Run(
        id=head["id"],
        sop=head["sop"],
        digest=head["digest"],
        version=head["version"],
        mode=first.mode,
        host_agent=first.host_agent,
        starter=first.starter,
        marker=first.marker,
        inputs=first.inputs,
        started_at=instant(head["started_at"]),
        active_at=instant(head["active_at"]),
        revision=head["revision"],
        seq=head["seq"],
        head_hash=head["head_hash"].hex(),
        can_ask=first.can_ask,
        route=first.route,
        ceiling=first.ceiling,
        reach=body.reach,
        key=head["key"],
        parent=first.parent,
        retry_of=first.retry_of,
        pins=first.pins,
        lineage=first.lineage,
        executors=body.executors,
        executions=executions,
        gates=gates,
        gate_count=body.gate_count,
        pending=body.pending,
        held=body.held,
        slot_reason=body.slot_reason,
        slot_since=None if head["slot_since"] is None else instant(head["slot_since"]),
        fans=fans,
        last_output=last_output,
        pause=body.pause,
        end=body.end,
    )


def summary(row: tuple[Any, ...]) -> Summary:
    """The summary of a row with the columns `SUMMARY`."""
    run_id, sop, version, digest, status, why, started, active, ended, gates, parent, key, starter = row
    return Summary(
        run_id=run_id,
        sop=sop,
        version=version,
        digest=digest,
        status=Status(status),
        reason=why,
        started_at=instant(started),
        active_at=instant(active),
        ended_at=None if ended is None else instant(ended),
        open_gates=gates,
        parent_run=parent,
        key=key,
        starter=decode(Principal, parsed(starter)),
    )


def summary_of(run: Run) -> Summary:
    """The summary of a run that is at hand."""
    return Summary(
        run_id=run.id,
        sop=run.sop,
        version=run.version,
        digest=run.digest,
        status=run.status,
        reason=reason(run),
        started_at=run.started_at,
        active_at=run.active_at,
        ended_at=None if run.end is None else run.end.at,
        open_gates=len(run.open_gates),
        parent_run=None if run.parent is None else run.parent.run,
        key=run.key,
        starter=run.starter,
    )
