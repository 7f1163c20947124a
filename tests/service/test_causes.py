from procedo.causes import causes


def test_an_error_alone_is_its_own_cause() -> None:
    alone = ValueError("x")
    assert [*causes(alone)] == [alone]


def test_a_group_has_the_errors_in_it_however_deep_and_in_order() -> None:
    first, second, third = ValueError("1"), KeyboardInterrupt(), OSError("3")
    inner = BaseExceptionGroup("inner", [first, BaseExceptionGroup("innermost", [second])])
    assert [*causes(BaseExceptionGroup("outer", [inner, third]))] == [first, second, third]
