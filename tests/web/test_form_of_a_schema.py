"""Schemas as fields, and values through a form and back. No web in here."""

import json
import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jinja2 import Environment, PackageLoader, StrictUndefined
from web_page import Page

from procedo.jsonschemas import compile_schema
from procedo.surfaces.web.fields import Choice, Field, Group, Lines, Number, Raw, Rows, Text, drawn
from procedo.surfaces.web.formfilling import filled, prefilled, with_row, without_row
from procedo.surfaces.web.formvalues import ABSENT, below, read
from procedo.surfaces.web.formview import nodes

pytestmark = pytest.mark.requirement("console-start-form")
TEMPLATE = Environment(
    loader=PackageLoader("procedo.surfaces.web"), autoescape=True, undefined=StrictUndefined
).from_string(
    """{% from "fields.html" import draw %}
    <form action="/here">{% for one in nodes %}{{ draw(one, "") }}{% endfor %}</form>"""
)

# --- values through a form ------------------------------------------------------------------------

NAMES = st.text(st.sampled_from("abc/~#.é %\n"), min_size=1, max_size=4)
TEXTS = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=12), st.sampled_from(["", "\n", "a\nb", " x", "a\r\nb"])
)
NUMBERS = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=8,
)
SCALARS = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "maxLength": 10},
        {"type": "string", "format": "date"},
        {"type": "integer", "minimum": 2},
        {"type": "number"},
        {"type": "boolean"},
        {"type": ["string", "null"]},
        {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        {"enum": ["a", 1, 1.0, True, None, {"b": []}]},
        {"const": "yes"},
        {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        {"$ref": "#/$defs/there"},
        {"$ref": "#/$defs/tree"},
        True,
        False,
    ]
)


@st.composite
def objects(draw: Any, inner: st.SearchStrategy[Any]) -> Any:
    properties = draw(st.dictionaries(NAMES, inner, max_size=4))
    required = draw(st.lists(st.sampled_from([*properties, "more"]), unique=True))
    extra = draw(st.sampled_from([{}, {"additionalProperties": False}, {"additionalProperties": {"type": "string"}}]))
    return {"type": "object", "properties": properties, "required": required, **extra}


def lists(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return inner.map(lambda items: {"type": "array", "items": items})


SCHEMAS = objects(st.recursive(SCALARS, lambda inner: st.one_of(objects(inner), lists(inner)), max_leaves=6))


def whole(schema: Any) -> Any:
    tree = {"type": "object", "properties": {"left": {"$ref": "#/$defs/tree"}, "name": {"type": "string"}}}
    return {**schema, "$defs": {"there": {"type": "string", "pattern": "^x"}, "tree": tree}}


def value_of(field: Field) -> st.SearchStrategy[Any]:  # noqa: PLR0911  # one for each kind of field
    """Values that suit a field, mostly."""
    match field:
        case Group():
            parts = {one.key: value_of(one) for one in field.fields}
            needed = {one.key: parts.pop(one.key) for one in field.fields if one.required}
            return st.one_of(st.fixed_dictionaries(needed, optional=parts), VALUES)
        case Rows():
            return st.lists(value_of(field.item), max_size=3)
        case Lines():
            kind = {"string": TEXTS, "boolean": st.booleans(), "integer": st.integers(), "number": NUMBERS}[field.item]
            return st.lists(kind, max_size=3)
        case Choice():
            return st.one_of(st.sampled_from(field.options), VALUES)
        case Number():
            return NUMBERS
        case Text():
            return TEXTS
        case _:
            return VALUES


def sent_by_a_browser(entries: dict[str, str]) -> dict[str, str]:
    """The same entries as they arrive: line breaks are two characters."""
    return {
        name: text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\r\n") for name, text in entries.items()
    }


@given(st.data(), SCHEMAS)
def test_a_form_that_is_sent_unchanged_gives_the_value_that_filled_it(data: Any, schema: Any) -> None:
    form = drawn(whole(schema))
    value = data.draw(value_of(form))
    entries = filled(form, value)
    reading = read(form, sent_by_a_browser(entries))
    assert reading.problems == {}
    assert json.dumps(reading.value, sort_keys=True) == json.dumps(value, sort_keys=True)
    assert reading.names >= {name for name, text in entries.items() if text}
    assert all(name.isascii() and "\n" not in name for name in entries)


@given(st.data(), SCHEMAS)
@settings(max_examples=50)
def test_the_page_of_a_form_carries_its_entries_as_they_are(data: Any, schema: Any) -> None:
    form = drawn(whole(schema))
    value = data.draw(value_of(form))
    entries = filled(form, value)
    page = TEMPLATE.render(nodes=nodes(form, entries, {"/a": "<b>wrong</b>"}))
    sent = Page(200, page, {}, "").form("/here")
    assert {name: text for name, text in entries.items() if text} == {
        name: text for name, text in sent.items() if name in entries and text
    }
    assert json.dumps(read(form, sent_by_a_browser(sent)).value, sort_keys=True) == json.dumps(value, sort_keys=True)
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert {one for told in re.findall(r'aria-describedby="([^"]+)"', page) for one in told.split()} <= set(ids)


@given(st.dictionaries(st.text(), st.text()), SCHEMAS)
@example(
    {"n/a": "9" * 5000, "v/a": "1" * 5000, "j": "[" * 5000},
    {"type": "object", "properties": {"a": {"type": "integer"}}},
)
def test_whatever_is_sent_is_read_or_told(sent: dict[str, str], schema: Any) -> None:
    reading = read(drawn(whole(schema)), sent)
    assert reading.problems or reading.value is not ABSENT or not reading.touched


# --- schemas as fields ----------------------------------------------------------------------------


def only(schema: Any, *, required: bool = True) -> Field:
    """The field for one property."""
    form = drawn({"type": "object", "properties": {"a": schema}, "required": ["a"] if required else []})
    assert isinstance(form, Group)
    (field,) = form.fields
    return field


@pytest.mark.parametrize(
    ("schema", "kind", "rules"),
    [
        ({"type": "string", "format": "date"}, Text, ("text in the format date",)),
        ({"type": "string", "pattern": "^a"}, Text, ("text that matches ^a",)),
        ({"type": "string", "minLength": 2, "maxLength": 9}, Text, ("at least 2 characters", "at most 9 characters")),
        ({"type": "integer", "minimum": 1, "maximum": 9}, Number, ("at least 1", "at most 9")),
        ({"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5}, Number, ("more than 0", "a multiple of 0.5")),
        ({"type": "boolean"}, Choice, ()),
        ({"enum": ["a", 2]}, Choice, ()),
        ({"const": "yes"}, Choice, ()),
        ({"type": "array", "items": {"type": "string"}, "minItems": 1}, Lines, ("at least 1 items",)),
        ({"type": "array", "items": {"enum": ["a"], "type": "string"}}, Lines, ('each entry: one of "a"',)),
        ({"type": "array", "items": {"type": "object", "properties": {"b": {}}}}, Rows, ()),
        ({"type": "object", "properties": {"b": {"type": "string"}}}, Group, ()),
        ({"description": "A parameter of an Agent SOP"}, Text, ()),
        ({"type": "string", "examples": ["one", "two"]}, Text, ("for example one, two",)),
    ],
)
def test_each_kind_of_schema_has_its_field_and_tells_its_rules(schema: Any, kind: type, rules: tuple[str, ...]) -> None:
    field = only(schema)
    assert (type(field), field.rules, field.rest) == (kind, rules, {})


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        {"oneOf": [{"type": "object", "properties": {"a": {}}}, {"type": "string"}]},
        {"$ref": "#/nowhere"},
        {"$ref": "#/properties/a"},
        {"type": ["string", "integer"]},
        {"type": "object"},
        {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
        {"type": "array", "prefixItems": [{"type": "string"}]},
        {"type": "array"},
        {"not": {"type": "string"}},
        {"type": "null"},
        {},
        True,
    ],
)
def test_what_cannot_be_drawn_is_asked_for_as_json_with_its_schema(schema: Any) -> None:
    field = only(schema)
    assert (type(field), field.schema) == (Raw, schema)


@pytest.mark.parametrize(
    ("schema", "rest"),
    [
        ({"type": "string", "contentEncoding": "base64"}, {"contentEncoding": "base64"}),
        ({"type": "integer", "not": {"const": 3}}, {"not": {"const": 3}}),
        ({"type": "array", "items": {"type": "string", "not": {"const": ""}}}, {"items": {"not": {"const": ""}}}),
        ({"type": "array", "items": {"type": "string"}, "contains": {"const": "a"}}, {"contains": {"const": "a"}}),
        (
            {"type": "object", "properties": {"b": {}, "c": {}}, "anyOf": [{"required": ["b"]}, {"required": ["c"]}]},
            {"anyOf": [{"required": ["b"]}, {"required": ["c"]}]},
        ),
    ],
)
def test_a_rule_that_no_field_tells_in_words_is_kept_for_showing(schema: Any, rest: Any) -> None:
    assert only(schema).rest == rest


def test_references_within_the_schema_and_alternatives_to_null_are_drawn() -> None:
    schema = {
        "type": "object",
        "properties": {
            "to": {"$ref": "#/$defs/person", "description": "Who gets it"},
            "copy": {"anyOf": [{"$ref": "#/$defs/person"}, {"type": "null"}], "default": None},
        },
        "$defs": {"person": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}},
    }
    form = drawn(schema)
    assert isinstance(form, Group)
    to, copy = form.fields
    assert [type(to), to.description, to.nullable] == [Group, "Who gets it", False]
    assert [type(copy), copy.nullable] == [Group, True]


def test_a_schema_that_refers_to_itself_ends_in_json() -> None:
    tree = {"type": "object", "properties": {"below": {"$ref": "#/$defs/tree"}, "name": {"type": "string"}}}
    field: Any = drawn({**tree, "$defs": {"tree": tree}})
    depth = 0
    while isinstance(field, Group):
        field, depth = field.fields[0], depth + 1
    assert isinstance(field, Raw)
    assert depth < 10


def test_a_form_stays_a_form_however_many_properties_there_are() -> None:
    form = drawn({"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(1000)}})
    assert isinstance(form, Group)
    assert len(form.fields) == 1000
    assert sum(isinstance(field, Raw) for field in form.fields) > 700


def test_a_required_property_that_is_not_described_is_asked_for() -> None:
    form = drawn({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "b"]})
    assert isinstance(form, Group)
    assert [(type(field), field.key, field.required) for field in form.fields] == [(Text, "a", True), (Raw, "b", True)]


@pytest.mark.parametrize("schema", [True, {}, {"type": "string"}, {"anyOf": [{"type": "object"}]}, {"type": "object"}])
def test_inputs_that_are_no_object_with_properties_are_one_field_for_json(schema: Any) -> None:
    assert isinstance(drawn(schema), Raw)


# --- what is sent ---------------------------------------------------------------------------------

ORDER = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "count": {"type": "integer", "default": 3},
        "urgent": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "sizes": {"type": "array", "items": {"type": "number"}},
        "lines": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"sku": {"type": "string", "maxLength": 9}, "n": {"type": "integer", "default": 1}},
            },
        },
        "address": {"type": "object", "properties": {"street": {"type": "string", "default": "Elm"}}},
        "extra": {"type": "object", "additionalProperties": True},
    },
    "required": ["name"],
    "additionalProperties": {"type": "string"},
}


def test_fields_that_are_left_empty_are_not_given() -> None:
    reading = read(drawn(ORDER), {"v/name": "", "v/count": "", "v/urgent": "", "v/tags": " \n\n", "n/lines": "0"})
    assert (reading.value, reading.problems) == ({}, {})


def test_what_is_typed_becomes_values_of_their_types() -> None:
    sent = {
        "v/name": " Ida ",
        "v/count": " 007 ",
        "v/urgent": "false",
        "v/tags": "a b\r\n\r\nc\r\n",
        "v/sizes": "1\r\n2.50",
        "n/lines": "2",
        "v/lines/0/sku": "k1",
        "v/lines/1/n": "-2",
        "v/address/street": "Oak",
        "j/extra": '{"deep": [1]}',
        "o": '{"note": "soon"}',
    }
    reading = read(drawn(ORDER), sent)
    assert reading.problems == {}
    assert reading.value == {
        "name": " Ida ",
        "count": 7,
        "urgent": False,
        "tags": ["a b", "c"],
        "sizes": [1, 2.5],
        "lines": [{"sku": "k1"}, {"n": -2}],
        "address": {"street": "Oak"},
        "extra": {"deep": [1]},
        "note": "soon",
    }
    assert reading.names >= set(sent)


@pytest.mark.parametrize(
    ("name", "text", "place", "told"),
    [
        ("v/count", "many", "/count", "Write a number in digits, such as 12; this is “many”."),
        ("v/count", "1e999", "/count", "Write a number in digits, such as 12; this is “1e999”."),
        ("v/count", "٣", "/count", "Write a number in digits, such as 12; this is “٣”."),
        ("v/urgent", "perhaps", "/urgent", "Choose one of these."),
        ("v/sizes", "1\n\nx", "/sizes", "Line 3: write a number in digits; this is “x”."),
        (
            "j/extra",
            "{",
            "/extra",
            "This is no JSON: Expecting property name enclosed in double quotes at line 1, column 2.",
        ),
        ("j/extra", '{"a": 1, "a": 2}', "/extra", "This is no JSON: an object names a property twice."),
        ("j/extra", "NaN", "/extra", "This is no JSON: NaN is no JSON value."),
        ("o", "[1]", "#others", 'Write an object: {"name": "value"}.'),
        ("o", '{"name": "x"}', "#others", "name has a field of its own: give it once."),
    ],
)
def test_what_cannot_be_read_is_told_at_its_field(name: str, text: str, place: str, told: str) -> None:
    reading = read(drawn(ORDER), {"v/name": "a", name: text})
    assert reading.problems == {place: told}


def test_defaults_fill_the_form_but_not_objects_that_may_be_left_out() -> None:
    assert prefilled(drawn(ORDER)) == {"v/count": "3"}
    needed = {**ORDER, "required": ["name", "address"]}
    assert prefilled(drawn(needed)) == {"v/count": "3", "v/address/street": "Elm"}


def test_a_default_that_its_field_cannot_show_is_shown_as_json() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "default": ""}, "b": {"type": "string", "default": "x\u202ey"}},
    }
    entries = prefilled(drawn(schema))
    assert entries == {"j/a": '""', "j/b": '"x\\u202ey"'}
    assert read(drawn(schema), entries).value == {"a": "", "b": "x\u202ey"}


def test_rows_are_added_with_their_defaults_and_removed_from_the_middle() -> None:
    form = drawn(ORDER)
    entries = with_row(form, {"v/name": "a"}, "/lines")
    assert entries == {"v/name": "a", "n/lines": "1", "v/lines/0/n": "1"}
    entries = with_row(form, with_row(form, {**entries, "v/lines/0/sku": "zero"}, "/lines"), "/lines")
    entries |= {"v/lines/1/sku": "one", "v/lines/2/sku": "two"}
    left = without_row(entries, "/lines", 1)
    assert read(form, left).value == {"name": "a", "lines": [{"sku": "zero", "n": 1}, {"sku": "two", "n": 1}]}
    assert with_row(form, left, "/tags") == left
    assert with_row(form, left, "/nothing") == left


def test_places_of_odd_names_are_plain_and_differ() -> None:
    names = ["a/b", "a~b", "a~1b", "a.b", "a b", "é", "#", "a\nb", ""]
    places = [below("", name) for name in names]
    assert len(set(places)) == len(names)
    assert all(place.isascii() and place.count("/") == 1 and "\n" not in place for place in places)


def test_an_object_that_may_be_left_out_is_given_once_anything_is_typed_in_it() -> None:
    schema = {
        "type": "object",
        "properties": {
            "address": {
                "type": "object",
                "properties": {"street": {"type": "string"}, "lines": {"type": "array", "items": {"type": "string"}}},
                "required": ["street", "lines"],
            }
        },
    }
    form, check = drawn(schema), compile_schema(schema).violations
    assert read(form, {"v/address/street": "", "v/address/lines": ""}).value == {}
    begun = read(form, {"v/address/street": "", "v/address/lines": "second floor"}).value
    assert begun == {"address": {"lines": ["second floor"]}}
    assert [violation.path for violation in check(begun)] == ["address.street"]
