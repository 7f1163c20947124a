import pytest
from hypothesis import given
from hypothesis import strategies as st

from procedo.core.conditions import ConditionError, is_comparison, parse
from procedo.core.model import Truth

DATA = {"urgent": True, "n": "12", "level": 7, "s": "ok", "a": {"b": [10, 20]}, "none": None, "list": [1, 2]}


@pytest.mark.requirement("C21", "C97")
@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("$.urgent == true", Truth(True)),
        ('$.urgent == "true"', Truth(True)),
        ("$.urgent != false", Truth(True)),
        ("$.urgent == false", Truth(False)),
        ("$.level > 5", Truth(True)),
        ("$.level >= 7", Truth(True)),
        ("$.level <= 6.5", Truth(False)),
        ("$.level != 8", Truth(True)),
        ("$.n > 5", Truth(True, '$.n is the text "12", compared as a number')),
        ('$.level == "7"', Truth(True, 'the text "7" was compared with $.level as a number')),
        ('$.s == "ok"', Truth(True)),
        ("$.s == ok", Truth(True)),
        ("$.s != no", Truth(True)),
        ('$.s < "zz"', Truth(True)),
        ("$.a.b.1 == 20", Truth(True)),
        ("$.none == null", Truth(True)),
        ('$.none == ""', Truth(True)),
        ("$.list == [1, 2]", Truth(True)),
        ("$.list != [1, 3]", Truth(True)),
        ("", Truth(True)),
        ("  ", Truth(True)),
    ],
)
def test_a_comparison_compares_values_as_what_they_are(text: str, answer: Truth) -> None:
    assert parse(text).test(DATA) == answer


@pytest.mark.requirement("C21", "C97")
@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("$.missing == 1", "$.missing has no value"),
        ("$.missing != 1", "$.missing has no value"),
        ("$.zz > 1", "$.zz has no value"),
        ("$.a.b.2 == 30", "$.a.b.2 has no value"),
        ("$.s.x == 1", "$.s.x has no value"),
        ("$.s > 3", '$.s is text "ok" and was compared with number 3'),
        ("$.s != 3", '$.s is text "ok" and was compared with number 3'),
        ("$.urgent == yes", '$.urgent is boolean true and was compared with text "yes"'),
        ("$.urgent > false", "$.urgent is boolean, which has no order"),
        ("$.a == 1", '$.a is object {"b": [10, 20]} and was compared with number 1'),
        ("$.list == {}", '$.list is array [1, 2] and was compared with text "{}"'),
    ],
)
def test_a_comparison_that_cannot_be_made_does_not_hold_and_says_why(text: str, note: str) -> None:
    assert parse(text).test(DATA) == Truth(False, note)


@pytest.mark.requirement("C97")
@pytest.mark.parametrize("text", ["$.s == 1", "$.s != 1", "> 3", "$ == 1"])
def test_without_data_only_the_empty_condition_holds(text: str) -> None:
    nothing: dict[str, object] = None  # type: ignore[assignment]  # a payload may be absent
    assert parse(text).test(nothing) == Truth(False, "there is no data to test")
    assert parse("").test(nothing) == Truth(True)


def test_a_bare_number_is_tested_without_a_path() -> None:
    number: dict[str, object] = 7  # type: ignore[assignment]  # the payload of a trigger may be one number
    assert parse("> 5").test(number) == Truth(True)
    assert parse("<= 5").test(number) == Truth(False)


def test_operators_inside_quotes_are_text() -> None:
    assert parse('$.s == "a >= b"').test({"s": "a >= b"}) == Truth(True)


@pytest.mark.requirement("C21")
@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("$.n >", 5, 'a value is missing behind the operator; the empty text is ""'),
        ("$.n", 3, "no comparison: expected one of >= <= != == > <"),
        ("$.a == 1 && $.b == 2", 9, "`&&`: only one comparison can stand here"),
        ('$.a == "x" == 3', 10, "only one comparison can stand here"),
        ('$.a == "x', 7, "the quote is never closed"),
        ("$.a[0] == 1", 3, "`[` cannot stand in a path"),
        ("$..a == 1", 2, "a part of the path is missing"),
        ("$a == 1", 1, "expected `.` after `$`"),
        ("> x", 1, "a comparison without a path needs a number"),
    ],
)
def test_a_condition_that_cannot_be_read_tells_the_position(text: str, position: int, message: str) -> None:
    with pytest.raises(ConditionError) as caught:
        parse(text)
    assert (caught.value.position, caught.value.message) == (position, message)


def test_a_condition_knows_which_steps_it_reads() -> None:
    assert parse("$.steps.2.done == true").refs == frozenset({2})
    assert parse("$.steps.triage.done == true", {"triage": "4"}).refs == frozenset({4})
    assert parse("$.inputs.level == 1").refs == frozenset()
    assert parse("$.steps == {}").refs is None


def test_step_ids_read_the_output_of_their_number() -> None:
    assert parse("$.steps.triage.done == no", {"triage": "4"}).test({"steps": {"4": {"done": "no"}}}) == Truth(True)


def test_comparisons_are_told_from_other_conditions() -> None:
    assert [is_comparison(text) for text in ("", "$.a == 1", " > 5", "inputs.a == 1", "size(x) > 1")] == [
        True,
        True,
        True,
        False,
        False,
    ]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(value=json_values, literal=st.from_regex(r'\A("[^"]{0,5}"|true|false|null|-?[0-9]{1,4}|[a-z]{1,5})\Z'))
def test_equal_and_unequal_never_both_hold_and_tests_never_raise(value: object, literal: str) -> None:
    equal, unequal = (parse(f"$.v {word} {literal}").test({"v": value}) for word in ("==", "!="))
    assert not (equal.value and unequal.value)
    assert equal.value or unequal.value or equal.note


@given(value=json_values)
def test_a_text_value_equals_itself_in_quotes(value: object) -> None:
    text = "".join(letter for letter in str(value) if letter not in '"\n\r')
    assert parse(f'$.v == "{text}"').test({"v": text}).value
