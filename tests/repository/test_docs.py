"""What the pages of `docs/` show works: their files load, their commands are understood, their walks come true.

A block after a line such as "`procedo.toml`:" is that file of the page's workspace; any other TOML is a configuration.
"""

import re
import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from agent_workspace import assemble
from commands import Workspace
from repository import ROOT, commands, fenced, readme

from procedo.agents.registry import Registry
from procedo.app import open_app
from procedo.config import load
from procedo.surfaces.cli.parser import parse

pytestmark = pytest.mark.anyio

PAGES: Final = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md"))}
_FILE: Final = re.compile(r"^`([^`\n]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
FREE_TOML: Final = [
    pytest.param(block, id=f"{page}-{place}")
    for page, text in PAGES.items()
    for place, block in enumerate(fenced(_FILE.sub("", text), "toml"))
]
CONFIGURATIONS: Final = [text for name, text in _FILE.findall(PAGES["agents.md"]) if name == "procedo.toml"]


@dataclass(frozen=True)
class Page:
    """A page whose files lie in a workspace."""

    name: str
    workspace: Workspace

    def written(self) -> "Page":
        """Write the files; of several versions of one the first stays."""
        for name, text in reversed(_FILE.findall(PAGES[self.name])):
            path = self.workspace.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return self


@pytest.fixture
def agents(tmp_path: Path) -> Page:
    return Page("agents.md", Workspace(tmp_path)).written()


@pytest.fixture
def procedures(tmp_path: Path) -> Page:
    return Page("procedures.md", Workspace(tmp_path)).written()


def anchors(text: str) -> set[str]:
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


def test_every_page_is_reached_from_the_readme_and_every_link_leads_somewhere() -> None:
    assert {"agents.md", "approvals.md", "procedures.md", "serving.md"} <= set(PAGES)
    linked = set(_LINK.findall(readme()))
    assert [page for page in PAGES if f"docs/{page}" not in linked] == []
    for page, text in PAGES.items():
        for target in _LINK.findall(text):
            file, _, anchor = target.partition("#")
            assert target.startswith("https://") or file in PAGES, (page, target)
            assert not anchor or anchor in anchors(PAGES[file]), (page, target)


def test_every_block_says_what_language_it_is_in() -> None:
    for page, text in PAGES.items():
        opening = re.findall(r"^```(.*)$", text, re.MULTILINE)[::2]
        assert opening == [language for language in opening if language], page


@pytest.mark.parametrize("text", FREE_TOML)
def test_each_configuration_loads(tmp_path: Path, text: str) -> None:
    (tmp_path / "procedo.toml").write_text(text, encoding="utf-8")
    assert load(tmp_path).root == tmp_path


@pytest.mark.parametrize("page", PAGES)
def test_each_command_is_understood(page: str) -> None:
    shell = [command for command in commands(PAGES[page]) if command.startswith("procedo ")]
    inline = re.findall(r"`(procedo [^`]+)`", PAGES[page])
    assert shell + inline, page
    for command in shell + inline:
        parse(shlex.split(command)[1:])


@pytest.mark.parametrize("page", [page for page in PAGES if _FILE.search(PAGES[page])])
async def test_each_procedure_is_in_the_library_without_a_problem(tmp_path: Path, page: str) -> None:
    Page(page, Workspace(tmp_path)).written()
    named = {Path(name).parent.name for name, _ in _FILE.findall(PAGES[page]) if name.endswith("SOP.toml")}
    async with open_app(tmp_path, worker=False) as app:
        found = {entry.name: entry.problems for entry in app.library.entries()}
    assert named
    assert found == dict.fromkeys(named, ())


@pytest.mark.parametrize("text", CONFIGURATIONS)
async def test_the_agent_of_each_configuration_is_assembled_with_the_same_tools(agents: Page, text: str) -> None:
    root = agents.workspace.root
    (root / "procedo.toml").write_text(text, encoding="utf-8")
    contract = await assemble(Registry(load(root), {}), "reviewer")
    assert [tool.offered for tool in contract.tools] == ["file_list", "file_read", "file_write"]
    assert [(found.path, found.writable) for found in contract.security.roots] == [(root / "drafts", True)]


def test_there_is_a_configuration_with_a_script_and_one_with_a_model() -> None:
    kinds = [list(tomllib.loads(text)["providers"]["models"]) for text in CONFIGURATIONS]
    assert kinds == [["scripted"], ["openai_compatible"]]


def test_the_reviewer_asks_before_it_writes_and_hands_on_its_verdict(agents: Page) -> None:
    workspace = agents.workspace
    started = workspace.json("start", "notice")
    (asked,) = workspace.json("inbox")["gates"]
    assert "May reviewer call file_write in step 1?" in asked["asks"]
    assert not (workspace.root / "drafts" / "remarks.md").exists()
    answered = workspace.person("approve", asked["code"])
    assert answered.code == 0, answered.text
    assert (workspace.root / "drafts" / "remarks.md").read_text() == "Which Tuesday? Give the date."
    (then,) = workspace.json("inbox")["gates"]
    assert then["code"] != asked["code"]
    shown = workspace.run("show", started["run_id"]).out
    assert '"verdict": "change"' in shown
    assert "Publish" in shown


def test_the_rehearsal_walks_every_branch(procedures: Page) -> None:
    done = procedures.workspace.run("test", "newsletter", "--coverage", "100")
    assert (done.code, done.err) == (0, ""), done.out
