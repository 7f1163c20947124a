"""Whether a case came out as it was expected to."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

from procedo.core.model import Json, Sop
from procedo.core.state import Execution
from procedo.rehearsal.script import Expected
from procedo.runs import History

__all__ = ["judged"]

_EXECUTION: Final = re.compile(r"\d+\.\d+")


def _text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _number(sop: Sop, place: int | str) -> int | None:
    if isinstance(place, int):
        return place
    return next((step.number for step in sop.steps if step.id == place), None)


def _fits(sop: Sop, place: int | str, execution: Execution) -> bool:
    if isinstance(place, str) and _EXECUTION.fullmatch(place):
        return execution.id == place
    return execution.step == _number(sop, place)


def _path(expected: Sequence[int | str], history: History) -> Iterator[str]:
    sop, executions = history.snapshot.sop, history.executions
    same = len(expected) == len(executions) and all(map(lambda p, e: _fits(sop, p, e), expected, executions))
    if not same:
        was = ", ".join(execution.id for execution in executions) or "nothing"
        yield f"path: expected {', '.join(map(str, expected)) or 'nothing'}; was {was}"


def _gates(expected: Sequence[int | str], history: History) -> Iterator[str]:
    found = [gate.step for gate in history.gates]
    if [_number(history.snapshot.sop, place) for place in expected] != found:
        was = ", ".join(map(str, found)) or "none"
        yield f"gates: expected at {', '.join(map(str, expected)) or 'none'}; were at {was}"


def _outputs(expected: Expected, history: History) -> Iterator[str]:
    sop = history.snapshot.sop
    last = {e.step: e.closing.output for e in history.executions if e.closing is not None and not e.closing.reason}
    for place, wanted in expected.outputs.items():
        number = int(place) if place.isdecimal() else _number(sop, place)
        if number is None or number not in last:
            yield f"output of step {place}: expected {_text(wanted)}; it has none"
        elif last[number] != wanted:
            yield f"output of step {place}: expected {_text(wanted)}; was {_text(last[number])}"


def judged(expected: Expected, history: History) -> list[str]:
    """What was not as expected, in words."""
    end = history.snapshot.run.end
    status = history.snapshot.run.status
    reason = end.reason if end is not None else ""
    output = end.output if end is not None else None
    failures = []
    if expected.status is not None and expected.status is not status:
        failures.append(f"status: expected {expected.status}; was {status}" + (f" ({reason})" if reason else ""))
    if expected.path is not None:
        failures += _path(expected.path, history)
    if expected.gates is not None:
        failures += _gates(expected.gates, history)
    if expected.reason is not None and expected.reason not in reason:
        failures.append(f"reason: expected to contain {expected.reason!r}; was {reason!r}")
    if expected.has_output and expected.output != output:
        failures.append(f"output: expected {_text(expected.output)}; was {_text(output)}")
    return [*failures, *_outputs(expected, history)]
