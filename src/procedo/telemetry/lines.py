"""Every log line of what happens, as data: from a committed event to its line, in one table.

A line holds names, ids and numbers. No input, output, prompt, comment or other free text is in it.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct

from procedo.core import messages as m
from procedo.core.state import Execution, Gate
from procedo.telemetry.happenings import Move
from procedo.telemetry.reasons import told

__all__ = [
    "CALL_REFUSED",
    "EFFECT_REPEATED",
    "EVENT_LINES",
    "GATE_AUTO",
    "GATE_DECIDED",
    "GATE_EXPIRED",
    "GATE_OPENED",
    "GATE_REMINDED",
    "GATE_WITHDRAWN",
    "GLASS_BROKEN",
    "JOB_RETAKEN",
    "LINES",
    "NOTICE_DELIVERED",
    "NOTICE_FAILED",
    "QUIET",
    "RUN_CANCELLED",
    "RUN_COMPLETED",
    "RUN_FAILED",
    "RUN_PAUSED",
    "RUN_RELEASED",
    "RUN_STARTED",
    "RUN_WAITS",
    "SERVER_ENDED",
    "SERVER_STARTED",
    "SESSION_ENDED",
    "SESSION_STARTED",
    "SILENT",
    "STEP_COMPLETED",
    "STEP_FAILED",
    "STEP_OPENED",
    "STEP_RETRIED",
    "STEP_SKIPPED",
    "UNDELIVERED",
    "Fields",
    "Line",
    "lines_of",
    "reference",
]

Fields: TypeAlias = Mapping[str, str | int | float | bool | None]


class Line(Struct, frozen=True):
    """One kind of line: its stable name for machines, level, text for people, and fields beside the run's."""

    event: str
    level: int
    text: str
    fields: tuple[str, ...]
    meaning: str


_D, _I, _W, _E = logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR
_RUN: Final = ("run", "sop")
_STEP: Final = (*_RUN, "execution")
_GATE: Final = (*_RUN, "gate", "step", "kind", "policy")

RUN_STARTED: Final = Line("run_started", _I, "run started", (*_RUN, "version", "by", "parent"), "A run began.")
RUN_COMPLETED: Final = Line("run_completed", _I, "run completed", (*_RUN, "seconds"), "A run reached its end.")
RUN_FAILED: Final = Line(
    "run_failed", _W, "run failed", (*_RUN, "seconds", "reason"), "A run failed; only words of the server are told."
)
RUN_CANCELLED: Final = Line(
    "run_cancelled", _I, "run cancelled", (*_RUN, "seconds", "by", "denied"), "Somebody ended a run, or denied a gate."
)
RUN_PAUSED: Final = Line("run_paused", _I, "run paused", (*_RUN, "by"), "An operator paused a run.")
RUN_RELEASED: Final = Line("run_released", _I, "run goes on", (*_RUN, "by"), "An operator ended the pause.")
RUN_WAITS: Final = Line("run_waits", _I, "run waits for a free slot", _RUN, "No slot is free for the run.")
GATE_OPENED: Final = Line("gate_opened", _I, "gate opened", (*_GATE, "code"), "A decision is asked for.")
GATE_DECIDED: Final = Line(
    "gate_decided", _I, "gate decided", (*_GATE, "verdict", "by", "seconds"), "A gate has its answer."
)
GATE_EXPIRED: Final = Line("gate_expired", _W, "gate expired", (*_GATE, "seconds"), "Nobody answered in time.")
GATE_REMINDED: Final = Line("gate_reminded", _I, "gate put again", (*_GATE, "escalated"), "A question was put again.")
GATE_WITHDRAWN: Final = Line("gate_withdrawn", _I, "gate withdrawn", _GATE, "A question became void.")
GATE_AUTO: Final = Line("gate_auto_approved", _I, "gate approved by its policy", _GATE, "A policy approves by itself.")
GLASS_BROKEN: Final = Line(
    "glass_broken", _W, "glass broken", (*_GATE, "by"), "One person decided alone, against the policy."
)
SESSION_STARTED: Final = Line(
    "session_started", _I, "session started", (*_STEP, "agent", "scripted"), "An agent took an execution up."
)
SESSION_ENDED: Final = Line(
    "session_ended",
    _I,
    "session ended",
    ("run", "execution", "agent", "state", "turns", "calls", "input_tokens", "output_tokens", "cost_usd", "seconds"),
    "An agent's session ended, or was parked at a gate; a warning for `failed`, `refused` and `exhausted`.",
)
STEP_OPENED: Final = Line(
    "step_opened", _D, "step opened", (*_STEP, "performer", "agent"), "A step was given to its performer."
)
STEP_RETRIED: Final = Line(
    "step_retried", _I, "step tried again", (*_STEP, "performer", "agent", "attempt"), "Another attempt at a step."
)
STEP_COMPLETED: Final = Line("step_completed", _D, "step completed", (*_STEP, "seconds"), "A step has its result.")
STEP_SKIPPED: Final = Line("step_skipped", _D, "step skipped", _STEP, "A step was reported as skipped.")
STEP_FAILED: Final = Line(
    "step_failed",
    _I,
    "step failed",
    (*_STEP, "performer", "agent", "seconds", "reason"),
    "An attempt at a step failed.",
)
EFFECT_REPEATED: Final = Line(
    "effect_repeated", _I, "interrupted effect is repeated", _STEP, "It is declared repeatable, or a person said so."
)
JOB_RETAKEN: Final = Line(
    "job_retaken",
    _I,
    "effect is taken up again",
    ("run", "execution", "kind", "attempt"),
    "An earlier attempt was put off, or its process lost its lease or died.",
)
NOTICE_DELIVERED: Final = Line(
    "notice_delivered", _D, "notice delivered", ("run", "gate", "route", "occasion"), "People were told about a gate."
)
NOTICE_FAILED: Final = Line(
    "notice_failed",
    _W,
    "notice failed",
    ("run", "gate", "route", "occasion", "attempt", "given_up"),
    "People could not be told; it is tried again unless it is given up. `procedo show` tells why.",
)
CALL_REFUSED: Final = Line(
    "call_refused", _I, "call refused", ("tool", "code", "run"), "A tool call was refused, and with which code."
)
SERVER_STARTED: Final = Line(
    "server_started",
    _I,
    "server started",
    ("address", "workspace", "version", "telemetry"),
    "The server takes calls.",
)
SERVER_ENDED: Final = Line("server_ended", _I, "server ended", ("workspace",), "The server has closed its store.")
UNDELIVERED: Final = Line(
    "telemetry_undelivered",
    _W,
    "telemetry is not delivered",
    ("cause",),
    "The collector cannot be reached; said at most every ten minutes. Runs do not feel it.",
)

LINES: Final = (
    SERVER_STARTED, SERVER_ENDED, RUN_STARTED, RUN_COMPLETED, RUN_FAILED, RUN_CANCELLED, RUN_PAUSED, RUN_RELEASED,
    RUN_WAITS, GATE_OPENED, GATE_DECIDED, GATE_EXPIRED, GATE_REMINDED, GATE_WITHDRAWN, GATE_AUTO, GLASS_BROKEN,
    SESSION_STARTED, SESSION_ENDED, STEP_OPENED, STEP_RETRIED, STEP_COMPLETED, STEP_SKIPPED, STEP_FAILED,
    EFFECT_REPEATED, JOB_RETAKEN, NOTICE_DELIVERED, NOTICE_FAILED, CALL_REFUSED, UNDELIVERED,
)  # fmt: skip


def _execution(move: Move, execution_id: str) -> Execution | None:
    found = move.after.executions.get(execution_id)
    return found if found is not None or move.before is None else move.before.executions.get(execution_id)


def _gate(move: Move, gate_id: str) -> Fields:
    found = move.after.gates.get(gate_id)
    if found is None and move.before is not None:
        found = move.before.gates.get(gate_id)
    return {"gate": gate_id} if found is None else _of_gate(found)


def _of_gate(gate: Gate) -> Fields:
    return {"gate": gate.id, "step": gate.step, "kind": str(gate.kind), "policy": gate.policy}


def _waited(move: Move, gate_id: str) -> float | None:
    found = move.after.gates.get(gate_id)
    return None if found is None else _seconds(move, found.opened_at)


def _seconds(move: Move, since: Any) -> float:
    return round(float((move.at - since).total_seconds()), 3)


def _age(move: Move) -> Fields:
    return {"seconds": _seconds(move, move.after.started_at)}


def _performed(move: Move, execution_id: str) -> Fields:
    found = _execution(move, execution_id)
    if found is None:
        return {"execution": execution_id}
    seconds = _seconds(move, found.opened_at)
    return {
        "execution": execution_id,
        "performer": str(found.performer),
        "agent": found.agent or None,
        "seconds": seconds,
    }


def _started(e: m.RunStarted, _: Move) -> Iterator[tuple[Line, Fields]]:
    parent = None if e.parent is None else e.parent.run
    yield RUN_STARTED, {"version": e.version, "by": e.by.key, "parent": parent}


def _held(e: m.DispatchHeld, _: Move) -> Iterator[tuple[Line, Fields]]:
    if e.slot:
        yield RUN_WAITS, {}


def _opened(e: m.ExecutionOpened, _: Move) -> Iterator[tuple[Line, Fields]]:
    one = e.execution
    fields = {"execution": one.id, "performer": one.performer.value, "agent": one.agent or None}
    yield STEP_OPENED, fields
    if one.arrival.attempt > 1:
        yield STEP_RETRIED, {**fields, "attempt": one.arrival.attempt}


def _resolved(e: m.GateResolved, move: Move) -> Iterator[tuple[Line, Fields]]:
    fields = {**_gate(move, e.gate_id), "seconds": _waited(move, e.gate_id)}
    if e.expired:
        yield GATE_EXPIRED, fields
    else:
        yield GATE_DECIDED, {**fields, "verdict": str(e.verdict), "by": e.by.key}


def _failed(e: m.ExecutionFailed, move: Move) -> Iterator[tuple[Line, Fields]]:
    yield STEP_FAILED, {**_performed(move, e.execution_id), "reason": told(e.reason)}


_Maker: TypeAlias = Callable[[Any, Move], Iterator[tuple[Line, Fields]]]


def _one(line: Line, fields: Callable[[Any, Move], Fields]) -> _Maker:
    def make(event: Any, move: Move) -> Iterator[tuple[Line, Fields]]:
        yield line, fields(event, move)

    return make


EVENT_LINES: Final[Mapping[type[Any], _Maker]] = {
    m.RunStarted: _started,
    m.RunCompleted: _one(RUN_COMPLETED, lambda _, move: _age(move)),
    m.RunFailed: _one(RUN_FAILED, lambda e, move: {**_age(move), "reason": told(e.reason)}),
    m.RunCancelled: _one(RUN_CANCELLED, lambda e, move: {**_age(move), "by": e.by.key, "denied": e.denied}),
    m.RunHeld: _one(RUN_PAUSED, lambda e, _: {"by": e.by.key}),
    m.RunReleased: _one(RUN_RELEASED, lambda e, _: {"by": e.by.key}),
    m.DispatchHeld: _held,
    m.GateOpened: _one(GATE_OPENED, lambda e, _: {**_of_gate(e.gate), "code": e.gate.code}),
    m.GateResolved: _resolved,
    m.GateReminded: _one(GATE_REMINDED, lambda e, move: {**_gate(move, e.gate_id), "escalated": e.escalated}),
    m.GateWithdrawn: _one(GATE_WITHDRAWN, lambda e, move: _gate(move, e.gate_id)),
    m.AutoApproved: _one(GATE_AUTO, lambda e, move: _gate(move, e.gate_id)),
    m.GlassBroken: _one(GLASS_BROKEN, lambda e, move: {**_gate(move, e.gate_id), "by": e.by.key}),
    m.SessionBegan: _one(
        SESSION_STARTED, lambda e, _: {"execution": e.execution_id, "agent": e.agent, "scripted": e.scripted}
    ),
    m.ExecutionOpened: _opened,
    m.ExecutionCompleted: _one(
        STEP_COMPLETED,
        lambda e, move: {"execution": e.execution_id, "seconds": _performed(move, e.execution_id).get("seconds")},
    ),
    m.ExecutionSkipped: _one(STEP_SKIPPED, lambda e, _: {"execution": e.execution_id}),
    m.ExecutionFailed: _failed,
    m.EffectRepeated: _one(EFFECT_REPEATED, lambda e, _: {"execution": e.execution_id}),
}

SILENT: Final = frozenset(
    {
        "ArrivalPended", "ArrivalReleased", "DispatchesReleased", "EffectStarted", "ExecutionExtended",
        "ExecutionHalted", "ExecutionResumed", "FanAbandoned", "FanGathered", "FanOpened", "GatePresented",
        "ItemOpened", "OutputClaimed", "ReachNarrowed", "RevisionAsked", "RevisionFailed", "Routed",
        "StepPassedOver", "StepVisited", "VoteCast", "VoteRetracted",
    }
)  # fmt: skip
"""Events without a line: each goes with one that has it, or is of interest in the record alone."""


QUIET: Final[tuple[type[Any], ...]] = (m.ExecutionCompleted, m.ExecutionSkipped)
"""Events whose lines are all of level debug: nothing is made of them where nobody reads that."""


def lines_of(move: Move, but: tuple[type[Any], ...] = ()) -> Iterator[tuple[Line, Fields]]:
    """The lines of one transition, in the order of its events; without those of the kinds in `but`."""
    common = {"run": move.after.id, "sop": move.after.sop}
    for event in move.events:
        make = EVENT_LINES.get(type(event))
        if make is not None and type(event) not in but:
            for line, fields in make(event, move):
                yield line, {**common, **fields}


def reference() -> str:
    """The table of log lines in Markdown, for the documentation."""
    rows = [
        f"| `{one.event}` | {logging.getLevelName(one.level).lower()} | {one.text} "
        f"| {', '.join(f'`{name}`' for name in one.fields)} | {one.meaning} |"
        for one in LINES
    ]
    return "\n".join(["| event | level | text | fields | meaning |", "|---|---|---|---|---|", *rows, ""])
