import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from repository import ROOT, SOURCES, readme

# The budgets may only go down.
MODULE_LINES = 400
FUNCTION_LINES = 60
README_LINES = 150

NAMES = [str(path.relative_to(ROOT)) for path in SOURCES]
per_module = pytest.mark.parametrize("path", SOURCES, ids=NAMES)


@cache
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
    """The reason stands on the line of the `except` or on the first one in it; a lint code alone is none.

    What is raised again needs none: nothing is swallowed.
    """
    lines, tree = parsed(path)
    silent = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and broad(node) and not isinstance(node.body[-1], ast.Raise):
            comments = [line.partition("#")[2] for line in lines[node.lineno - 1 : node.lineno + 1]]
            reasons = [word for c in comments for word in c.replace("noqa:", "").split() if not word.startswith("BLE")]
            if len(reasons) < 3:
                silent.append(node.lineno)
    assert silent == []


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def taken_from(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Module and name of everything that is imported by name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)


def defined_in(tree: ast.Module | ast.If) -> Iterator[str]:
    for node in (*tree.body, *getattr(tree, "orelse", ())):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Assign(targets=targets):
                yield from (target.id for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from (alias.asname or alias.name for alias in names)
            case ast.If():
                yield from defined_in(node)


@pytest.mark.requirement("size")
def test_what_a_module_lists_as_public_is_there_and_nothing_else_is_taken_from_it() -> None:
    trees = {module_of(path): parsed(path)[1] for path in SOURCES}
    listed: dict[str, list[str]] = {}
    for module, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                listed[module] = ast.literal_eval(node.value)
    taken = {pair for tree in trees.values() for pair in taken_from(tree)}
    absent = [(m, name) for m, names in listed.items() for name in set(names) - set(defined_in(trees[m]))]
    beside = [(m, name) for m, name in taken if m in listed and f"{m}.{name}" not in trees and name not in listed[m]]
    assert sorted(absent) == []
    assert sorted(beside) == []


@pytest.mark.requirement("size", "readme")
def test_the_readme_is_no_manual() -> None:
    assert len(readme().splitlines()) <= README_LINES
