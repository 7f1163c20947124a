"""Checks a compiled definition against its workspace and against itself; `procedo check` and the library use it."""

from collections.abc import Sequence

from procedo.sopfile.agentcheck import check_agents
from procedo.sopfile.checked import Checked
from procedo.sopfile.flow import Flow
from procedo.sopfile.flowcheck import check_flow
from procedo.sopfile.names import check_names
from procedo.sopfile.readcheck import check_reads
from procedo.sopfile.riskcheck import check_risk
from procedo.sopfile.stepcheck import check_steps
from procedo.sopfile.surroundings import Surroundings

__all__ = ["check_library", "check_procedure"]


def check_procedure(one: Checked, around: Surroundings) -> None:
    """Everything that can be wrong with one procedure in this workspace; goes to its findings."""
    check_names(one, around)
    check_agents(one, around)
    check_steps(one)
    if one.sop.steps:
        flow = Flow(one.sop)
        check_flow(one, flow)
        check_reads(one, flow)
        check_risk(one, flow, around)


def check_library(all_of_them: Sequence[Checked]) -> None:
    """What can be wrong between procedures: the same name twice, and procedures that start each other."""
    by_name: dict[str, list[Checked]] = {}
    for one in all_of_them:
        by_name.setdefault(one.sop.name, []).append(one)
    for name, same in by_name.items():
        for one in same:
            for other in same:
                if other is not one:
                    message = f"{name!r} is also the name in {other.where}"
                    one.tell("duplicate-name", message, "give each procedure its own name", field="name")
    _recursion({name: same[0] for name, same in by_name.items()})


def _recursion(procedures: dict[str, Checked]) -> None:
    """Tell every step that starts a procedure from which its own procedure can be reached."""
    starts = {name: [s.sub_sop for s in one.sop.steps if s.sub_sop] for name, one in procedures.items()}
    for name, one in procedures.items():
        for step in one.sop.steps:
            if step.sub_sop is not None and name in _reachable(step.sub_sop, starts):
                way = "itself" if step.sub_sop == name else f"itself through {step.sub_sop!r}"
                one.tell("sop-recursion", f"step {step.number} starts {way}", "use `next` to repeat steps", step, "sop")


def _reachable(start: str, starts: dict[str, list[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += starts.get(name, [])
    return found
