import subprocess
import sys

import pytest
from definitions import HEADER, compiled, files
from repository import ROOT

from procedo.core.conditions import ConditionError
from procedo.core.model import Truth
from procedo.sopfile import compile_files
from procedo.sopfile.cel import compile_condition, compile_expression

IDS = {"triage": "4"}
SCOPE = {
    "inputs": {"wet": True, "level": 12, "text": "12", "list": [1, 2, 3], "nothing": None, "share": 0.5},
    "steps": {"1": {"done": "no", "t-1": 5}, "4": {"ok": True}},
    "run": {"id": "run-1"},
    "item": {"n": 2},
}


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("inputs.wet == true", True),
        ("inputs.wet && inputs.level >= 12", True),
        ("!inputs.wet || inputs.level < 3", False),
        ('steps["1"].done == "no"', True),
        ("steps['1']['t-1'] > 4", True),
        ("steps[1].done == 'no'", True),
        ("steps.triage.ok", True),
        ('steps["triage"].ok', True),
        ("inputs.list.exists(x, x > 2)", True),
        ("size(inputs.list) == 3 && 2 in inputs.list", True),
        ('run.id.startsWith("run-")', True),
        ("item.n * 2 == 4", True),
        ("inputs.share < 1", True),
        ("has(inputs.gone) && inputs.gone == 1", False),
    ],
)
def test_cel_reads_inputs_steps_run_and_item(text: str, answer: bool) -> None:
    assert compile_condition(text, IDS).test(SCOPE) == Truth(answer)


@pytest.mark.requirement("C21")
@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("inputs.text > 5", "No such overload: the operation is not defined for the given operand types"),
        ("inputs.gone == 1", "'gone' has no value"),
        ('steps["7"].done == "no"', "'7' has no value"),
        ("inputs.level / 0 == 1", "division by zero in CEL expression"),
        ("inputs.text", "the condition gave text, not true or false"),
        ("inputs.text == 12", "inputs.text is text and was compared with number 12"),
        ('steps["1"].done == false', "steps.1.done is text and was compared with boolean false"),
    ],
)
def test_an_error_while_a_condition_is_tested_is_never_a_silent_false(text: str, note: str) -> None:
    assert compile_condition(text, IDS).test(SCOPE) == Truth(False, note)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("inputs.wet ==", 13),
        ("inputs.wet = true", 11),
        ("inputs.a &&\n  )", 14),
        ("weather.wet", 0),
        ("inputs.a && weather.wet", 12),
        ("(" * 70 + "1" + ")" * 70, 64),
        ("inputs.a == " + "1" * 5000, 4096),
    ],
)
def test_an_expression_that_cannot_be_read_tells_the_position(text: str, position: int) -> None:
    with pytest.raises(ConditionError) as caught:
        compile_condition(text, IDS)
    assert caught.value.position == position


def test_a_step_that_does_not_exist_is_told_when_it_is_compiled() -> None:
    with pytest.raises(ConditionError) as caught:
        compile_condition('inputs.a && steps["9"].x == 1', IDS, known=frozenset({"1", "4"}))
    assert (caught.value.message, caught.value.position) == ("there is no step 9", 17)


@pytest.mark.parametrize(
    ("text", "refs"),
    [
        ('steps["1"].a && steps.triage.b', frozenset({1, 4})),
        ("inputs.steps == 1", frozenset()),
        ('inputs.text == "steps[2]"', frozenset()),
        ("steps[inputs.text].a", None),
        ("size(steps) > 1", None),
    ],
)
def test_a_condition_knows_which_steps_it_reads(text: str, refs: frozenset[int] | None) -> None:
    assert compile_condition(text, IDS).refs == refs


def test_expressions_compute_a_value_of_the_inputs() -> None:
    key = compile_expression('inputs.text + " / " + string(inputs.level)')
    assert key.value(SCOPE) == "12 / 12"
    with pytest.raises(ValueError, match="'gone' has no value"):
        compile_expression("inputs.gone").value(SCOPE)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("inputs.text", "12"),
        ("$.inputs.text", "12"),
        ("{{inputs.text}}-{{inputs.level}}", "12-12"),
        ("inputs.level + 1", 13),
    ],
)
def test_a_key_is_a_path_a_template_or_an_expression(written: str, value: object) -> None:
    sop = compiled("1. **A**\n", f"{HEADER}key = '{written}'\n")
    assert sop.key is not None
    assert sop.key.value(SCOPE) == value
    with pytest.raises(ValueError, match="has no value"):
        sop.key.value({"inputs": {}})


def test_a_verification_sees_the_output_and_other_conditions_do_not() -> None:
    (step,) = compiled("1. **A**\n   - verify: output.count == inputs.level\n").steps
    assert step.verify is not None
    assert step.verify.condition is not None
    assert step.verify.condition.test({**SCOPE, "output": {"count": 12}}) == Truth(True)
    with pytest.raises(ValueError, match="unknown name `output`"):
        compile_condition("output.count == 1", {}, variables=("inputs", "steps"))


def test_the_evaluator_and_the_markdown_reader_are_imported_only_when_needed() -> None:
    plain, more = files("1. **A**\n   - when: $.steps.1.x == 1\n"), files("1. **A**\n   - when: inputs.x == 1\n")
    code = f"""
import sys
from procedo.sopfile import compile_files
assert "markdown_it" not in sys.modules and "cel.cel" not in sys.modules and "jsonschema" not in sys.modules
compile_files({plain!r}, "a")
assert "markdown_it" in sys.modules and "cel.cel" not in sys.modules
compile_files({more!r}, "a")
assert "cel.cel" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=240, env={"PYTHONPATH": str(ROOT / "src")})


def test_the_evaluator_comes_without_the_shell_of_its_package_and_others_may_import_that() -> None:
    code = f"""
import sys
from procedo.sopfile import compile_files
compile_files({files("1. **A**" + chr(10) + "   - when: inputs.x == 1" + chr(10))!r}, "a")
assert "prompt_toolkit" not in sys.modules and "typer" not in sys.modules
import cel
assert "prompt_toolkit" in sys.modules, "nothing is saved any more"
assert cel.compile is sys.modules["cel.cel"].compile
assert cel.evaluate("1 + 1") == 2
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=240, env={"PYTHONPATH": str(ROOT / "src")})


def test_a_guard_that_reads_a_mapping_view_gets_plain_values() -> None:
    from types import MappingProxyType

    sop = compile_files(files("1. **A**\n   - when: inputs.a.b == 1\n"), "a")
    assert sop.steps[0].when is not None
    assert sop.steps[0].when.test({"inputs": MappingProxyType({"a": MappingProxyType({"b": 1})})}) == Truth(True)
