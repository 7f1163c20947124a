import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from repository import ROOT, SOURCES, readme

# The budgets may only go down.
MODULE_LINES = 400
FUNCTION_LINES = 60
README_LINES = 150

NAMES = [str(path.relative_to(ROOT)) for path in SOURCES]
per_module = pytest.mark.parametrize("path", SOURCES, ids=NAMES)


def parsed(path: Path) -> tuple[list[str], ast.Module]:
    text = path.read_text(encoding="utf-8")
    return text.splitlines(), ast.parse(text)


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@pytest.mark.requirement("size")
@per_module
def test_a_module_fits_on_a_few_screens(path: Path) -> None:
    assert len(parsed(path)[0]) <= MODULE_LINES


@pytest.mark.requirement("size")
@per_module
def test_a_function_fits_on_one_screen(path: Path) -> None:
    lengths = {f.name: (f.end_lineno or f.lineno) - f.lineno + 1 for f in functions(parsed(path)[1])}
    assert {name: lines for name, lines in lengths.items() if lines > FUNCTION_LINES} == {}


def broad(handler: ast.ExceptHandler) -> bool:
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or ast.unparse(kind) in {"Exception", "BaseException"} for kind in caught)


@pytest.mark.requirement("size")
@per_module
def test_a_broad_except_gives_its_reason(path: Path) -> None:
    """The reason stands on the line of the `except` or on the first one in it; a lint code alone is none."""
    lines, tree = parsed(path)
    silent = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and broad(node):
            comments = [line.partition("#")[2] for line in lines[node.lineno - 1 : node.lineno + 1]]
            reasons = [word for c in comments for word in c.replace("noqa:", "").split() if not word.startswith("BLE")]
            if len(reasons) < 3:
                silent.append(node.lineno)
    assert silent == []


@pytest.mark.requirement("size")
@per_module
def test_the_public_names_of_a_module_are_those_it_lists(path: Path) -> None:
    made: set[str] = set()
    other: set[str] = set()
    listed: list[str] | None = None
    for node in parsed(path)[1].body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                made.add(name)
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                listed = ast.literal_eval(value)
            case ast.Assign(targets=targets):
                other |= {target.id for target in targets if isinstance(target, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                other.add(name)
            case ast.Import(names=names) | ast.ImportFrom(names=names) if path.name == "__init__.py":
                other |= {alias.asname or alias.name for alias in names}
    if listed is not None:
        assert len(listed) == len(set(listed)), "a name stands twice in __all__"
        assert set(listed) - made - other == set(), "__all__ names what is not defined"
        assert {name for name in made if not name.startswith("_")} - set(listed) == set(), "__all__ leaves out"


@pytest.mark.requirement("size", "readme")
def test_the_readme_is_no_manual() -> None:
    assert len(readme().splitlines()) <= README_LINES
