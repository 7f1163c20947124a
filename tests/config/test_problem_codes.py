"""Every code of a problem in procedo.toml is in the table, with an example that has it."""

import ast
import re
from pathlib import Path

import pytest
from repository import SOURCES

from procedo.config import load
from procedo.config.problem_codes import CONFIG_CODES
from procedo.errors import InvalidConfig

FILES = {"encoding", "too-large", "unreadable"}


def used() -> set[str]:
    """The codes that the readers of the configuration give, those put together from a word aside."""
    found = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if path.parent.name == "config" else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) > 1:
                code = node.args[1]
                if node.func.attr in {"object_to", "note"} and isinstance(code, ast.Constant):
                    found.add(str(code.value))
    return found


def test_every_code_is_in_the_table() -> None:
    assert len(used()) >= 25
    assert sorted(used() - set(CONFIG_CODES)) == []


@pytest.mark.parametrize("code", [code for code in CONFIG_CODES if code not in FILES])
def test_the_example_of_a_code_has_that_problem(tmp_path: Path, code: str) -> None:
    (tmp_path / "procedo.toml").write_text(f"{CONFIG_CODES[code].example}\n", encoding="utf-8")
    with pytest.raises(InvalidConfig) as caught:
        load(tmp_path)
    assert any(f"error[{code}]" in problem for problem in caught.value.problems), caught.value.problems


def test_the_codes_about_the_file_itself_are_given(tmp_path: Path) -> None:
    file = tmp_path / "procedo.toml"
    given = set()
    for data in (b"\xff", b"# " + b"x" * 1_100_000):
        file.write_bytes(data)
        with pytest.raises(InvalidConfig) as caught:
            load(tmp_path)
        given |= set(re.findall(r"error\[([a-z-]+)\]", str(caught.value)))
    file.unlink()
    file.mkdir()
    with pytest.raises(InvalidConfig, match=r"error\[unreadable\]"):
        load(tmp_path)
    assert given | {"unreadable"} == FILES
