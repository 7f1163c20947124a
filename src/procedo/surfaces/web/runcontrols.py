"""What a person may do to a run as a whole: cancel, pause, resume, retry a step. Each is confirmed on a page."""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from procedo.core import messages as m
from procedo.core.access import Role
from procedo.core.state import Phase, Run, Status
from procedo.errors import BadArgument, Refused
from procedo.runs import History, Runs, Snapshot, Surface
from procedo.surfaces.redaction import masked_text
from procedo.surfaces.web.logins import Visitor
from procedo.surfaces.web.words import shown

__all__ = ["Control", "control", "controls", "perform", "taken"]

_LONGEST_REASON: Final = 4_000


class Control(Struct, frozen=True):
    """One thing that may be done now. `verb` is the last part of its address, `step` what a retry is about.

    `asks` is the label of the reason, which `must` be given or may; empty: none is taken.
    """

    verb: str
    label: str
    title: str
    follows: str
    look: str = "plain"
    asks: str = ""
    must: bool = False
    step: int | None = None

    @property
    def address(self) -> str:
        """The end of its address behind that of the run."""
        return self.verb if self.step is None else f"{self.verb}?step={self.step}"


def controls(history: History, visitor: Visitor) -> tuple[Control, ...]:
    """What this visitor may do to the run as it stands."""
    return tuple(_possible(history)) if visitor.access.may(Role.OPERATE) else ()


def control(history: History, visitor: Visitor, verb: str, step: str) -> Control:
    """The control of this name. Raises `Refused` when it is not for this visitor, or not for a run that stands so."""
    visitor.access.require(Role.OPERATE)
    for one in _possible(history):
        if one.verb == verb and (one.step is None or str(one.step) == step):
            return one
    run = history.snapshot.run
    now = f"The run is {str(run.status).replace('_', ' ')}"
    about = f"step {step[:20]} cannot be retried" if verb == "retry" and step else f"there is nothing to {verb}"
    raise Refused("not_now", f"{now}: {about}.", "Look at the run as it is now.")


def _possible(history: History) -> Iterator[Control]:
    run = history.snapshot.run
    yield from _retries(history)
    if run.end is not None:
        return
    if run.pause is not None:
        yield Control(
            "resume",
            "Resume",
            "Resume this run?",
            "The pause ends. What was held back begins, with the gates that it has.",
            look="main",
        )
    else:
        yield Control(
            "pause",
            "Pause",
            "Pause this run?",
            "What is under way may finish. No further step begins until somebody resumes the run.",
            asks="Why",
        )
    yield Control(
        "cancel",
        "Cancel run",
        "Cancel this run?",
        "The run ends for good. Open steps and gates are withdrawn, and a result that comes later is refused. "
        "What was done already is not undone.",
        look="danger",
        asks="Why",
        must=True,
    )


def _retries(history: History) -> Iterator[Control]:
    snapshot = history.snapshot
    if snapshot.run.status is Status.FAILED:
        broken = [execution.step for execution in history.executions if execution.phase is Phase.FAILED]
        if broken:
            yield _retry(
                snapshot,
                broken[-1],
                "A new run begins at this step, with the same inputs and the results so far. This run stays as it is.",
            )
    elif snapshot.run.end is None and snapshot.run.pause is None:
        lost = {a.step for a in snapshot.actions if isinstance(a, m.PendingStep) and not a.satisfiable}
        for number in sorted(lost):
            yield _retry(snapshot, number, "The step is taken up although something that it waits for never comes.")


def _retry(snapshot: Snapshot, number: int, follows: str) -> Control:
    title = shown(masked_text(snapshot.sop.by_number[number].title))
    return Control("retry", f"Retry step {number}", f"Retry step {number}, {title}?", follows, look="main", step=number)


def _reason(form: Mapping[str, str]) -> str:
    return form.get("reason", "").replace("\r\n", "\n").strip()


def taken(run: Run, visitor: Visitor, verb: str, form: Mapping[str, str]) -> bool:
    """True when this very form was taken already: a button that is pressed twice is no mistake."""
    me, reason = visitor.access.principal, _reason(form)
    match verb:
        case "cancel":
            end = run.end
            return end is not None and end.status is Status.CANCELLED and (end.by, end.reason) == (str(me), reason)
        case "pause":
            return run.pause is not None and (run.pause.by, run.pause.reason) == (me.key, reason)
        case _:
            return False


async def perform(chosen: Control, runs: Runs, run_id: str, surface: Surface, form: Mapping[str, str]) -> Snapshot:
    """Do it. Raises `BadArgument` when a reason is missing, and whatever the run refuses with."""
    reason = _reason(form)
    if chosen.must and not reason:
        raise BadArgument("missing_reason", "Say why: the reason is kept in the record, and everybody reads it.")
    if len(reason) > _LONGEST_REASON:
        raise BadArgument("too_large", f"The reason has more than {_LONGEST_REASON} characters.", "Shorten it.")
    match chosen.verb:
        case "cancel":
            return await runs.cancel(run_id, reason, surface)
        case "pause":
            return await runs.hold(run_id, reason, surface)
        case _:
            return await runs.resume(run_id, surface, retry=chosen.step)
