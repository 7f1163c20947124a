import pytest

from procedo.errors import BadArgument
from procedo.intake import check_size


@pytest.mark.parametrize(("what", "has", "is_"), [("The output", "has", "is"), ("The inputs", "have", "are")])
def test_a_refused_value_is_told_in_grammar(what: str, has: str, is_: str) -> None:
    check_size(what, "x" * 8, 10)
    with pytest.raises(BadArgument, match=f"^{what} {has} 11 bytes, the limit is 10; nothing was changed"):
        check_size(what, "x" * 9, 10)
    with pytest.raises(BadArgument, match=f"^{what} {is_} no JSON value: "):
        check_size(what, {1, 2}, 10)
