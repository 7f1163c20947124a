"""Runs in the console, as people use them: filtered, watched, decided and moved."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from browsing import Screen, Visit
from http_server import served
from mcp_host import ALL
from web_page import HOST

from procedo.core.state import Status
from procedo.runs import Snapshot

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("console-runs-browser")]
PHONE: dict[str, Any] = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}
WIDE = {
    "SOP.toml": '[sop]\nname = "wide"\ndescription = "Many ways"\nexecution_mode = "auto"\n',
    "SOP.md": "## Steps\n\n1. **Split** — Split.\n   - next: 2, 3, 4, 5\n"
    + "".join(f"{n}. **A branch with a long title** — Go.\n   - next: 6\n" for n in (2, 3, 4, 5))
    + "6. **Join** — Join.\n   - depends_on: 2, 3, 4, 5\n",
}


TITLES = (
    "Q" * 90,
    "W" * 90,
    "m" * 90,
    "RELEASE THE PACKAGES TO PRODUCTION",
    "illicit little fillings " * 4,
    "釉薬を塗る" * 9,
)
LOUD = {
    "SOP.toml": '[sop]\nname = "loud"\ndescription = "Titles of all widths"\nexecution_mode = "auto"\n',
    "SOP.md": "## Steps\n\n" + "".join(f"{n}. **{title}** — Go.\n" for n, title in enumerate(TITLES, 1)),
}


@pytest.fixture
async def screen(tmp_path: Path, chromium: "Browser") -> AsyncIterator[Screen]:
    """A server without tokens, and the browser."""
    place = tmp_path / "place"
    place.mkdir()
    async with served(place, "", {**ALL, "wide": WIDE, "loud": LOUD}, protected=False) as server:
        yield Screen(chromium, server, tmp_path / "pictures")


async def plain(screen: Screen, *reports: Any) -> Snapshot:
    runs = screen.server.app.runs
    run = await runs.start("plain", {"kiln": "east"}, HOST)
    for number, output in enumerate(reports, 1):
        run = await runs.advance(run.run.id, f"{number}.1", "completed", output, HOST)
    return run


async def status(screen: Screen, run: Snapshot) -> Status:
    return (await screen.server.app.runs.look(run.run.id)).run.status


async def elsewhere(screen: Screen, *words: str) -> Any:
    """Another process of procedo on the same workspace."""
    root = screen.server.app.settings.root
    command = (sys.executable, "-m", "procedo", *words, "--workspace", str(root), "--json")
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stdin=asyncio.subprocess.DEVNULL
    )
    out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()
    return json.loads(out)


async def open_run(visit: Visit, run: Snapshot) -> None:
    await visit.page.goto(f"{visit.server.origin}/runs/{run.run.id}")


def clean(visit: Visit) -> None:
    """Nothing was blocked, nothing failed, and nothing was fetched from anywhere else."""
    assert visit.problems == []
    assert visit.elsewhere == []


async def test_a_run_is_found_by_filters_and_opened(screen: Screen) -> None:
    kiln = await screen.server.app.runs.start("kiln-firing", None, HOST)
    await plain(screen, 1, 2, 3)
    run = await plain(screen, 1)
    async with screen.visit() as visit:
        page = visit.page
        await visit.log_in()
        await page.get_by_role("navigation", name="Main").get_by_role("link", name="Runs").click()
        await page.get_by_role("heading", name="Runs", exact=True).wait_for()
        await visit.whole()
        entries = page.locator(".run-item")
        assert await entries.count() == 3
        await page.get_by_label("Procedure").select_option("plain")
        await page.get_by_role("button", name="Filter").click()
        await page.get_by_role("link", name="Clear").wait_for()
        await visit.whole()
        assert await entries.count() == 2
        await page.get_by_label("By status").get_by_role("link", name="running").click()
        await page.wait_for_url("**/runs?sop=plain&status=running")
        assert await entries.count() == 1
        await page.get_by_role("link", name="plain", exact=True).click()
        await page.get_by_role("heading", name="plain running").wait_for()
        assert page.url.endswith(run.run.id)
        await page.goto(f"{screen.server.origin}/runs")
        await page.get_by_role("searchbox").fill(kiln.run.id)
        await page.keyboard.press("Enter")
        await page.get_by_role("heading", name="kiln-firing waiting approval").wait_for()
        clean(visit)


async def test_an_open_page_follows_another_process_and_keeps_its_readers_place(screen: Screen) -> None:
    run = await plain(screen, {"text": "\n".join(f"line {n}" for n in range(200))})
    async with screen.visit(viewport={"width": 700, "height": 500}) as visit:
        page = visit.page
        await visit.log_in()
        await open_run(visit, run)
        summary = page.locator("details[id='output-1.1'] > summary")
        await summary.focus()
        await page.keyboard.press("Enter")
        inner = page.locator("details[id='output-1.1'] .text")
        await inner.wait_for()
        place = await summary.evaluate("e => e.getBoundingClientRect().top")
        assert await page.evaluate("scrollY") > 0, "it is a long page"
        await elsewhere(screen, "pause", run.run.id, "--reason", "lunch")
        await page.get_by_text("The run is paused by", exact=False).first.wait_for()
        assert (await page.title()).startswith("plain: paused")
        assert await page.get_by_role("status").text_content() == "The run is paused. The host's assistant acts next"
        assert await inner.is_visible(), "what was open stays open"
        assert await page.evaluate("document.activeElement.closest('details').id") == "output-1.1", "the focus stays"
        assert abs(await summary.evaluate("e => e.getBoundingClientRect().top") - place) < 4, "nothing jumps"
        await elsewhere(screen, "cancel", run.run.id, "--reason", "no clay")
        await page.get_by_text("How it ended").wait_for()
        clean(visit)


async def test_an_open_list_follows_another_process(screen: Screen) -> None:
    async with screen.visit() as visit:
        page = visit.page
        await visit.log_in()
        await page.goto(f"{screen.server.origin}/runs?status=live")
        await page.get_by_text("No run fits.").wait_for()
        started = await elsewhere(screen, "start", "kiln-firing", "--wait", "0")
        await page.get_by_role("link", name="kiln-firing", exact=True).wait_for()
        assert await page.get_by_text(started["run_id"]).count() == 1
        await elsewhere(screen, "cancel", started["run_id"])
        await page.get_by_text("No run fits.").wait_for()
        clean(visit)


SEEN = """seen => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => !seen });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
"""Headless tabs all count as seen: this says to a page whether it is."""


async def test_tabs_in_the_background_keep_no_connection_from_the_others_and_catch_up_when_they_are_seen(
    screen: Screen,
) -> None:
    run = await plain(screen)
    async with screen.visit() as visit:
        await visit.log_in()
        await open_run(visit, run)
        tabs = [visit.page]
        for _ in range(8):
            await tabs[-1].evaluate(SEEN, False)
            tabs.append(await visit.page.context.new_page())
            await tabs[-1].goto(f"{screen.server.origin}/runs/{run.run.id}")
        await elsewhere(screen, "pause", run.run.id)
        await tabs[-1].get_by_role("heading", name="plain paused").wait_for()
        assert await visit.page.get_by_role("heading", name="plain running").count() == 1
        await visit.page.evaluate(SEEN, True)
        await visit.page.get_by_role("heading", name="plain paused").wait_for()
        clean(visit)


async def test_an_open_page_whose_session_is_over_leads_to_the_login(screen: Screen) -> None:
    run = await plain(screen)
    async with screen.visit() as visit:
        await visit.log_in()
        await open_run(visit, run)
        await visit.page.evaluate(SEEN, False)
        await visit.page.context.clear_cookies()
        await visit.page.evaluate(SEEN, True)
        await visit.page.get_by_role("heading", name="Log in").wait_for()
        assert visit.page.url == f"{screen.server.origin}/inbox/login?next=/runs/{run.run.id}"


@pytest.mark.parametrize("scripts", [True, False])
async def test_a_gate_is_decided_from_the_page_of_its_run(screen: Screen, scripts: bool) -> None:
    run = await screen.server.app.runs.start("kiln-firing", None, HOST)
    async with screen.visit(java_script_enabled=scripts) as visit:
        page = visit.page
        await visit.log_in()
        await open_run(visit, run)
        await page.get_by_role("link", name="Look and decide").click()
        await page.get_by_label("Comment").fill("the ware is dry")
        await page.get_by_role("button", name="Approve", exact=True).click()
        await page.get_by_role("heading", name="Approved").wait_for()
        await open_run(visit, run)
        await page.get_by_text("Decided by you. “the ware is dry”").wait_for()
        await page.get_by_text("Step 1, Load kiln, is with host.").wait_for()
        clean(visit)


async def test_without_scripts_a_run_is_paused_resumed_cancelled_and_retried(screen: Screen) -> None:
    run = await plain(screen, 1)
    async with screen.visit(java_script_enabled=False) as visit:
        page = visit.page
        await visit.log_in()
        await open_run(visit, run)
        await page.get_by_role("link", name="Pause").click()
        await page.get_by_role("button", name="Pause").click()
        await page.get_by_role("link", name="Resume").click()
        await page.get_by_role("button", name="Resume").click()
        await page.get_by_role("heading", name="plain running").wait_for()
        await page.get_by_role("link", name="Cancel run").click()
        await page.get_by_label("Why").fill("no clay")
        await page.get_by_role("button", name="Cancel run").click()
        await page.get_by_text("no clay").first.wait_for()
        clean(visit)
        assert await status(screen, run) is Status.CANCELLED
        bad = await plain(screen, 1)
        await screen.server.app.runs.advance(bad.run.id, "2.1", "failed", "no water", HOST)
        await open_run(visit, bad)
        await page.get_by_role("link", name="Retry step 2").click()
        await page.get_by_role("button", name="Retry step 2").click()
        await page.get_by_text("takes up").wait_for()
        await visit.whole()
        assert bad.run.id in await page.content()
        clean(visit)


async def reach(visit: Visit, name: str) -> None:
    """Go on with the tabulator until that has the focus, and see that one sees it."""
    for _ in range(60):
        await visit.page.keyboard.press("Tab")
        said = await visit.page.evaluate("(document.activeElement.labels?.[0] ?? document.activeElement).textContent")
        if str(said).strip().startswith(name):
            style = await visit.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert style == "solid", f"one sees that {name} has the focus"
            return
    raise AssertionError(f"{name} is not reached by keyboard")


async def test_a_run_is_moved_by_keyboard_alone(screen: Screen) -> None:
    run = await plain(screen, 1)
    async with screen.visit() as visit:
        page, press = visit.page, visit.page.keyboard
        await visit.log_in()
        await open_run(visit, run)
        for verb, heading in (("Pause", "plain paused"), ("Resume", "plain running")):
            await reach(visit, verb)
            await press.press("Enter")
            await page.get_by_role("heading", name=f"{verb} this run?").wait_for()
            await reach(visit, verb)
            await press.press("Enter")
            await page.get_by_role("heading", name=heading).wait_for()
        await screen.server.app.runs.advance(run.run.id, "2.1", "failed", "no water", HOST)
        await page.get_by_role("heading", name="plain failed").wait_for()
        await reach(visit, "Retry step 2")
        await press.press("Enter")
        await page.get_by_role("heading", name="Retry step 2, Second?").wait_for()
        await reach(visit, "Retry step 2")
        await press.press("Enter")
        await page.get_by_text("takes up").wait_for()
        await reach(visit, "Cancel run")
        await press.press("Enter")
        await page.get_by_role("heading", name="Cancel this run?").wait_for()
        await reach(visit, "Why")
        await press.type("no clay")
        await reach(visit, "Cancel run")
        await press.press("Enter")
        await page.get_by_role("heading", name="plain cancelled").wait_for()
        clean(visit)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_every_page_fits_a_phone_and_follows_the_scheme(screen: Screen, scheme: str) -> None:
    wide = await screen.server.app.runs.start("wide", {"text": "x" * 5_000}, HOST)
    wide = await screen.server.app.runs.advance(wide.run.id, "1.1", "completed", {"a" * 80: "b" * 4_000}, HOST)
    here = f"/runs/{wide.run.id}"
    ends = ("", "?record=all", "/cancel", "/inputs", "/outputs/1.1", "/nothing")
    async with screen.visit(color_scheme=scheme, **PHONE) as visit:
        page = visit.page
        await visit.log_in()
        for number, path in enumerate(("/runs", "/runs?sop=plain&page=2", *(here + end for end in ends))):
            await page.goto(screen.server.origin + path)
            await visit.picture(f"runs-{scheme}-{number}")
            assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["viewport"]["width"], path
        await page.goto(screen.server.origin + here)
        light = await page.evaluate(
            "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).every(v => v > 128)"
        )
        drawn = (
            "getComputedStyle(document.querySelector('.drawing .ahead .box')).fill.match(/\\d+/g).every(v => v > 128)"
        )
        assert (light, await page.evaluate(drawn)) == ((scheme == "light"),) * 2
        assert await page.evaluate("(p => p.scrollWidth > p.clientWidth)(document.getElementById('picture'))"), (
            "a wide drawing scrolls in its own frame"
        )
        for control in await page.locator(".controls a").all():
            box = await control.bounding_box()
            assert box is not None
            assert box["height"] >= 44, "a thumb hits it"


async def test_a_title_stays_in_its_box_however_wide_its_letters_are(screen: Screen) -> None:
    run = await screen.server.app.runs.start("loud", None, HOST)
    for number in range(1, len(TITLES) + 1):
        run = await screen.server.app.runs.advance(run.run.id, f"{number}.1", "completed", 1, HOST)
    async with screen.visit() as visit:
        await visit.log_in()
        await open_run(visit, run)
        room = await visit.page.evaluate(
            """() => [...document.querySelectorAll("#picture g.step")].map((step) =>
              step.querySelector(".sign").getBBox().x - Math.max(...[...step.querySelectorAll("text:not(.sign)")]
                .map((text) => text.getBBox().x + text.getBBox().width)))"""
        )
    assert len(room) == len(TITLES)
    assert min(room) > 0, room


async def test_a_step_of_the_drawing_leads_to_what_was_done_in_it(screen: Screen) -> None:
    run = await plain(screen, 1)
    async with screen.visit() as visit:
        page = visit.page
        await visit.log_in()
        await open_run(visit, run)
        await page.get_by_role("link", name="Step 1, First, host: done").click()
        await page.wait_for_url("**#step-1")
        assert await page.get_by_role("link", name="Step 3").count() == 0, "nothing was done in it yet"
        clean(visit)
