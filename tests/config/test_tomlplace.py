import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from procedo.tomlplace import Path, locate, syntax_problem

DOCUMENT = '''\
title = "x" # a comment with [brackets] and = signs
"quoted key" = 'literal # no comment'
a.b.c = 1

[table.inner]
text = """
[not.a.table]
key = "no key"
"""
list = [
  "one", # first
  { deep = true, other = [1,
    2] },
]

[[steps]]
number = 1
routing.next = [2, 3]

[[steps]]
number = 2
[steps.schema]
input = { type = "object" }
[[steps.calls]]
tool = "a"
[[steps.calls]]
tool = "\\u0062"
date = 1979-05-27T07:32:00Z
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("title",), 1),
        (("quoted key",), 2),
        (("a",), 3),
        (("a", "b", "c"), 3),
        (("table",), 5),
        (("table", "inner"), 5),
        (("table", "inner", "text"), 6),
        (("table", "inner", "list"), 10),
        (("table", "inner", "list", 0), 11),
        (("table", "inner", "list", 1), 12),
        (("table", "inner", "list", 1, "other", 1), 13),
        (("steps",), 16),
        (("steps", 0), 16),
        (("steps", 0, "routing", "next", 1), 18),
        (("steps", 1), 20),
        (("steps", 1, "number"), 21),
        (("steps", 1, "schema"), 22),
        (("steps", 1, "schema", "input", "type"), 23),
        (("steps", 1, "calls", 0, "tool"), 25),
        (("steps", 1, "calls", 1, "tool"), 27),
        (("steps", 1, "calls", 1, "date"), 28),
    ],
)
def test_every_key_is_found_on_its_line(path: Path, line: int) -> None:
    assert locate(DOCUMENT).line(*path) == line


def test_an_absent_key_is_placed_at_the_table_that_lacks_it() -> None:
    places = locate(DOCUMENT)

    assert places.line("table", "inner", "absent") == 5
    assert places.line("absent") == 1


def test_text_inside_a_string_is_not_taken_for_a_key() -> None:
    assert ("not",) not in locate(DOCUMENT).lines
    assert ("table", "inner", "key") not in locate(DOCUMENT).lines


def _paths(value: object, path: Path = ()) -> set[Path]:
    found = {path} if path else set()
    if isinstance(value, dict):
        return found.union(*(_paths(inner, (*path, key)) for key, inner in value.items()))
    if isinstance(value, list):
        return found.union(*(_paths(inner, (*path, number)) for number, inner in enumerate(value)))
    return found


def test_the_places_are_exactly_the_paths_of_the_parsed_document() -> None:
    assert set(locate(DOCUMENT).lines) == _paths(tomllib.loads(DOCUMENT))


_TEXTS = st.sampled_from(
    [
        '"a"',
        "'b'",
        '"""x\n# y\n[z]"""',
        "'''p\n\"q = 1'''",
        '"\\"]"',
        '"""ends with a quote\\""""',
        '""',
        "''",
        "1",
        "2.5",
    ]
)
_VALUES = st.recursive(
    _TEXTS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: "[\n" + ", # note ]\n".join(items) + "\n]"),
        st.lists(inner.filter(lambda text: "\n" not in text), max_size=3).map(
            lambda items: "{" + ", ".join(f"k{number} = {item}" for number, item in enumerate(items)) + "}"
        ),
    ),
    max_leaves=8,
)


@given(st.lists(_VALUES, max_size=5))
def test_whatever_the_values_are_each_key_keeps_its_own_line(values: list[str]) -> None:
    text, lines = "", {}
    for number, value in enumerate(values):
        lines[f"key{number}"] = text.count("\n") + 1
        text += f"key{number} = {value} # end\n"

    found = locate(text)

    assert {str(path[0]): line for path, line in found.lines.items() if len(path) == 1} == lines
    assert set(found.lines) == _paths(tomllib.loads(text))


@pytest.mark.parametrize(("text", "line"), [("a = 1\nb = = 2\n", 2), ("a = 1\n\nb = [1,\n", 3), ("a = 1\na = 2\n", 2)])
def test_a_syntax_error_is_placed(text: str, line: int) -> None:
    with pytest.raises(tomllib.TOMLDecodeError) as caught:
        tomllib.loads(text)

    where, message = syntax_problem(caught.value, text)

    assert where == line
    assert message
    assert "at line" not in message
