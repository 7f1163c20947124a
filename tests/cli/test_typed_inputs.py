from pathlib import Path
from typing import Any

import pytest

from procedo.core.model import Inputs, Schema
from procedo.errors import BadArgument
from procedo.surfaces.cli.typed import json_argument, start_inputs

PROPERTIES = {
    "version": {"type": "string"},
    "count": {"type": "integer"},
    "share": {"type": "number"},
    "urgent": {"type": "boolean"},
    "tags": {"type": "array"},
    "more": {"type": "object"},
    "either": {"type": ["integer", "string"]},
    "maybe": {"type": ["number", "null"]},
    "level": {"enum": [1, 2, 3]},
    "open": {},
}
DECLARED = Inputs(Schema({"type": "object", "properties": PROPERTIES}, lambda _: ()))


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("version=1.10", {"version": "1.10"}),
        ("version=true", {"version": "true"}),
        ("version=a=b", {"version": "a=b"}),
        ("count=12", {"count": 12}),
        ("share=0.5", {"share": 0.5}),
        ("share=1", {"share": 1}),
        ("urgent=true", {"urgent": True}),
        ('tags=["a"]', {"tags": ["a"]}),
        ('more={"a":1}', {"more": {"a": 1}}),
        ("either=7", {"either": 7}),
        ("either=seven", {"either": "seven"}),
        ("maybe=null", {"maybe": None}),
        ("level=2", {"level": 2}),
        ("open=12", {"open": "12"}),
        ("unknown=12", {"unknown": "12"}),
        ("open:=12", {"open": 12}),
        ("version:=null", {"version": None}),
        ("version=", {"version": ""}),
    ],
)
def test_a_pair_has_the_type_that_the_schema_gives_it(pair: str, value: Any) -> None:
    found = start_inputs(DECLARED, None, [pair])
    assert found == value
    assert [type(item) for item in found.values()] == [type(item) for item in value.values()]


@pytest.mark.parametrize(
    "pair", ["count=many", "urgent=yes", "tags=a,b", "share=NaN", "nothing", "=1", ":=1", "open:=x"]
)
def test_a_pair_that_does_not_fit_is_refused_and_never_guessed(pair: str) -> None:
    with pytest.raises(BadArgument):
        start_inputs(DECLARED, None, [pair])


def test_the_refusal_names_the_type_and_the_way_out() -> None:
    with pytest.raises(BadArgument) as refused:
        start_inputs(DECLARED, None, ["count=many"])
    assert refused.value.message == "Input 'count' is to be integer, got 'many'."
    assert refused.value.hint == "Give JSON of that type: --input count:=JSON"


def test_pairs_are_laid_over_the_whole() -> None:
    assert start_inputs(DECLARED, '{"version":"1","open":true}', ["version=2"]) == {"version": "2", "open": True}


@pytest.mark.parametrize("whole", ["[1]", "12", '"text"', "null", '{"a":1}'])
@pytest.mark.requirement("C49")
def test_inputs_of_every_json_type_are_passed_on(whole: str) -> None:
    import json

    assert start_inputs(None, whole, []) == json.loads(whole)


def test_pairs_do_not_go_with_inputs_that_are_no_object() -> None:
    with pytest.raises(BadArgument, match="array"):
        start_inputs(DECLARED, "[1]", ["version=2"])


def test_nothing_given_is_no_inputs() -> None:
    assert start_inputs(DECLARED, None, []) is None


def test_json_comes_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "inputs.json"
    file.write_text('{"a": "ü"}', encoding="utf-8")
    assert json_argument(f"@{file}", "--inputs") == {"a": "ü"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "--inputs is no JSON: Expecting property name enclosed in double quotes at line 1, column 2."),
        ("Infinity", "--inputs is no JSON: Infinity is no JSON value."),
        ("@/no/such/file", "The file /no/such/file of --inputs cannot be read: No such file or directory."),
    ],
)
def test_json_that_is_none_is_told_with_its_place(text: str, message: str) -> None:
    with pytest.raises(BadArgument) as refused:
        json_argument(text, "--inputs")
    assert refused.value.message == message
