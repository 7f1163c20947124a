from dataclasses import dataclass, field, replace

import pytest
from engine import NOW, Desk, plain, sop

from procedo.core.altered import altered
from procedo.core.state import Arrival, Execution, Performer, Phase

EXECUTION = Execution("1.1", Arrival(1), Performer.HOST, "host", NOW)


def test_it_makes_what_replace_makes_and_leaves_the_value_alone() -> None:
    run = Desk(sop(*plain(2))).start().state
    before = replace(run)
    assert altered(run, revision=7, gates={}) == replace(run, revision=7, gates={})
    assert altered(EXECUTION, phase=Phase.FAILED, fence=2) == replace(EXECUTION, phase=Phase.FAILED, fence=2)
    assert run == before
    copy = altered(run)
    assert copy == run
    assert copy is not run
    assert copy.executions is run.executions


def test_a_field_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(KeyError, match="colour"):
        altered(EXECUTION, colour="red")


@dataclass(frozen=True, slots=True)
class Checked:
    number: int

    def __post_init__(self) -> None:
        if self.number < 0:
            raise ValueError(self.number)


@dataclass(frozen=True, slots=True)
class Computed:
    number: int
    double: int = field(init=False, default=0)


@dataclass(frozen=True)
class WithoutSlots:
    number: int


@pytest.mark.parametrize("value", [Checked(1), Computed(1), WithoutSlots(1)], ids=lambda value: type(value).__name__)
def test_a_value_that_is_more_than_its_fields_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="no plain value"):
        altered(value, number=2)


@dataclass(frozen=True, slots=True)
class Named:
    value: int


def test_a_field_may_have_any_name() -> None:
    assert altered(Named(1), value=2) == Named(2)
