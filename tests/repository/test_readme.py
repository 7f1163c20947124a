"""What the README shows is true. `PROCEDO_UPDATE=1` rewrites the parts that are made from the code."""

import os
import re
from pathlib import Path

import pytest
from commands import Workspace
from mcp import Client
from mcp.types import Tool
from readme_transcript import server, transcript
from repository import ROOT, commands, fenced, readme

pytestmark = [pytest.mark.requirement("readme"), pytest.mark.anyio]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with the README's procedure in it."""
    folder = tmp_path / "sops" / "refund"
    folder.mkdir(parents=True)
    (folder / "SOP.toml").write_text(fenced(readme(), "toml")[0], encoding="utf-8")
    (folder / "SOP.md").write_text(fenced(readme(), "markdown")[0], encoding="utf-8")
    return tmp_path


def part(name: str) -> str:
    found = re.search(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", readme(), flags=re.DOTALL)
    assert found, f"the README has no part {name}"
    return found[1]


def same_or_updated(name: str, made: str) -> None:
    if os.environ.get("PROCEDO_UPDATE") == "1":
        between = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- /{name} -->)", flags=re.DOTALL)
        (ROOT / "README.md").write_text(between.sub(lambda _: made, readme()), encoding="utf-8")
    assert part(name) == made, "run this test with PROCEDO_UPDATE=1 to rewrite the README"


def documented_verbs() -> set[str]:
    inline = re.findall(r"`procedo ([a-z]+)", readme())
    shell = [word for command in commands(readme()) for word in re.findall(r"\bprocedo ([a-z]+)", command)]
    return {*inline, *shell}


def test_every_command_of_the_readme_exists(workspace: Path) -> None:
    assert {"demo", "serve", "check", "install", "inbox", "approve", "audit"} <= documented_verbs()
    for verb in sorted(documented_verbs()):
        told = Workspace(workspace).run(verb, "--help")
        assert (told.code, told.err) == (0, ""), verb


def test_the_two_commands_need_no_package_host_of_ours() -> None:
    first, second = commands(readme())[:2]
    assert first == "python3 -m venv .venv && .venv/bin/pip install -q . && .venv/bin/procedo demo"
    assert second == "python3 -m venv .venv && .venv/bin/pip install -q -e '.[dev]' && .venv/bin/pytest"


def test_the_procedure_has_no_problem(workspace: Path) -> None:
    checked = Workspace(workspace).run("check", "--json")
    assert (checked.code, checked.err) == (0, "")
    assert checked.value["problems"] == []


async def test_the_transcript_is_what_happens(workspace: Path) -> None:
    same_or_updated("transcript", f"```text\n{await transcript(workspace)}\n```\n")


def tool_row(tool: Tool) -> str:
    """Name, arguments (optional ones in brackets) and the first sentence of the description."""
    required = tool.input_schema.get("required", [])
    arguments = [name if name in required else f"[{name}]" for name in tool.input_schema.get("properties", {})]
    sentence = re.match(r".*?[.](?=\s|$)", tool.description or "", flags=re.DOTALL)
    assert sentence, f"{tool.name} has no description"
    return f"| `{tool.name}` | {', '.join(arguments)} | {' '.join(sentence[0].split())} |"


async def test_the_tool_table_is_made_from_the_tools(workspace: Path) -> None:
    async with Client(server(workspace)) as client:
        listed = await client.list_tools()
    rows = [tool_row(tool) for tool in listed.tools]
    same_or_updated("tools", "\n".join(["| tool | arguments | does |", "|---|---|---|", *rows, ""]))
