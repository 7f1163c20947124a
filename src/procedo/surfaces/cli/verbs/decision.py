"""How a decision is taken at the command line: shown and answered on the controlling terminal, then recorded.

What was shown is what is decided: the gate's revision and digest travel with the answer, so a draft that
changed in the meantime is not decided by it.
"""

import asyncio
from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from procedo.core.altered import altered
from procedo.core.model import Json
from procedo.core.state import Gate, GateKind, Verdict
from procedo.errors import BadArgument, Refused
from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.output import ago, pretty, visible
from procedo.surfaces.cli.report import follow, report
from procedo.surfaces.cli.terminal import Terminal, controlling_terminal

if TYPE_CHECKING:
    from procedo.config import Settings
    from procedo.ports import OpenGate
    from procedo.runs import Snapshot, Surface

__all__ = ["Answer", "common_arguments", "decide", "presentation"]

_QUESTIONS = {
    Verdict.APPROVE: "Approve this?",
    Verdict.DENY: "Deny this?",
    Verdict.AMEND: "Approve this with your change?",
    Verdict.REVISE: "Ask for another draft?",
    Verdict.REPEAT: "Let it happen again?",
    Verdict.SKIP: "Skip the step?",
    Verdict.FAIL: "Let the step fail?",
    Verdict.RETRACT: "Take your answer back?",
}
_SHORT_DIGEST = 12


def common_arguments(parser: ArgumentParser) -> None:
    """The arguments that every decision takes."""
    parser.add_argument("gate", metavar="GATE", help="the gate's short code or id")
    parser.add_argument("--run", metavar="RUN", help="refuse unless the gate belongs to this run")
    parser.add_argument(
        "--wait", metavar="S", type=float, default=20.0, help="seconds to follow the run afterwards (20)"
    )


def _rows(found: "OpenGate", snapshot: "Snapshot", now: datetime) -> Iterator[tuple[str, str]]:
    from procedo.core.approval import when_due
    from procedo.surfaces.gates import failed_notices, may_decide, what_is_asked

    gate, run, sop = found.gate, snapshot.run, snapshot.sop
    policy = snapshot.policies.get(gate.id)
    yield "run", f"{run.id}  {sop.name} {sop.version}"
    yield "step", f"{gate.step}  {sop.by_number[gate.step].title}"
    yield "question", what_is_asked(gate)
    yield "started by", f"{run.starter}, {ago(run.started_at, now)}"
    yield "waiting", f"since {gate.waiting_since:%Y-%m-%d %H:%M:%S} UTC, {ago(gate.waiting_since, now)}"
    if gate.due_at is not None:
        then = when_due(policy, gate)
        yield "deadline", f"{gate.due_at:%Y-%m-%d %H:%M:%S} UTC, {ago(gate.due_at, now)}, then {then}"
    if gate.open:
        yield "may decide", may_decide(policy, gate)
    for vote in gate.votes:
        yield "answered", f"{vote.verdict} by {vote.principal}, {ago(vote.at, now)}"
    for text in failed_notices(snapshot.tellings, gate):
        yield "told", text
    yield "revision", f"{gate.revision}  digest {gate.digest[:_SHORT_DIGEST]}"


def _content(gate: Gate) -> str:
    from procedo.surfaces.redaction import masked

    return "(nothing besides the question)" if gate.content is None else visible(pretty(masked(gate.content)))


def presentation(found: "OpenGate", snapshot: "Snapshot", now: datetime) -> str:
    """What a person sees before deciding. Foreign text stays behind a bar, so that it cannot pose as ours."""
    rows = [*_rows(found, snapshot, now)]
    width = max(len(name) for name, _ in rows)
    lines = [f"Gate {found.gate.code} ({found.gate.kind.value.replace('_', ' ')})"]
    lines += [f"  {name.ljust(width)}  {visible(value, lines=False)}" for name, value in rows]
    lines += ["  what is decided on:"]
    content = _content(found.gate)
    return "\n".join([*lines, *(f"  | {text}" for text in content.split("\n"))])


class Answer(Struct, frozen=True):
    """What a person answers, and whether alone against the policy."""

    verdict: Verdict
    value: Json = None
    comment: str = ""
    break_glass: bool = False
    lasting: bool = False

    @property
    def question(self) -> str:
        """What the person confirms."""
        asked = _QUESTIONS[self.verdict]
        return f"Break the glass? {asked}" if self.break_glass else asked

    def shown(self) -> str:
        """The answer as it is put before the person."""
        from procedo.surfaces.cli.person import operator

        lines = [f"You are {operator()}. Your answer: {self.verdict.value}"]
        if self.value is not None:
            lines += ["  with this value:", *(f"  | {text}" for text in visible(pretty(self.value)).split("\n"))]
        if self.comment:
            lines.append(f"  comment: {visible(self.comment, lines=False)}")
        if self.lasting:
            lines.append("  It also holds for this very call later in the session.")
        if self.break_glass:
            lines.append("  You decide alone, against the policy of this gate. That stands in the record for ever.")
        return "\n".join(lines)


async def _look(call: Call) -> "tuple[OpenGate, Snapshot]":
    async with call.app() as app:
        return await app.runs.gate(call["gate"])


async def _record(call: Call, found: "OpenGate", answer: Answer) -> "Snapshot":
    async with call.app(worker=True) as app:
        surface = call.surface()
        try:
            snapshot = await app.runs.decide(
                found.gate.id,
                answer.verdict,
                surface,
                value=answer.value,
                comment=answer.comment,
                revision=found.gate.revision,
                digest=found.gate.digest,
                run_id=call["run"],
                break_glass=answer.break_glass,
                lasting=answer.lasting,
            )
        except Refused as error:
            if error.code == "not_authorised" and _may_break_glass(app.settings, surface):
                error.hint += " You may decide alone in an emergency: --break-glass with --comment."
            raise
        return altered(await follow(call, app, snapshot), note=snapshot.note)


def _may_break_glass(settings: "Settings", surface: "Surface") -> bool:
    """True when the caller may decide alone in an emergency."""
    from procedo.core.approval import glass_objection

    return glass_objection(settings.break_glass, surface.principal, "an emergency") is None


def _check_lasting(gate: Gate, answer: Answer) -> None:
    if answer.lasting and (gate.kind is not GateKind.TOOL_CALL or answer.verdict is not Verdict.APPROVE):
        message = (
            f"--for-session does not fit gate {gate.code}: it extends the approval of a tool call, and nothing else."
        )
        raise BadArgument("bad_argument", message, "Leave it out.")


def _confirm(terminal: Terminal, shown: str, answer: Answer) -> None:
    terminal.show(f"\n{shown}\n\n{answer.shown()}")
    if not terminal.confirmed(f"{answer.question} [y/N]"):
        raise Refused("not_confirmed", "Nothing was decided: it was not confirmed.", "The gate stays open.")


def decide(call: Call, answer: Answer) -> int:
    """Ask the person, record the answer, follow the run to its next stop and print it. A token is not asked."""
    if call.holder is not None:
        found, _ = asyncio.run(_look(call))
        _check_lasting(found.gate, answer)
        report(call, asyncio.run(_record(call, found, answer)))
        return 0
    with controlling_terminal() as terminal:
        found, snapshot = asyncio.run(_look(call))
        _check_lasting(found.gate, answer)
        # Where nothing can be decided there is nothing to confirm: the record answers, or refuses.
        if found.gate.open:
            from procedo.core.decisions import check_verdict

            check_verdict(found.gate, snapshot.sop.by_number[found.gate.step], answer.verdict)
            _confirm(terminal, presentation(found, snapshot, datetime.now(UTC)), answer)
    after = asyncio.run(_record(call, found, answer))
    report(call, after)
    return 0
