import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from repository import ROOT, plain_environment

CORE = sorted((ROOT / "src" / "procedo" / "core").glob("*.py"))


def imported(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "."


def foreign(source: str) -> set[str]:
    """What a module of the core may not import: see the requirement. Of `msgspec` it may take the values alone."""
    return {
        name
        for name in imported(source)
        if name.partition(".")[0] not in sys.stdlib_module_names
        and name not in ("procedo.errors", "msgspec", "msgspec.structs")
        and not f"{name}.".startswith("procedo.core.")
    }


@pytest.mark.requirement("core-pure")
@pytest.mark.parametrize("path", CORE, ids=[path.name for path in CORE])
def test_the_core_imports_the_standard_library_its_values_and_the_errors_alone(path: Path) -> None:
    assert foreign(path.read_text(encoding="utf-8")) == set()


def test_a_foreign_import_is_seen() -> None:
    taken = ("import json", "import mcp.server", "import msgspec", "import msgspec.json")
    source = "\n".join((*taken, "from procedo.errors import Refused", "from procedo.ports import Store"))
    assert foreign(source) == {"mcp.server", "msgspec.json", "procedo.ports"}


def lint(source: str, place: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", "--select=TID251", f"--stdin-filename={place}", "-"],
        input=source,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=plain_environment(),
        check=False,
    )


def banned() -> list[str]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return sorted(settings["tool"]["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"])


@pytest.mark.requirement("core-pure")
def test_a_clock_or_an_outside_in_the_core_is_a_lint_error() -> None:
    apis = banned()
    lines = [f"import {api.partition('.')[0]}\nprint({api})\n" for api in apis]
    found = lint("".join(lines), "src/procedo/core/example.py")
    assert found.returncode == 1
    assert [api for api in apis if f"`{api}` is banned" not in found.stdout] == []
    assert {"asyncio", "anyio", "time", "random", "os", "uuid", "socket", "pathlib"} <= set(apis)


@pytest.mark.requirement("core-pure")
@pytest.mark.parametrize("place", ["src/procedo/driver.py", "src/procedo/sopfile/core.py", "tests/core/test_x.py"])
def test_outside_the_core_the_same_lines_are_no_lint_error(place: str) -> None:
    found = lint("import time\nimport asyncio\nprint(time, asyncio)\n", place)
    assert (found.returncode, found.stdout.strip()) == (0, "All checks passed!")
