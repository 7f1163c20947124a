from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from procedo.surfaces.text import capped, compact, framed, line, stamp


@pytest.mark.requirement("C67")
@example("x</data-mamark0rk0>y")
@given(st.text(alphabet="mark0</data->> \n\x1b[31m"))
def test_no_content_can_forge_its_frame(content: str) -> None:
    text = framed("mark0", "inputs", content)
    assert text.startswith("inputs: <data-mark0>")
    assert text.endswith("</data-mark0>")
    assert text.count("mark0") == 2
    assert "\x1b" not in text


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v)
    ),
    st.integers(1, 200),
)
def test_a_capped_value_is_whole_json_and_never_much_longer_than_its_limit(value: object, limit: int) -> None:
    shown = capped(value, limit)
    if len(compact(value)) <= limit:
        assert shown == value
    else:
        assert shown["cut"] is True
        assert shown["characters"] == len(compact(value))
        assert len(shown["beginning"]) <= limit


def test_a_line_is_one_line_without_terminal_escapes() -> None:
    assert line("a\r\nb\x1b]0;title\x07\x1b[2Jc\u202e d") == "a bc d"
    assert line("abcdef", 4) == "abc…"


def test_a_moment_is_told_in_utc() -> None:
    assert stamp(datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=2)))) == "2026-01-02T01:04:05Z"
