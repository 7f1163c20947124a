"""What the documents show works. Every fenced block is carried out, in the order in which a reader meets them."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from agent_workspace import assemble
from documents import DOCUMENTS, Block, anchors, links, parts, text_of
from likeness import Likeness
from reader import Reader
from repository import ROOT

from procedo.agents.registry import Registry
from procedo.config import load
from procedo.surfaces.cli.parser import VERBS, parse

pytestmark = pytest.mark.requirement("documents")

PAGES = [page for page in DOCUMENTS if not page.startswith("docs/reference/")]
"""The reference is made from the code and has tests of its own."""


@pytest.mark.parametrize("page", PAGES)
def test_a_reader_who_follows_the_page_sees_what_it_shows(tmp_path: Path, page: str) -> None:
    Reader(page, tmp_path).follow()


@pytest.mark.parametrize("page", DOCUMENTS)
def test_every_link_leads_somewhere(page: str) -> None:
    for target in links(page):
        if target.startswith(("https://", "http://")):
            continue
        file, _, anchor = target.partition("#")
        path = (ROOT / page).parent / file if file else ROOT / page
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), target


def test_every_page_is_reached_from_the_readme() -> None:
    reached, new = set[str](), {"README.md"}
    while new:
        reached |= new
        targets = {((ROOT / page).parent / link.partition("#")[0]).resolve() for page in new for link in links(page)}
        new = {page for page in DOCUMENTS if (ROOT / page) in targets} - reached
    assert sorted(set(DOCUMENTS) - reached) == []


@pytest.mark.parametrize("page", DOCUMENTS)
def test_every_command_in_a_sentence_is_understood(page: str) -> None:
    prose = re.sub(r"^```.*?^```$", "", text_of(page), flags=re.MULTILINE | re.DOTALL)
    for command in re.findall(r"`(procedo [a-z][^`]*)`", prose):
        words = shlex.split(command, comments=True)[1:]
        if len(words) == 1 or re.search(r"\b[A-Z]{2,}\b|\[|…|/", command):
            # A verb that is only spoken of, or one with a placeholder.
            assert words[0] in {verb.name for verb in VERBS}
        else:
            parse(words)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_says_what_it_is_for_in_its_first_sentence(page: str) -> None:
    heading, first = text_of(page).removeprefix("<!--").split("\n\n")[:2]
    assert heading.startswith("# ") or page == "README.md"
    assert re.match(r"\w", first), first


def test_what_the_guarantees_are_shown_by_is_a_promise_with_a_test() -> None:
    manifest = tomllib.loads((ROOT / "tests" / "requirements.toml").read_text(encoding="utf-8"))
    promises = {name for table in manifest.values() for name in table}
    rows = [line.split("|") for line in text_of("docs/guarantees.md").splitlines() if line.startswith("| ")]
    heads = [[cell.strip() for cell in row].index("shown by") for row in rows if "shown by" in "|".join(row)]
    assert len(heads) >= 7
    shown: set[str] = set()
    place = 0
    for row in rows:
        cells = [cell.strip() for cell in row]
        place = cells.index("shown by") if "shown by" in cells else place
        shown |= set(re.findall(r"`([\w-]+)`", cells[place])) if place else set()
    assert {"C4", "adversary", "no-broader-scope"} <= shown
    assert sorted(shown - promises) == []


@pytest.mark.anyio
async def test_the_agent_has_the_same_tools_with_a_script_and_with_a_model(tmp_path: Path) -> None:
    (tmp_path / "drafts").mkdir()
    (tmp_path / "reviewer.toml").write_text('[[turns]]\ntext = "fine"\n', encoding="utf-8")
    kinds = []
    for page in ("docs/tutorial.md", "docs/agents.md"):
        (text,) = [part.text for part in parts(page) if isinstance(part, Block) and part.file == "procedo.toml"]
        (tmp_path / "procedo.toml").write_text(text, encoding="utf-8")
        kinds += tomllib.loads(text)["providers"]["models"]
        contract = await assemble(Registry(load(tmp_path), {}), "reviewer")
        assert [tool.offered for tool in contract.tools] == ["file_list", "file_read", "file_write"]
        assert [(found.path, found.writable) for found in contract.security.roots] == [(tmp_path / "drafts", True)]
    assert kinds == ["scripted", "openai_compatible"]


def test_blocks_that_are_not_run_are_few_and_say_why() -> None:
    silent = [part for page in PAGES for part in parts(page) if isinstance(part, Block) and "not run" in part.note]
    assert all(len(block.note.split()) >= 6 for block in silent)
    assert len(silent) <= 12


@pytest.mark.parametrize(
    ("shown", "came"),
    [
        ("run run-4f waits", "run run-x9z8 waits"),
        ("gate K7QF2M and K7QF2M", "gate T3H8WD and T3H8WD"),
        ("a\n…\nd", "a\nb\nc\nd"),
        ("file …/x", "file /tmp/x"),
        ("opened 1 s ago", "opened 12 min ago"),
        ("a   b", "a b"),
    ],
)
def test_an_output_that_differs_in_names_and_times_alone_is_the_one_that_is_shown(shown: str, came: str) -> None:
    Likeness().compare(shown, came)


@pytest.mark.parametrize(
    ("shown", "came"),
    [
        ("waits", "waits for approval"),
        ("a", "a\nb"),
        ("gate K7QF2M and K7QF2M", "gate T3H8WD and ABC234"),
        ("a\n…\nd", "a\nb\nc"),
        ("run run-4f", "run 4f"),
    ],
)
def test_an_output_that_says_something_else_is_not(shown: str, came: str) -> None:
    with pytest.raises(AssertionError):
        Likeness().compare(shown, came)


def test_names_of_a_page_stand_for_the_same_to_its_end() -> None:
    like = Likeness()
    like.compare("gate K7QF2M of run-4f", "gate T3H8WD of run-x9z8")
    assert like.real("procedo approve K7QF2M --run run-4f") == "procedo approve T3H8WD --run run-x9z8"
    with pytest.raises(AssertionError):
        like.compare("gate K7QF2M", "gate ABC234")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("```sh\nprocedo chekc\n```\n", "no verb"),
        ("```yaml\na: b\n```\n", "nobody knows what to do"),
        ("```text\nhello\n```\n", "nobody knows what to do"),
        ("```toml\n[sopp]\n```\n", "unknown key"),
        ("```sh\nprocedo check\n```\n\n```text\nall is well\n```\n", "all is well"),
        ("`sops/a/SOP.md`:\n\n```markdown\n## Steps\n\n1. **A**\n   - Tools: x\n```\n", "missing-header"),
        ("```python\n1 / 0\n```\n", "division by zero"),
        ("<!-- dance -->\n\nText.\n", "nobody knows how"),
    ],
)
def test_a_page_that_shows_something_else_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, why: str
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\nFor a test.\n\n{text}", encoding="utf-8")
    root = tmp_path / "root"
    root.mkdir()
    with pytest.raises(Exception, match=why):
        Reader(str(page), root).follow()
