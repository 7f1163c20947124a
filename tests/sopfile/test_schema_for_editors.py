import tomllib
from pathlib import Path

import pytest
from repository import ROOT

from procedo.jsonschemas import compile_schema
from procedo.sopfile.reference import HEADER, STEP, TRIGGERS, Type
from procedo.sopfile.schema import definition_schema

EXAMPLES = sorted((ROOT / "sops").glob("*/SOP.toml"))
SMALL = '[sop]\nname = "a"\ndescription = "b"\n'
STEPS = SMALL + "[[steps]]\nnumber = 1\ntitle = 't'\n"


def violations(text: str) -> list[str]:
    return [str(one) for one in compile_schema(definition_schema()).violations(tomllib.loads(text))]


@pytest.mark.requirement("schemas")
def test_every_field_is_in_the_schema_with_its_meaning() -> None:
    schema = definition_schema()
    tables = {"sop": (HEADER, schema["properties"]["sop"]), "steps": (STEP, schema["properties"]["steps"]["items"])}
    for fields, table in tables.values():
        for field in fields.values():
            place = table
            for part in field.name.split("."):
                place = place["properties"][part]
            assert place["description"].startswith(field.meaning)


def test_every_type_of_field_has_a_form() -> None:
    used = {field.type for table in (HEADER, STEP) for field in table.values()}
    used |= {kind for keys in TRIGGERS.values() for kind in keys.values()}
    assert used <= set(Type)
    assert violations(STEPS) == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_every_example_is_valid(path: Path) -> None:
    assert violations(path.read_text()) == []


@pytest.mark.parametrize(
    "text",
    [
        STEPS + "routing = { next = [2, 'three'], depends_on = 1 }\n",
        STEPS + "on_failure = 'retry:3 backoff:30s'\ntimeout = '15m'\n",
        STEPS + "calls = [{ tool = 'a', args = { b = 1 } }]\nx-own = 1\n",
        STEPS + "routing = { switch = [{ name = 'a', when = 'x > 1', goto = 'end' }] }\n",
        SMALL + "[[triggers]]\ntype = 'cron'\nexpression = '0 9 * * *'\n",
    ],
)
def test_what_the_format_allows_is_valid(text: str) -> None:
    assert violations(text) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[sop]\nname = 'a'\n", "sop.description"),
        (SMALL + "prioritty = 'high'\n", "sop.prioritty"),
        (SMALL + "priority = 'highest'\n", "sop.priority"),
        (STEPS + "titel = 'x'\n", "steps.0.titel"),
        (STEPS + "requires_confirmation = 'yes'\n", "steps.0.requires_confirmation"),
        (STEPS + "routing = { nxt = 2 }\n", "steps.0.routing.nxt"),
        (SMALL + "[[triggers]]\ntype = 'crno'\n", "triggers.0"),
        ("a = 1\n" + SMALL, "a:"),
    ],
)
def test_a_mistake_is_found(text: str, why: str) -> None:
    assert [line for line in violations(text) if line.startswith(why)]
