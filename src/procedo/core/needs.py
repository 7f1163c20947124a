"""What has to be loaded of a run before a command can be decided or the run be shown. Pure."""

from procedo.core import messages as m
from procedo.core.model import Sop
from procedo.core.routing import footprint
from procedo.core.state import Arrival, Run, Verdict

__all__ = ["executions_needed", "steps_needed"]


def _arrivals(run: Run) -> list[Arrival]:
    found = [e.arrival for e in run.open_executions]
    found += [g.arrival for g in run.open_gates]
    found += [p.arrival for p in run.pending]
    found += [h.arrival for h in run.held]
    found += [fan.arrival for fan in run.fans.values()]
    found += [g.arrival for g in run.gates.values() if g.redrafting]
    return found


def steps_needed(sop: Sop, run: Run, command: m.Command | None = None) -> frozenset[int]:
    """The steps whose states are needed: of everything open, of what can follow it, and of what these read."""
    found: set[int] = set()
    for number in {arrival.step for arrival in _arrivals(run)}:
        found |= footprint(sop, number)
    if isinstance(command, m.Reopen) and command.step in sop.by_number:
        found |= footprint(sop, command.step)
    if draft := _draft(run, command):
        found |= footprint(sop, int(draft.partition(".")[0]))
    return frozenset(found)


def _draft(run: Run, command: m.Command | None) -> str:
    """The execution that is to be done anew when an answer asks for another draft."""
    gate = run.gates.get(command.gate_id) if isinstance(command, m.Decide) else None
    asks = isinstance(command, m.Decide) and command.verdict is Verdict.REVISE
    return gate.draft if gate is not None and asks else ""


def executions_needed(run: Run, command: m.Command | None = None) -> frozenset[str]:
    """The executions whose outputs are the inputs of what is open, and those that the command names."""
    found = {source for arrival in _arrivals(run) for source in arrival.sources}
    if isinstance(command, m.Report | m.Begin | m.Finish | m.Judge | m.Ask):
        found.add(command.execution_id)
    if isinstance(command, m.Reopen) and command.step in run.steps:
        found.add(f"{command.step}.{run.steps[command.step].executions}")
    if draft := _draft(run, command):
        found.add(draft)
        # It runs again with its own input, which is known when it has been loaded itself.
        found.update(run.executions[draft].arrival.sources if draft in run.executions else ())
    return frozenset(found - set(run.executions))
