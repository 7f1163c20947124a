import re

import pytest

from procedo.core.model import Json, Violation
from procedo.jsonschemas import compile_schema, kind_of

TICKET = {
    "type": "object",
    "required": ["ticket"],
    "properties": {"ticket": {"type": "string", "pattern": "^T-[0-9]+$"}},
}


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (
            {"properties": {"weight": {"type": "number"}}},
            {"weight": "heavy"},
            ["weight: expected number, got string"],
        ),
        (TICKET, {"ticket": "T-12"}, []),
        (TICKET, "done", ["value: expected object, got string"]),
        (TICKET, {}, ["ticket: expected a value, got nothing"]),
        (TICKET, {"ticket": 12}, ["ticket: expected string, got number"]),
        (TICKET, {"ticket": "x"}, ['ticket: expected text that matches ^T-[0-9]+$, got "x"']),
        ({"items": {"enum": [1, 2]}}, [1, 3], ["1: expected one of 1, 2, got 3"]),
        (
            {"additionalProperties": False, "properties": {"a": True}},
            {"a": 1, "b": 2},
            ["b: expected no such property, got 2"],
        ),
        ({"required": ["a", "b"]}, {}, ["a: expected a value, got nothing", "b: expected a value, got nothing"]),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 5, ["value: expected string or null, got 5"]),
        ({"properties": {"a": False}}, {"a": 1}, ["value: expected no value here, got 1"]),
        ({"$defs": {"q": {"type": "string"}}, "$ref": "#/$defs/q"}, 5, ["value: expected string, got number"]),
        ({"minimum": 3}, 2, ["value: expected at least 3, got 2"]),
        ({"type": "integer"}, True, ["value: expected integer, got boolean"]),
        ({"type": "integer"}, 3.0, []),
        ({"format": "email"}, "nobody", ['value: expected text in the format email, got "nobody"']),
        (True, {"anything": None}, []),
    ],
)
def test_a_violation_tells_path_expected_and_found(schema: Json, value: Json, expected: list[str]) -> None:
    assert [str(violation) for violation in compile_schema(schema).violations(value)] == expected


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"type": 5}, "type"),
        ({"properties": {"a": {"pattern": "("}}}, "properties.a.pattern"),
        (5, "a schema is an object"),
        ({"$ref": "#/$defs/absent"}, "#/$defs/absent"),
        ({"properties": {"a": {"$ref": "https://schemas.invalid/a.json"}}}, "nothing is fetched"),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "2020-12"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_when_it_is_compiled(schema: Json, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        compile_schema(schema)


def test_a_reference_to_json_schema_itself_is_known_without_fetching() -> None:
    schema = compile_schema({"$ref": "https://json-schema.org/draft/2020-12/schema"})

    assert schema.violations({"type": "string"}) == ()
    assert schema.violations({"type": 5})[0].path == "type"


def test_a_schema_that_refers_to_itself_for_ever_violates_instead_of_crashing() -> None:
    assert compile_schema({"$ref": "#"}).violations(1) == (
        Violation("", "a schema whose references come to an end", "one that refers to itself for ever"),
    )


def test_many_violations_are_counted_instead_of_listed() -> None:
    found = compile_schema({"items": {"type": "string"}}).violations(list(range(50)))

    assert len(found) == 21
    assert str(found[-1]) == "value: expected no further violations, got 30 more"


def test_a_long_value_is_shortened_in_a_violation() -> None:
    (found,) = compile_schema({"maxLength": 3}).violations("x" * 5000)

    assert len(found.found) == 120


def test_kinds_are_named_in_the_words_of_json_schema() -> None:
    values: list[Json] = [None, True, 1, 1.5, "", [], {}]

    assert [kind_of(value) for value in values] == [
        "null", "boolean", "number", "number", "string", "array", "object",
    ]  # fmt: skip
