"""The catalogue and the page of a procedure over HTTP."""

from pathlib import Path
from typing import Any

import pytest
from console_sops import CATALOGUE, CONFIG
from repository import ROOT
from web_page import HOST, Office, office

from procedo.core.access import Role
from procedo.core.principal import Principal, PrincipalKind, Source
from procedo.core.reach import Reach

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("console-catalogue")]
NAMES = ["bake-bread", "kiln-firing", "letter", "odd", "order-tea", "plain"]


@pytest.fixture
async def shop(tmp_path: Path, anyio_backend: str) -> Any:
    async with office(tmp_path, CONFIG, CATALOGUE) as opened:
        yield opened


def listed(page: Any) -> list[str]:
    found = [link.removeprefix("/catalogue/") for link in page.links if link.startswith("/catalogue/")]
    return [name for name in found if "/" not in name]


async def test_every_procedure_is_listed_and_a_broken_one_with_its_problem(shop: Office) -> None:
    await shop.app.runs.start("plain", None, HOST)
    async with shop.operator() as ida:
        page = await ida.get("/catalogue")
    assert (page.status, listed(page)) == (200, NAMES)
    assert "6 procedures, 1 broken" in page.text
    assert "bake-bread broken next: there is no step 7 bread/SOP.md:4 2 problems" in page.text
    assert "Order tea for the house, with somebody who signs for it. 3 steps auto priority high" in page.text
    assert "kitchen buying" in page.text
    assert "/runs?sop=plain" in page.links
    assert "/runs?sop=letter" not in page.links
    assert "/catalogue/bake-bread/start" not in page.links


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("q=TEA", ["order-tea"]),
        ("q=house+signs", ["order-tea"]),
        ("q=kitchen", ["order-tea"]),
        ("q=Second", ["plain"]),
        ("q=unknown-step", ["bake-bread"]),
        ("q=nothing-like-it", []),
        ("state=broken", ["bake-bread"]),
        ("state=startable", NAMES[1:]),
        ("state=live", ["letter"]),
        ("state=strange", NAMES),
        ("priority=high", ["order-tea"]),
        ("priority=normal&q=letter", ["letter"]),
    ],
)
async def test_the_list_is_searched_and_filtered_by_its_address(shop: Office, query: str, names: list[str]) -> None:
    await shop.app.runs.start("letter", None, HOST)
    async with shop.operator() as ida:
        page = await ida.get(f"/catalogue?{query}")
    assert listed(page) == names
    assert ("Nothing fits." in page.text) == (not names)


async def test_the_page_of_a_procedure_tells_steps_agents_gates_and_inputs(shop: Office) -> None:
    run = await shop.app.runs.start("order-tea", {"name": "Ugo", "sort": "black"}, HOST)
    async with shop.operator() as ida:
        page = await ida.get("/catalogue/order-tea")
    digest = shop.app.library.get("order-tea").sop.digest  # type: ignore[union-attr]  # it is startable
    for told in (
        "version 0.1.0",
        "by host",
        "Find {{inputs.sort}} tea for {{inputs.name}}.",
        "gate a checkpoint: 2 different persons of group 'signers' (not the run's executor)",
        "grams integer, optional",
        'One of "green", "black".',
        "one live run for each value of inputs.name",
        "at most 2 runs at work at once",
        "kitchen buying",
        digest,
    ):
        assert told in page.text
    assert "<svg" in page.html
    assert {"#step-2", "/catalogue/order-tea/start", f"/runs/{run.run.id}"} <= set(page.links)


async def test_a_broken_procedure_shows_its_problems_in_their_lines(shop: Office) -> None:
    async with shop.operator() as ida:
        page = await ida.get("/catalogue/bake-bread")
    assert page.status == 200
    assert "error unknown-step bread/SOP.md:4 next: there is no step 7" in page.text
    assert "4 (the line meant) - next: 7" in page.text
    assert "error unknown-key bread/SOP.toml:5 unknown key 'prioritty' in [sop] did you mean priority?" in page.text
    assert '5 (the line meant) prioritty = "high"' in page.text
    assert "/catalogue/bake-bread/start" not in page.links


async def test_a_procedure_that_breaks_while_people_look_stays_in_the_catalogue(shop: Office) -> None:
    async with shop.operator() as ida:
        steps = shop.app.library.find("letter").folder / "SOP.md"
        steps.write_bytes(b"\xff\xfe nothing readable")
        assert listed(await ida.get("/catalogue")) == NAMES
        page = await ida.get("/catalogue/letter")
        assert (page.status, "unreadable-file letter/SOP.md" in page.text) == (200, True)
        assert (await ida.get("/catalogue/letter/start")).status == 409


async def test_foreign_markup_in_a_procedure_stays_text(shop: Office) -> None:
    async with shop.operator() as ida:
        pages = [await ida.get(path) for path in ("/catalogue", "/catalogue/odd")]
    for page in pages:
        assert "<script>alert" not in page.html
        assert "<img" not in page.html
        assert "\u202e" not in page.html
    assert "<script>alert('description')</script>⟨U+202E⟩" in pages[0].text
    assert "Do it. <script>alert('body')</script>" in pages[1].text


async def test_an_unknown_procedure_is_told_with_near_names(shop: Office) -> None:
    async with shop.operator() as ida:
        page = await ida.get("/catalogue/order-te")
    assert (page.status, page.title.startswith("No such procedure")) == (404, True)
    assert "Did you mean order-tea?" in page.text


async def test_an_empty_folder_says_how_a_procedure_comes_into_it(tmp_path: Path) -> None:
    async with office(tmp_path, "", {}) as desk, desk.operator() as ida:
        page = await ida.get("/catalogue")
    assert "No procedure yet." in page.text
    assert "procedo new" in page.text


async def test_without_a_login_nothing_of_the_catalogue_is_shown(shop: Office) -> None:
    async with shop.somebody() as nobody:
        for path in ("/catalogue", "/catalogue/order-tea"):
            page = await nobody.get(path)
            assert (page.path, "tea" in page.text) == ("/inbox/login", False)


async def test_procedures_beyond_the_limits_of_a_token_do_not_exist_on_the_pages(shop: Office) -> None:
    await shop.app.runs.start("plain", None, HOST)
    limited = await shop.app.tokens.create(
        "limited",
        Principal(Source.CLI, "root", PrincipalKind.HUMAN),
        subject="noor",
        kind=PrincipalKind.HUMAN,
        roles=[Role.OPERATE],
        reach=Reach(sops=("order-*", "letter")),
    )
    async with shop.somebody(limited.secret) as noor:
        page = await noor.get("/catalogue")
        assert listed(page) == ["letter", "order-tea"]
        assert "plain" not in page.text
        for path in ("/catalogue/plain", "/catalogue/plain/start", "/catalogue/bake-bread"):
            page = await noor.get(path)
            assert (page.status, "plain," in page.text, "bread," in page.text) == (404, False, False)
        assert (await noor.get("/catalogue/letter")).status == 200
        assert (await noor.get("/catalogue/letter/start")).status == 200


async def test_every_procedure_that_comes_with_the_project_has_its_page_and_its_form(tmp_path: Path) -> None:
    sops = {
        folder.name: {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir() if file.is_file()}
        for folder in (ROOT / "sops").iterdir()
    }
    async with office(tmp_path, "", sops) as desk, desk.operator() as ida:
        names = listed(await ida.get("/catalogue"))
        assert len(names) == len(sops)
        for name in names:
            page = await ida.get(f"/catalogue/{name}")
            assert (page.status, "<svg" in page.html, "JSON Schema" in page.text) == (200, True, True)
            form = await ida.get(f"/catalogue/{name}/start")
            declared = set(desk.app.library.get(name).sop.inputs.schema.source["properties"])  # type: ignore[union-attr]
            assert form.status == 200
            assert {f"v/{one}" for one in declared} >= {
                one for one in form.form(f"/catalogue/{name}/start") if one[1] == "/"
            }
