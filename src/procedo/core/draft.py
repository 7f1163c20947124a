"""One transition in the making: the events so far, and the run as they leave it.

`decide` hands a draft to the handlers; whatever they emit is applied at once, so that each rule looks at
the present state. A draft is thrown away when a handler refuses.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import msgspec
from msgspec import Struct

from procedo.core.admission import Limits
from procedo.core.approval import HUMAN, Policy
from procedo.core.evolve import evolve
from procedo.core.messages import Event
from procedo.core.model import Json, Sop, Step
from procedo.core.state import Arrival, Execution, Run

__all__ = ["Draft", "Moment", "input_of", "output_of", "scope_of"]


class Moment(Struct, frozen=True):
    """What a transition takes from outside: the time, the limits, the policies as configured now.

    `slot` is the reason why no slot is free for this run, or None; it counts only while the run holds none.
    `break_glass` names the people who may decide alone in an emergency.
    """

    now: datetime
    limits: Limits = msgspec.field(default_factory=Limits)
    policies: Mapping[str, Policy] = msgspec.field(default_factory=dict)
    default_policy: Policy = HUMAN
    slot: str | None = None
    break_glass: frozenset[str] = frozenset()

    def policy(self, name: str | None) -> Policy | None:
        """The policy of that name as it is configured now; None when it is missing."""
        if name is None or name == self.default_policy.name:
            return self.default_policy
        return HUMAN if name == HUMAN.name else self.policies.get(name)


def output_of(run: Run, execution_id: str) -> Json:
    """The output of a closed execution. Raises `KeyError` when it was not loaded."""
    execution = run.executions.get(execution_id)
    if execution is not None and execution.closing is not None:
        return execution.closing.output
    state = run.steps[int(execution_id.partition(".")[0])]
    if state.completed != execution_id:
        raise KeyError(execution_id)
    return state.output


def input_of(run: Run, arrival: Arrival) -> Json:
    """What a step receives: the item of a `for_each`, the run's inputs, one output, or several by step number."""
    if arrival.item is not None:
        return run.fans[arrival.step].items[arrival.item]
    if not arrival.sources:
        return run.inputs
    if len(arrival.sources) == 1:
        return output_of(run, arrival.sources[0])
    return {source.partition(".")[0]: output_of(run, source) for source in arrival.sources}


def scope_of(run: Run, arrival: Arrival | None = None) -> dict[str, Json]:
    """What conditions and bindings read: inputs, good outputs by step number, the run, and the step's own input."""
    scope: dict[str, Json] = {
        "inputs": run.inputs,
        "steps": {str(n): state.output for n, state in run.steps.items() if state.completed is not None},
        "run": {"id": run.id, "sop": run.sop, "version": run.version, "started_at": run.started_at.isoformat()},
    }
    if arrival is not None:
        scope["input"] = input_of(run, arrival)
        if arrival.item is not None:
            scope["item"] = scope["input"]
    return scope


@dataclass(slots=True)
class Draft:
    """Events in the making. `queue` holds arrivals that are still to be dispatched in this transition."""

    sop: Sop
    run: Run
    moment: Moment
    events: list[Event] = field(default_factory=list)
    queue: deque[Arrival] = field(default_factory=deque)
    slot_free: bool = field(init=False)

    def __post_init__(self) -> None:
        self.slot_free = self.moment.slot is None or self.run.holds_slot

    def emit(self, event: Event) -> None:
        """Record an event and apply it."""
        self.events.append(event)
        self.run = evolve(self.run, event, self.moment.now)

    def step(self, number: int) -> Step:
        """The step with that number."""
        return self.sop.by_number[number]

    def execution(self, execution_id: str) -> Execution:
        """An execution as it is now."""
        return self.run.executions[execution_id]
