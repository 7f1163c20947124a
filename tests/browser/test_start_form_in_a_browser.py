import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from browsing import BOUND_MS, Screen, Visit
from console_sops import CATALOGUE, CONFIG
from http_server import served

from procedo.ports import Filter

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("console-start-form", "console-catalogue")]
FORM = "/catalogue/order-tea/start"
PHONE: dict[str, Any] = {
    "viewport": {"width": 360, "height": 740},
    "device_scale_factor": 2,
    "is_mobile": True,
    "has_touch": True,
}


@pytest.fixture
async def screen(tmp_path: Path, chromium: "Browser") -> AsyncIterator[Screen]:
    """A server with a catalogue, and the browser."""
    place = tmp_path / "place"
    place.mkdir()
    async with served(place, CONFIG, CATALOGUE, protected=False) as server:
        yield Screen(chromium, server, tmp_path / "pictures")


async def started(screen: Screen) -> list[Any]:
    """The inputs of every run."""
    runs = await screen.server.app.runs.list(Filter())
    return [(await screen.server.app.runs.look(one.run_id)).run.inputs for one in runs]


async def tab_to(visit: Visit, name: str) -> None:
    """Press the tab key until the focus is on the field or button of this name."""
    script = """() => {
        const one = document.activeElement;
        const told = one.labels && one.labels.length ? one.labels[0].textContent : one.textContent;
        return told.trim().replace(/\\s+/g, " ");
    }"""
    seen = []
    for _ in range(60):
        await visit.page.keyboard.press("Tab")
        seen.append(str(await visit.page.evaluate(script)))
        if seen[-1].startswith(name):
            return
    raise AssertionError(f"{name!r} is not among {seen}")


@pytest.mark.parametrize("options", [{"java_script_enabled": False}, PHONE], ids=["without scripts", "phone"])
async def test_a_person_finds_a_procedure_fills_in_its_form_and_starts_it(
    screen: Screen, options: dict[str, Any]
) -> None:
    async with screen.visit(**options) as visit:
        page = visit.page
        await visit.log_in()
        await page.get_by_role("link", name="Catalogue").click()
        await page.get_by_role("searchbox", name="Search").fill("tea house")
        await page.get_by_role("button", name="Search").click()
        await page.get_by_text("1 of 6 procedures").wait_for()
        await page.get_by_role("link", name="order-tea", exact=True).click()
        await page.get_by_role("heading", name="The way through").wait_for()
        await page.get_by_role("link", name="Start", exact=True).click()
        await page.get_by_label("Your name").fill("Ida")
        await page.get_by_label("green").check()
        await page.get_by_label("shop").select_option("harbour")
        await page.get_by_label("by").fill("2026-12-24")
        await page.get_by_label("note").fill("no bags\nplease")
        await page.get_by_label("guests").fill("Noor\nUgo\n")
        await page.get_by_role("button", name="Add an entry to extras").click()
        await page.get_by_label("what").fill("cups")
        await page.get_by_role("button", name="Add an entry to extras").click()
        await page.get_by_role("group", name="extras, entry 2").get_by_label("what").fill("nothing")
        await page.get_by_role("button", name="Remove extras, entry 2").click()
        await page.get_by_role("group", name="extras, entry 2").wait_for(state="detached")
        await visit.whole()
        await visit.picture("form")
        await page.get_by_role("button", name="Start").click()
        await page.wait_for_url("**/runs/run-*")
        assert visit.problems == []
        assert visit.elsewhere == []
    assert await started(screen) == [
        {
            "name": "Ida",
            "sort": "green",
            "shop": "harbour",
            "grams": 250,
            "by": "2026-12-24",
            "note": "no bags\nplease",
            "guests": ["Noor", "Ugo"],
            "extras": [{"what": "cups", "count": 1}],
        }
    ]


async def test_the_form_is_used_by_keyboard_alone_and_enter_starts(screen: Screen) -> None:
    async with screen.visit() as visit:
        page = visit.page
        await visit.log_in()
        await page.goto(screen.server.origin + FORM)
        await tab_to(visit, "grams")
        await page.keyboard.press("Control+A")
        await page.keyboard.type("20")
        await page.keyboard.press("Enter")
        # One hears at once what is wrong.
        await page.locator("#summary[role=alert]:focus").wait_for()
        await visit.whole()
        await tab_to(visit, "Your name")
        await page.keyboard.press("Enter")
        # A problem leads to its field.
        await page.locator("[name='v/name']:focus").wait_for()
        await page.keyboard.type("Ida")
        await tab_to(visit, "green")
        await page.keyboard.press("Space")
        await tab_to(visit, "grams")
        await page.keyboard.press("Control+A")
        await page.keyboard.type("60")
        await tab_to(visit, "Add an entry")
        await page.keyboard.press("Enter")
        await page.get_by_role("group", name="extras, entry 1").wait_for()
        await visit.whole()
        await page.locator("fieldset.rows:focus").wait_for()
        await tab_to(visit, "what")
        await page.keyboard.type("cups")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/runs/run-*")
    expected = {"name": "Ida", "sort": "green", "shop": "market", "grams": 60, "extras": [{"what": "cups", "count": 1}]}
    assert await started(screen) == [expected]


async def test_a_date_that_is_half_typed_is_not_dropped(screen: Screen) -> None:
    async with screen.visit() as visit:
        page = visit.page
        await visit.log_in()
        await page.goto(screen.server.origin + FORM)
        await page.get_by_label("Your name").fill("Ida")
        await page.get_by_label("green").check()
        await page.get_by_label("by").press_sequentially("12")
        await page.get_by_role("button", name="Start").click()
        assert await page.get_by_label("by").evaluate("one => one.validity.badInput")
        assert page.url.endswith(FORM)
        assert await started(screen) == []
        await page.get_by_label("by").fill("2026-12-24")
        await page.get_by_role("button", name="Start").click()
        await page.wait_for_url("**/runs/run-*")
    assert [one["by"] for one in await started(screen)] == ["2026-12-24"]


async def test_pressing_start_twice_starts_one_run(screen: Screen) -> None:
    from playwright.async_api import expect

    async with screen.visit() as visit:
        page = visit.page
        await visit.log_in()
        await page.goto(screen.server.origin + FORM)
        await page.get_by_label("Your name").fill("Ida")
        await page.get_by_label("green").check()
        await page.get_by_role("button", name="Start").dblclick(no_wait_after=True)
        # The second press breaks off the page that the first one asked for: what counts is where they lead.
        await expect(page).to_have_url(re.compile("/runs/run-"), timeout=BOUND_MS)
    assert len(await started(screen)) == 1


async def test_what_a_value_cannot_show_is_shown_as_json_and_survives_the_browser(screen: Screen) -> None:
    from web_page import HOST

    inputs = {"name": "Ida", "sort": "green", "note": "a\r\nb\u202e", "guests": ["two\nlines"], "limit": 3}
    run = await screen.server.app.runs.start("order-tea", inputs, HOST)
    await screen.server.app.runs.cancel(run.run.id, "over", HOST)
    async with screen.visit() as visit:
        page = visit.page
        await visit.log_in()
        await page.goto(f"{screen.server.origin}{FORM}?from={run.run.id}")
        assert await page.get_by_role("textbox", name="note").input_value() == '"a\\r\\nb\\u202e"'
        await page.get_by_role("button", name="Start").click()
        await page.wait_for_url("**/runs/run-*")
    first, second = await started(screen)
    assert first == second == {**inputs, "shop": "market", "grams": 250}


async def test_foreign_markup_in_a_procedure_does_nothing_in_the_browser(screen: Screen) -> None:
    async with screen.visit() as visit:
        page = visit.page
        await visit.log_in()
        for path in ("/catalogue", "/catalogue/odd", "/catalogue/odd/start"):
            await page.goto(screen.server.origin + path)
            assert await page.locator("main img, main script, main i").count() == 0
        assert await page.get_by_label("<b>q</b>").input_value() == "<i>\"'</i>"
        assert visit.problems == []
