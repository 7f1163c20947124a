import io
from datetime import UTC, datetime, timedelta

import pytest

from procedo.surfaces.cli.output import Output, ago, brief, duration, visible
from procedo.surfaces.cli.wording import as_command, decisions

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, ü and 漢", "plain text, ü and 漢"),
        ("\x1b[2Kgone", "\\x1b[2Kgone"),
        ("a\rb", "a\\x0db"),
        ("\u202etxt.exe", "\\u202etxt.exe"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("\x9b31m", "\\x9b31m"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
    ],
)
def test_control_characters_are_made_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_single_line_stays_one() -> None:
    assert visible("a\nb", lines=False) == "a\\x0ab"


def test_a_line_keeps_our_styles_and_no_others() -> None:
    stream = io.StringIO()
    out = Output(stream, colour=True)
    out.line(out.style("red", "bad") + " \x1b[8mhidden")
    assert stream.getvalue() == "\x1b[31mbad\x1b[0m \\x1b[8mhidden\n"


def test_without_colour_every_escape_is_foreign() -> None:
    stream = io.StringIO()
    out = Output(stream)
    out.line(out.style("red", "bad") + " \x1b[31mred")
    assert stream.getvalue() == "bad \\x1b[31mred\n"


def test_json_says_the_same_without_control_characters() -> None:
    import json

    stream = io.StringIO()
    value = {"a": "\x9b2K\u202e", "b": ["ü", 1, None]}
    Output(stream, json=True).value(value)
    assert json.loads(stream.getvalue()) == value
    assert "\x9b" not in stream.getvalue()
    assert "\u202e" not in stream.getvalue()
    assert "ü" in stream.getvalue()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59.4, "59 s"), (60, "1 min"), (3599, "59 min"), (3600, "1 h"), (7500, "2 h 5 min"), (400_000, "4 d")],
)
def test_a_duration_reads_in_the_units_that_matter(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_moment_is_told_from_now() -> None:
    assert ago(NOW - timedelta(minutes=3), NOW) == "3 min ago"
    assert ago(NOW + timedelta(minutes=5), NOW) == "in 5 min"


def test_columns_are_aligned() -> None:
    stream = io.StringIO()
    Output(stream).table(("run", "status"), [("run-1", "running"), ("r", "waiting")])
    assert stream.getvalue() == "run    status\nrun-1  running\nr      waiting\n"


def test_a_brief_value_is_one_short_line() -> None:
    assert brief({"a": [1, 2]}) == '{"a": [1, 2]}'
    assert brief("one\n  two") == "one two"
    assert brief("x" * 100, 10) == "x" * 9 + "…"


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("sop_list shows the names.", "procedo list shows the names."),
        ("sop_describe('deploy') shows the schema.", "procedo show deploy shows the schema."),
        ("Follow it with sop_status('run-1').", "Follow it with procedo status run-1."),
        ("Report with sop_advance('run-1').", "Report with sop_advance('run-1')."),
    ],
)
def test_advice_names_the_command_that_does_the_same(told: str, said: str) -> None:
    assert as_command(told) == said


def test_a_hint_for_a_model_reads_as_a_command() -> None:
    assert as_command("sop_status without run_id lists the runs.") == "procedo status lists the runs."


def test_the_commands_of_a_gate_are_those_of_its_answers() -> None:
    assert decisions("K7QF", ["repeat", "skip", "fail"]) == (
        "procedo approve K7QF --verdict repeat  |  procedo approve K7QF --verdict skip"
        "  |  procedo approve K7QF --verdict fail"
    )
    assert decisions("K7QF", ["approve", "revise"]) == 'procedo approve K7QF  |  procedo revise K7QF "GUIDANCE"'
