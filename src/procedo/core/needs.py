"""What has to be loaded of a run before a command can be decided or the run be shown. Pure."""

from procedo.core import messages as m
from procedo.core.model import Sop
from procedo.core.routing import footprint
from procedo.core.state import Arrival, Run

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
    return frozenset(found)


def executions_needed(run: Run, command: m.Command | None = None) -> frozenset[str]:
    """The executions whose outputs are the inputs of what is open, and those that the command names."""
    found = {source for arrival in _arrivals(run) for source in arrival.sources}
    if isinstance(command, m.Report | m.Begin | m.Finish | m.Judge | m.Ask):
        found.add(command.execution_id)
    if isinstance(command, m.Reopen) and command.step in run.steps:
        found.add(f"{command.step}.{run.steps[command.step].executions}")
    return frozenset(found - set(run.executions))
