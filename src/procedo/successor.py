"""How a new run takes up a failed one: the same inputs and good outputs, beginning where it broke."""

from collections.abc import Mapping, Sequence

from procedo.core.altered import altered
from procedo.core.model import Json
from procedo.core.state import Arrival, Execution, Gate, Phase, Run
from procedo.errors import Refused

__all__ = ["succession"]


def succession(
    failed: Run, executions: Sequence[Execution], gates: Sequence[Gate], step: int
) -> tuple[tuple[Arrival, ...], Mapping[int, Json]]:
    """Where the new run begins, and the good outputs by step number that it takes over.

    It begins at the failed step and at everything that the failure cut short. Raises `Refused` when
    `step` is not the one that failed, or its input was the output of a failed attempt.
    """
    broken = [e for e in executions if e.phase is Phase.FAILED]
    if not broken or broken[-1].step != step:
        where = f"It failed at step {broken[-1].step}." if broken else "It failed before any step was executed."
        hint = "Retry that step." if broken else "Start a new run."
        raise Refused("not_failed_step", f"Step {step} is not where run {failed.id} failed. {where}", hint)
    good = {e.step: e for e in executions if e.phase is Phase.COMPLETED and e.arrival.item is None}
    cut_short = [e.arrival for e in executions if e.phase is Phase.CANCELLED]
    cut_short += [gate.arrival for gate in gates if gate.withdrawn and gate.execution is None]
    cut_short += [pending.arrival for pending in failed.pending] + [held.arrival for held in failed.held]
    arrivals = {a.step: a for a in (broken[-1].arrival, *cut_short)}
    begin_at = tuple(_taken_over(arrival, good) for arrival in arrivals.values())
    adopted = {n: e.closing.output for n, e in sorted(good.items()) if e.closing is not None}
    return begin_at, adopted


def _taken_over(arrival: Arrival, good: Mapping[int, Execution]) -> Arrival:
    steps = [int(source.partition(".")[0]) for source in arrival.sources]
    lost = [n for n in steps if n not in good]
    if lost:
        message = f"Step {arrival.step} received the output of a failed attempt of step {lost[0]}."
        raise Refused("no_input", message, "Start a new run instead.")
    sources = tuple(f"{n}.1" for n in steps)
    return altered(arrival, sources=sources, attempt=1, reason="", item=None)
