"""The table of legal moves, walked completely: every status with every command, every phase with a report."""

from itertools import product

import pytest
from engine import BOT, IDA, Desk, plain, sop

from procedo.core import messages as m
from procedo.core.altered import altered
from procedo.core.evolve import _TABLE
from procedo.core.machine import _HANDLERS, LEGAL, REPORTS
from procedo.core.model import Kind, Mode, Step
from procedo.core.state import GateKind, Phase, Status, Verdict
from procedo.errors import Refused


def desk_in(status: Status) -> Desk:
    first, second = plain(2)
    if status is Status.WAITING_APPROVAL:
        return Desk(sop(altered(first, requires_confirmation=True), second)).start()
    if status is Status.PAUSED_CHECKPOINT:
        return Desk(sop(altered(first, kind=Kind.CHECKPOINT), second)).start()
    if status is Status.PENDING:
        desk = Desk(sop(altered(first, next=(3,)), second, Step(3, "Needs two", depends_on=(2,)))).start()
        desk.report("1.1")
        return desk
    desk = Desk(sop(first, second)).start()
    if status is Status.PAUSED:
        desk.do(m.Hold(IDA))
    if status is Status.COMPLETED:
        desk.report("1.1")
        desk.report("2.1")
    if status is Status.FAILED:
        desk.fail("1.1")
    if status is Status.CANCELLED:
        desk.do(m.Cancel("enough", IDA))
    return desk


SAMPLES: dict[type, m.Command] = {
    m.Start: m.Start("run-2", None, BOT, Mode.AUTO, "host", "marker"),
    m.Report: m.Report("9.9", Phase.COMPLETED, "x", BOT),
    m.Begin: m.Begin("9.9", 1, repeatable=False),
    m.Finish: m.Finish("9.9", 1, Phase.COMPLETED),
    m.Judge: m.Judge("9.9", "pass"),
    m.Ask: m.Ask("9.9", 1, "0.0", GateKind.TOOL_CALL, "May it?", {}),
    m.Decide: m.Decide("run-1.g9", Verdict.APPROVE, IDA),
    m.Cancel: m.Cancel("enough", IDA),
    m.Hold: m.Hold(IDA),
    m.Release: m.Release(IDA),
    m.Reopen: m.Reopen(1, IDA),
    m.Tick: m.Tick(),
}
HARMLESS = {m.Cancel, m.Hold, m.Release, m.Tick}
"""Commands that need nothing but the right status."""


@pytest.mark.parametrize("status", list(Status))
def test_each_status_can_be_reached(status: Status) -> None:
    assert desk_in(status).status is status


@pytest.mark.parametrize(("status", "kind"), list(product(Status, SAMPLES)))
def test_each_command_in_each_status_is_in_the_table_or_refused(status: Status, kind: type) -> None:
    desk = desk_in(status)
    before = desk.state
    if kind in LEGAL[status] and kind in HARMLESS:
        desk.do(SAMPLES[kind])
        return
    # The samples name things that do not exist, so a legal one is refused too: by its handler, for that reason.
    with pytest.raises(Refused) as caught:
        desk.do(SAMPLES[kind])
    assert desk.state == before
    if kind not in LEGAL[status]:
        assert caught.value.code in {"ended", "exists", "paused", "not_paused"}
    assert caught.value.hint


def test_without_a_run_only_a_start_is_legal() -> None:
    for kind, command in SAMPLES.items():
        desk = Desk(sop(*plain(1)))
        if kind is m.Start:
            assert desk.do(command) == ["RunStarted", "StepVisited", "ExecutionOpened"]
        else:
            with pytest.raises(Refused):
                desk.do(command)
            assert desk.run is None


def test_the_tables_are_complete() -> None:
    assert set(LEGAL) == {None, *Status}
    assert set(REPORTS) == set(Phase)
    assert set(_HANDLERS) == set(m.COMMANDS) - {m.Start}
    assert set(_TABLE) == set(m.EVENTS)


def test_a_refusal_on_an_ended_run_tells_its_end() -> None:
    desk = desk_in(Status.CANCELLED)
    with pytest.raises(Refused, match=r"already cancelled by ida \(human, cli\).*enough"):
        desk.do(m.Cancel("again", IDA))
