import pytest
from engine import NOW, Desk, plain, sop

from procedo.core.altered import altered
from procedo.core.state import Arrival, Execution, Performer, Phase

EXECUTION = Execution("1.1", Arrival(1), Performer.HOST, "host", NOW)


def test_a_copy_has_the_other_values_and_leaves_the_first_alone() -> None:
    run = Desk(sop(*plain(2))).start().state
    failed = Execution("1.1", Arrival(1), Performer.HOST, "host", NOW, phase=Phase.FAILED, fence=2)
    assert altered(EXECUTION, phase=Phase.FAILED, fence=2) == failed
    assert Execution("1.1", Arrival(1), Performer.HOST, "host", NOW) == EXECUTION
    copy = altered(run)
    assert copy == run
    assert copy is not run
    assert copy.executions is run.executions


def test_a_field_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(TypeError, match="colour"):
        altered(EXECUTION, colour="red")  # type: ignore[call-arg]  # what is tested
