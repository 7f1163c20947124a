import ast
import re
import tomllib
from functools import cache
from pathlib import Path

from repository import ROOT, TESTS

MANIFEST = ROOT / "tests" / "requirements.toml"


def promised() -> dict[str, str]:
    tables = tomllib.loads(MANIFEST.read_text(encoding="utf-8"))
    return {name: sentence for table in tables.values() for name, sentence in table.items()}


def named_by_marks(source: str, where: str) -> set[str]:
    """The ids in every `pytest.mark.requirement(...)` of a file."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr != "requirement" or not ast.unparse(node.func).endswith("mark.requirement"):
            continue
        assert node.args, f"{where}:{node.lineno}: the mark names nothing"
        for argument in node.args:
            literal = isinstance(argument, ast.Constant) and isinstance(argument.value, str)
            assert literal, f"{where}:{node.lineno}: an id is a plain text, so that it can be found"
            names.add(ast.literal_eval(argument))
    return names


@cache
def shown() -> dict[str, set[Path]]:
    found: dict[str, set[Path]] = {}
    for path in TESTS:
        for name in named_by_marks(path.read_text(encoding="utf-8"), path.name):
            found.setdefault(name, set()).add(path.relative_to(ROOT))
    return found


def test_every_promise_has_a_test() -> None:
    assert sorted(set(promised()) - set(shown())) == []


def test_every_marked_test_names_a_promise() -> None:
    assert {name: paths for name, paths in shown().items() if name not in promised()} == {}


def test_marks_are_found_on_functions_modules_and_parameters() -> None:
    source = """
pytestmark = pytest.mark.requirement("a")
@pytest.mark.requirement("b", "c")
@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.requirement("d"))])
def test_x(x): ...
@pytest.mark.other("e")
def test_y(): ...
"""
    assert named_by_marks(source, "source") == {"a", "b", "c", "d"}


def test_every_promise_is_one_sentence_and_stands_once() -> None:
    lines = MANIFEST.read_text(encoding="utf-8").splitlines()
    names = [match[1] for line in lines if (match := re.match(r"([\w.-]+) = ", line))]
    assert sorted(names) == sorted(set(names))
    for name, sentence in promised().items():
        assert sentence.endswith("."), name
        assert len(sentence) <= 120, name
