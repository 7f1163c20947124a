import pytest

from procedo.errors import BadArgument
from procedo.intake import DEEPEST, check_size


@pytest.mark.parametrize(("what", "has", "is_"), [("The output", "has", "is"), ("The inputs", "have", "are")])
def test_a_refused_value_is_told_in_grammar(what: str, has: str, is_: str) -> None:
    check_size(what, "x" * 8, 10)
    with pytest.raises(BadArgument, match=f"^{what} {has} 11 bytes, the limit is 10; nothing was changed"):
        check_size(what, "x" * 9, 10)
    with pytest.raises(BadArgument, match=f"^{what} {is_} no JSON value: "):
        check_size(what, {1, 2}, 10)


def nested(depth: int) -> object:
    value: object = 1
    for number in range(depth):
        value = [value] if number % 2 else {"a": value}
    return value


def test_a_value_that_could_be_stored_and_not_shown_is_refused() -> None:
    check_size("The output", nested(DEEPEST), 10_000)
    check_size("The output", [[[1]]] * 1_000, 10_000)
    for depth in (DEEPEST + 1, 400, 900):
        with pytest.raises(BadArgument, match=r"^The output is nested deeper than 100"):
            check_size("The output", nested(depth), 10_000)
