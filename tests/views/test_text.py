import json
import unicodedata
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from procedo.core.characters import TREACHEROUS, plain, spelled_out
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


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("plain, ü and 漢", "plain, ü and 漢"),
        ("one\r\ntwo\tthree\u2028four\u2029five", "one\ntwo\tthree\nfour\nfive"),
        ("\x1b[31mred\x1b[0m \x1b]0;title\x07\x00\x7f\x9b", "red "),
        ("pass\u00adword \u061c\u200e\u202efdp.exe\u2066\u200b\ufeff\U000e0041", "password fdp.exe"),
        ("half \ud800", "half "),
    ],
)
def test_a_model_is_told_nothing_that_a_reader_would_not_see(text: str, told: str) -> None:
    assert plain(text) == told


@pytest.mark.parametrize(
    ("text", "kept", "told"),
    [
        ("plain, ü and 漢 \\u001b", "", "plain, ü and 漢 \\u001b"),
        ("\x1b[31mred\x1b[0m \x00\x7f\x9b", "", r"\u001b[31mred\u001b[0m \u0000\u007f\u009b"),
        ("abc\u202efdp.exe\u2066\u200b\U000e0041", "", r"abc\u202efdp.exe\u2066\u200b\udb40\udc41"),
        ("one\ntwo\tthree", "\n\t", "one\ntwo\tthree"),
        ("one\ntwo\tthree", "\n", "one\ntwo\\tthree"),
        ("half \ud800", "", r"half \ud800"),
    ],
)
def test_what_a_reader_would_not_see_is_spelled_out(text: str, kept: str, told: str) -> None:
    assert spelled_out(text, kept) == told


@example("\x7f\u202e\u2028\U000e0041")
@given(st.text())
def test_json_that_is_spelled_out_has_the_same_value(content: str) -> None:
    told = spelled_out(json.dumps({"a": [content]}, ensure_ascii=False, indent=1), "\n")
    assert json.loads(told) == {"a": [content]}
    assert not {unicodedata.category(c) for c in told if c != "\n"} & TREACHEROUS
