"""The reference in `docs/reference` is what the code says. `PROCEDO_UPDATE=1` writes it anew."""

import ast
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import Workspace
from mcp import Client
from readme_transcript import server
from repository import ROOT, SOURCES, fenced, readme

from procedo.config import KEYS
from procedo.core.events import EVENTS
from procedo.errors import ProcedoError
from procedo.sopfile import CODES
from procedo.surfaces.cli.exits import EXITS
from procedo.surfaces.cli.manual.environment import VARIABLES
from procedo.surfaces.cli.manual.error_codes import ERROR_CODES, KINDS
from procedo.surfaces.cli.manual.pages import PAGES, made, write
from procedo.surfaces.cli.manual.tool_examples import CODE, EXAMPLES, RUN
from procedo.surfaces.cli.parser import VERBS
from procedo.surfaces.cli.verbs.audit import LINE
from procedo.surfaces.mcp.contracts import CONTRACTS

pytestmark = [pytest.mark.requirement("reference"), pytest.mark.anyio]

FOLDER = ROOT / "docs" / "reference"
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES}
KIND_NAMES = {kind.__name__: kind for kind in KINDS}


def test_every_page_is_what_the_code_says() -> None:
    if os.environ.get("PROCEDO_UPDATE") == "1":
        write(FOLDER)
    written = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
    assert sorted(written) == sorted(made())
    stale = [name for name, text in made().items() if written[name] != text]
    assert stale == [], "run `procedo manual --all docs/reference`"


def test_everything_that_has_a_name_is_in_the_reference() -> None:
    text = "".join(made().values())
    names = [
        *(key.name for key in KEYS),
        *CODES,
        *ERROR_CODES,
        *VARIABLES,
        *(kind.__name__ for kind in EVENTS),
        *(contract.name for contract in CONTRACTS),
    ]
    assert [name for name in names if name not in text] == []
    assert [verb.name for verb in VERBS if f"\n## {verb.name}\n" not in text] == []


def test_every_table_has_rows_of_equal_length() -> None:
    for name, text in made().items():
        for block in text.split("\n\n"):
            rows = [line for line in block.splitlines() if line.startswith("|")]
            assert len({re.sub(r"\\\|", "", row).count("|") for row in rows}) <= 1, (name, block)


def raised() -> Iterator[tuple[str, str]]:
    """Every code that stands in the sources beside the class of an error, or in what hands both on."""
    for tree in TREES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                name = ast.unparse(node.func).rpartition(".")[2]
                if name in KIND_NAMES or name == "failure":
                    yield str(node.args[0].value), "Refused" if name == "failure" else name
            if isinstance(node, ast.ClassDef):
                yield from own_codes(node)


def own_codes(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """The code that a class of errors gives to all of its own."""
    bases = [ast.unparse(base) for base in node.bases if ast.unparse(base) in KIND_NAMES]
    for call in ast.walk(node):
        made = bases and isinstance(call, ast.Call) and ast.unparse(call.func) == "super().__init__"
        if made and isinstance(call, ast.Call) and isinstance(call.args[0], ast.Constant):
            yield str(call.args[0].value), bases[0]


def test_every_error_code_is_in_the_table_with_its_kinds() -> None:
    # Two codes are chosen at the moment of raising: `deferred` and `dropped`.
    found = {*raised(), ("deferred", "Refused")}
    assert ("not_open", "Conflict") in found
    table = {(code, kind.__name__) for code, row in ERROR_CODES.items() for kind in row.kinds}
    assert sorted(found - table) == []
    assert sorted(table - found) == []


def test_every_kind_of_error_is_told_and_every_exit_code_has_its_meaning() -> None:
    def below(kind: type[ProcedoError]) -> set[type[ProcedoError]]:
        return {kind}.union(*(below(sub) for sub in kind.__subclasses__()))

    public = {kind for kind in below(ProcedoError) if kind.__module__ == "procedo.errors"}
    assert set(KINDS) == public
    assert {kind.exit_code for kind in public} <= set(EXITS)


def constants(tree: ast.Module) -> dict[str, object]:
    """The plain constants of a module."""
    found: dict[str, object] = {}
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Constant):
            found[ast.unparse(node.target)] = node.value.value
    return found


def variables() -> set[str]:
    """Names that the sources look up in an environment."""
    found = set()
    for tree in TREES.values():
        known = constants(tree)
        for node in ast.walk(tree):
            place: ast.expr | None = None
            key: ast.expr | None = None
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"get", "pop"}:
                place, key = node.func.value, node.args[0] if node.args else None
            elif isinstance(node, ast.Subscript):
                place, key = node.value, node.slice
            if place is None or key is None or not ast.unparse(place).endswith("environ"):
                continue
            if isinstance(key, ast.Constant):
                found.add(str(key.value))
            elif ast.unparse(key) in known:
                found.add(str(known[ast.unparse(key)]))
    return found


def test_every_variable_that_is_read_is_in_the_table() -> None:
    assert {"PROCEDO_TOKEN", "PROCEDO_WORKSPACE", "NO_COLOR"} <= variables()
    assert sorted(variables() - set(VARIABLES)) == []


def fits(shown: Any, value: Any) -> bool:
    """True when everything that is shown is in the value; a list is shown by its beginning."""
    if isinstance(shown, dict):
        return isinstance(value, dict) and all(key in value and fits(item, value[key]) for key, item in shown.items())
    if isinstance(shown, list):
        return isinstance(value, list) and len(shown) <= len(value) and all(map(fits, shown, value))
    return bool(shown == value)


async def test_each_example_of_a_tool_is_what_happens(tmp_path: Path) -> None:
    folder = tmp_path / "sops" / "refund"
    folder.mkdir(parents=True)
    (folder / "SOP.toml").write_text(fenced(readme(), "toml")[0], encoding="utf-8")
    (folder / "SOP.md").write_text(fenced(readme(), "markdown")[0], encoding="utf-8")
    assert list(EXAMPLES) != []
    real: dict[str, str] = {}

    def told(value: Any, *, back: bool = False) -> Any:
        text = json.dumps(value)
        for invented, found in real.items():
            text = text.replace(found, invented) if back else text.replace(invented, found)
        return json.loads(text)

    async with Client(server(tmp_path)) as client:
        for tool, example in EXAMPLES.items():
            result = await client.call_tool(tool, told(example.arguments))
            assert not result.is_error, (tool, result.content)
            answer: Any = result.structured_content
            if tool == "sop_start":
                real[RUN] = answer["run_id"]
            if tool == "sop_advance":
                real[CODE] = answer["actions"][0]["context"]["code"]
            assert fits(example.answer, told(answer, back=True)), (tool, answer)


def test_what_is_shown_and_not_there_does_not_fit() -> None:
    assert fits({"a": [{"b": 1}]}, {"a": [{"b": 1, "c": 2}, {}], "d": 3})
    assert not fits({"a": 1}, {"a": 2})
    assert not fits({"a": 1}, {})
    assert not fits([1, 2], [1])


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    found = Workspace(tmp_path)
    found.simple("kiln", "1. **Load** — Load the pots.\n")
    return found


def test_a_line_of_the_exported_record_has_the_keys_that_are_told(workspace: Workspace) -> None:
    workspace.json("start", "kiln")
    first = json.loads(workspace.run("audit", "export").out.splitlines()[0])
    assert list(first) == list(LINE)


def test_each_page_is_printed_and_all_are_written(workspace: Workspace) -> None:
    assert workspace.run("manual", "errors").out == f"{PAGES['errors'][1]()}\n"
    for name in PAGES:
        assert f"({name}.md)" in workspace.run("manual").out
    told = workspace.json("manual", "--all", "made")
    assert sorted(path.name for path in (workspace.root / "made").iterdir()) == sorted(told["files"])
    refused = workspace.run("manual", "events", "--all", "made")
    assert (refused.code, "not allowed with" in refused.err) == (2, True)
    unknown = workspace.run("manual", "erors")
    assert unknown.code == 2
