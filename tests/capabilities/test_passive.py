from collections.abc import Awaitable, Callable

import pytest

from procedo.capabilities.passive import waited_ms
from procedo.capabilities.registry import Registry
from procedo.core.model import Json
from procedo.errors import BadArgument, Refused

Perform = Callable[[Registry, str, Json], Awaitable[Json]]
pytestmark = pytest.mark.anyio
SCHEMA = {"type": "object", "properties": {"weight": {"type": "number"}}, "required": ["weight"]}


@pytest.fixture
def registry(web_registry: Callable[..., Registry]) -> Registry:
    return web_registry()


@pytest.mark.parametrize("value", [None, 5, "text", [1, 2], {"a": {"b": None}}])
async def test_noop_returns_its_input(registry: Registry, perform: Perform, value: Json) -> None:
    assert await perform(registry, "noop", value) == value


@pytest.mark.parametrize(
    ("arguments", "length"),
    [({"seconds": 2}, 2000), ({"milliseconds": 1500}, 1500), ({"seconds": 0.5, "input": "piped"}, 500)],
)
async def test_wait_says_how_long_its_timer_is(
    registry: Registry, perform: Perform, arguments: Json, length: int
) -> None:
    assert await perform(registry, "wait", arguments) == {"waited_ms": length}
    assert waited_ms(arguments) == length


@pytest.mark.parametrize(
    "arguments", [{}, {"seconds": 1, "milliseconds": 1}, {"seconds": -1}, {"seconds": "1"}, {"seconds": 1e12}, 5]
)
async def test_a_wait_without_one_sensible_length_is_refused(
    registry: Registry, perform: Perform, arguments: Json
) -> None:
    with pytest.raises(BadArgument, match="wait: the arguments do not fit"):
        await perform(registry, "wait", arguments)


@pytest.mark.requirement("C51")
async def test_validation_checks_what_was_piped_when_no_value_is_authored(registry: Registry, perform: Perform) -> None:
    piped = {"weight": 3}

    assert await perform(registry, "json.validate", {"schema": SCHEMA, "input": piped}) == {
        "valid": True,
        "value": piped,
    }
    with pytest.raises(Refused, match="weight: expected a value, got nothing"):
        await perform(registry, "json.validate", {"schema": SCHEMA, "input": {}})


async def test_an_authored_value_is_checked_before_the_piped_one(registry: Registry, perform: Perform) -> None:
    arguments = {"schema": SCHEMA, "value": {"weight": 1}, "input": "not this"}

    assert await perform(registry, "json.validate", arguments) == {"valid": True, "value": {"weight": 1}}


async def test_an_authored_null_is_a_value(registry: Registry, perform: Perform) -> None:
    with pytest.raises(Refused, match="expected object, got null"):
        await perform(registry, "json.validate", {"schema": SCHEMA, "value": None, "input": {"weight": 1}})


@pytest.mark.requirement("C106")
async def test_a_value_that_does_not_fit_is_a_failure_with_path_expected_and_found(
    registry: Registry, perform: Perform
) -> None:
    with pytest.raises(Refused) as caught:
        await perform(registry, "json.validate", {"schema": SCHEMA, "value": {"weight": "heavy"}})

    assert str(caught.value) == "json.validate: the value does not fit: weight: expected number, got string."


@pytest.mark.parametrize(
    ("schema", "told"),
    [({"type": 5}, "the schema is malformed at type"), ({"$ref": "https://schemas.invalid/a"}, "nothing is fetched")],
)
async def test_a_malformed_schema_is_not_taken_for_a_bad_value(
    registry: Registry, perform: Perform, schema: Json, told: str
) -> None:
    with pytest.raises(Refused, match=told) as caught:
        await perform(registry, "json.validate", {"schema": schema, "value": 1})

    assert caught.value.code == "malformed_schema"


async def test_finished_text_is_handed_on_untouched(registry: Registry, perform: Perform) -> None:
    assert await perform(registry, "template", {"text": "20 % {off} {{x}}"}) == {"text": "20 % {off} {{x}}"}


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("Dear {{name}}, {{ items.1 }}!", {"name": "Ida", "items": ["a", "b"]}, "Dear Ida, b!"),
        ("{{n}} {{o}}", {"n": 1.5, "o": {"a": "ü"}}, '1.5 {"a": "ü"}'),
        ("{{none}} {{flag}}", {"none": None, "flag": True}, "null true"),
        ("{{a}}", {"a": "{{b}}", "b": "never"}, "{{b}}"),
        ("no placeholder }}", {}, "no placeholder }}"),
        ("", {}, ""),
    ],
)  # fmt: skip
async def test_a_template_is_filled_from_its_values(
    registry: Registry, perform: Perform, text: str, values: Json, expected: str
) -> None:
    assert await perform(registry, "template", {"template": text, "values": values}) == {"text": expected}


async def test_a_template_can_use_the_piped_value(registry: Registry, perform: Perform) -> None:
    piped = {"template": "{{input.id}}", "input": {"id": 7}}

    assert await perform(registry, "template", piped) == {"text": "7"}
    assert await perform(registry, "template", piped | {"values": {"input": {"id": 8}}}) == {"text": "8"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Dear {{nmae}}", r"\{\{nmae\}\} has no value \(did you mean 'name'\?\)"),
        ("{{name.first}}", r"\{\{name.first\}\} has no value"),
        ("{{items.9}}", r"\{\{items.9\}\} has no value"),
        ("Dear {{name", r"character 6 do not close"),
    ],
)
async def test_a_placeholder_that_cannot_be_filled_is_named(
    registry: Registry, perform: Perform, text: str, told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        await perform(registry, "template", {"template": text, "values": {"name": "Ida", "items": []}})


@pytest.mark.parametrize("arguments", [{}, {"text": "a", "template": "b"}, {"text": "a", "values": {}}, {"text": 5}])
async def test_a_template_needs_exactly_one_source(registry: Registry, perform: Perform, arguments: Json) -> None:
    with pytest.raises(BadArgument, match="template: the arguments do not fit"):
        await perform(registry, "template", arguments)
