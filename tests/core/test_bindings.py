import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from procedo.core.bindings import BindingError, MissingValue, Reference, references, resolve, rewrite, validate

SCOPE: dict[str, Any] = {
    "inputs": {"name": "kiln", "count": 3, "nothing": None},
    "steps": {"1": {"ticket": "T-1", "items": [{"id": 7}, {"id": 8}]}, "2": "done"},
    "run": {"id": "run-1", "sop": "firing", "version": "1", "started_at": "2030-01-01T00:00:00+00:00"},
    "item": {"id": 9},
    "calls": {"0": {"ok": True}},
}


@pytest.mark.requirement("C98")
@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("{{steps.1}}", SCOPE["steps"]["1"]),
        ("{{ steps.1.items.1.id }}", 8),
        ("{{inputs.count}}", 3),
        ("{{inputs.nothing}}", None),
        ("n = {{inputs.count}}, {{inputs.nothing}}", "n = 3, null"),
        ("got {{steps.1.items}}", 'got [{"id": 7}, {"id": 8}]'),
        ("{{run.id}}/{{item.id}}", "run-1/9"),
        ("{{calls.0.ok}}", True),
        ("no binding", "no binding"),
        (r"plain \{{braces}}", "plain {{braces}}"),
        (["{{steps.2}}", 1, {"k": "{{inputs.name}}"}], ["done", 1, {"k": "kiln"}]),
        ({"{{inputs.name}}": True}, {"kiln": True}),
        (None, None),
    ],
)
def test_bindings_are_replaced_and_one_that_stands_alone_keeps_its_type(template: object, value: object) -> None:
    assert resolve(template, SCOPE) == value


@pytest.mark.requirement("C98")
@pytest.mark.parametrize("name", ["steps.1.gone", "steps.3", "inputs.name.x", "steps.1.items.2", "steps.1.items.-1"])
def test_a_missing_value_is_an_error_that_names_it(name: str) -> None:
    with pytest.raises(MissingValue) as caught:
        resolve({"deep": [f"see {{{{{name}}}}}"]}, SCOPE)
    assert (caught.value.name, str(caught.value)) == (name, f"{{{{{name}}}}} has no value")


def test_a_frame_goes_around_every_value_also_one_that_stands_alone() -> None:
    def frame(value: object) -> str:
        return f"<{json.dumps(value)}>"

    assert resolve("{{steps.2}}", SCOPE, frame) == '<"done">'
    assert resolve("a {{inputs.count}} b", SCOPE, frame) == "a <3> b"


@pytest.mark.requirement("C98")
@pytest.mark.parametrize(
    ("template", "position"),
    [
        ("see {{steps.1", 4),
        ("{{steps.1 and {{steps.2}}", 0),
        ("{{}}", 0),
        ("{{steps}}", 0),
        ("ab {{stepz.1}}", 3),
        ("{{run.secret}}", 0),
        ("{{steps.1..x}}", 0),
        ("{{steps.1['x']}}", 0),
        ("{{calls.first}}", 0),
    ],
)
def test_a_template_that_cannot_be_read_tells_the_position(template: str, position: int) -> None:
    (error,) = validate({"outer": [template]})
    assert (error.position, error.where) == (position, "outer[0]")
    with pytest.raises(BindingError):
        resolve(template, SCOPE)


def test_references_are_found_in_order_with_their_places() -> None:
    assert references({"a": "x {{steps.1.id}}", "b": ["{{item}}"]}) == (
        Reference("steps", ("1", "id"), 2, "a"),
        Reference("item", (), 0, "b[0]"),
    )
    assert [reference.step for reference in references("{{steps.heat.x}} {{run.id}}")] == ["heat", None]


def test_step_ids_are_rewritten_to_numbers_everywhere() -> None:
    value = {"{{steps.heat}}": ["{{steps.heat.t}} \\{{kept}} {{steps.other}}", 4]}
    assert rewrite(value, {"heat": "2"}) == {"{{steps.2}}": ["{{steps.2.t}} \\{{kept}} {{steps.other}}", 4]}


def test_bare_names_mean_a_path_below_their_root() -> None:
    assert rewrite("{{title}}: {{a.b}} {{inputs.x}}", {}, bare="input") == "{{input.title}}: {{input.a.b}} {{inputs.x}}"


@given(st.text(alphabet="{}\\ab. \n", max_size=30))
def test_rewriting_changes_no_meaning(text: str) -> None:
    if validate(text):
        return
    assert rewrite(rewrite(text, {}), {}) == rewrite(text, {})
    assert [r.name for r in references(rewrite(text, {}))] == [r.name for r in references(text)]


@given(st.text(max_size=30).filter(lambda text: "{{" not in text))
def test_text_without_bindings_stays_as_it_is(text: str) -> None:
    assert resolve(text, {}) == text
