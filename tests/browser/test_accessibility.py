"""Every page of the console under axe, in light, in dark and on a phone."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from axe import axe, violations
from browsing import Screen, Visit
from console_sops import CATALOGUE, CONFIG
from http_server import served
from web_page import HOST

from procedo.core.principal import Principal, PrincipalKind, Source
from procedo.core.state import Verdict
from procedo.runs import Surface

if TYPE_CHECKING:
    from playwright.async_api import Browser, ViewportSize

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("console-accessible")]
IDA = Surface(Principal(Source.WEB, "ida", PrincipalKind.HUMAN), host=False)
NOOR = Surface(Principal(Source.WEB, "noor", PrincipalKind.HUMAN), host=False)
LIST = {
    "SOP.toml": '[sop]\nname = "guests"\ndescription = "Invite guests"\nexecution_mode = "auto"\nmax_concurrent = 4\n',
    "SOP.md": "## Steps\n\n1. **List** — List them.\n2. **Judge** — Look.\n   - kind: checkpoint\n   - edit: names\n",
}
FORM = "/catalogue/order-tea/start"


@pytest.fixture
async def screen(tmp_path: Path, chromium: "Browser") -> AsyncIterator[Screen]:
    """A server with procedures of every kind, and the browser."""
    place = tmp_path / "place"
    place.mkdir()
    async with served(place, CONFIG, {**CATALOGUE, "guests": LIST}, protected=False) as server:
        yield Screen(chromium, server, tmp_path / "pictures")


async def furnished(screen: Screen) -> list[str]:
    """Runs in every state; the addresses of all pages that show them."""
    runs = screen.server.app.runs
    kiln = await runs.start("kiln-firing", {"temp": 980, "ware": "twelve bowls"}, HOST)
    letter = await runs.start("letter", None, HOST)
    draft = {"subject": "The pool", "body": "Dear guests,\n\nthe pool is closed.", "recipients": ["all"]}
    letter = await runs.advance(letter.run.id, "1.1", "completed", draft, HOST)
    guests = await runs.start("guests", None, HOST)
    guests = await runs.advance(guests.run.id, "1.1", "completed", {"names": ["Ugo", "Noor"]}, HOST)
    revised = await runs.start("guests", None, HOST)
    revised = await runs.advance(revised.run.id, "1.1", "completed", {"names": ["Ugo"], "why": "old\ntext"}, HOST)
    await runs.decide(f"{revised.run.id}.g1", Verdict.REVISE, IDA, comment="more of them")
    await runs.advance(revised.run.id, "1.2", "completed", {"names": ["Ugo", "Ida"], "why": "new\ntext"}, HOST)
    approved = await runs.start("guests", None, HOST)
    await runs.advance(approved.run.id, "1.1", "completed", {"names": ["Ugo"]}, HOST)
    await runs.decide(f"{approved.run.id}.g1", Verdict.AMEND, IDA, value=["Noor"], comment="better")
    denied = await runs.start("guests", None, HOST)
    await runs.advance(denied.run.id, "1.1", "completed", {"names": ["Ugo"]}, HOST)
    await runs.decide(f"{denied.run.id}.g1", Verdict.DENY, IDA, comment="nobody comes")
    tea = await runs.start("order-tea", {"name": "Ugo", "sort": "black"}, HOST)
    await runs.advance(tea.run.id, "1.1", "completed", {"found": "some"}, HOST)
    await runs.decide(f"{tea.run.id}.g1", Verdict.APPROVE, NOOR)
    plain = await runs.start("plain", {"a": [1, {"b": None}]}, HOST)
    await runs.advance(plain.run.id, "1.1", "completed", "done", HOST)
    failed = await runs.start("plain", None, HOST)
    await runs.advance(failed.run.id, "1.1", "failed", {"reason": "no clay"}, HOST)
    held = await runs.start("plain", None, HOST)
    await runs.hold(held.run.id, "lunch", IDA)
    found = [kiln, letter, guests, revised, approved, denied, tea, plain, failed, held]
    gates = [f"/inbox/gates/{run.run.id}.g1" for run in (kiln, letter, guests, approved, denied, tea)]
    return [
        *("/inbox", "/inbox?show=all", *gates, f"/inbox/gates/{revised.run.id}.g1", "/inbox/gates/none"),
        *("/runs", "/runs?sop=plain", "/runs?sop=nothing", "/runs/none"),
        *(f"/runs/{run.run.id}" for run in found),
        *(f"/runs/{plain.run.id}/{verb}" for verb in ("cancel", "pause", "resume", "outputs/1.1", "inputs")),
        *(f"/runs/{held.run.id}/resume", f"/runs/{failed.run.id}/retry", f"/runs/{failed.run.id}/cancel"),
        *("/catalogue", "/catalogue?q=nothing", "/catalogue?state=broken", "/catalogue/none"),
        *(f"/catalogue/{name}" for name in ("order-tea", "bake-bread", "odd", "letter", "kiln-firing")),
        *(FORM, "/catalogue/plain/start", f"{FORM}?from={tea.run.id}", "/catalogue/bake-bread/start"),
    ]


PHONE: "ViewportSize" = {"width": 360, "height": 740}
WIDE: "ViewportSize" = {"width": 1280, "height": 720}


async def broken(visit: Visit, source: str) -> list[str]:
    """What is wrong with the page as it stands: by every rule in light, by those that differ in dark and on a phone."""
    page = visit.page
    await visit.whole()
    await page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    found = await violations(page, source)
    await page.emulate_media(color_scheme="dark")
    found += [f"dark: {one}" for one in await violations(page, source, only=("color-contrast", "link-in-text-block"))]
    await page.emulate_media(color_scheme="light")
    await page.set_viewport_size(PHONE)
    found += [f"phone: {one}" for one in await violations(page, source, without=("color-contrast",))]
    if await page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        found.append("phone: it is wider than the window")
    await page.set_viewport_size(WIDE)
    return found


async def test_no_page_of_the_console_breaks_a_rule(screen: Screen) -> None:
    source, addresses = axe(), await furnished(screen)
    found: dict[str, list[str]] = {}

    async def check(name: str) -> None:
        found[name] = await broken(visit, source)

    async with screen.visit(viewport=WIDE) as visit:
        page, origin = visit.page, screen.server.origin
        await page.goto(f"{origin}/inbox/login")
        await check("login")
        await page.get_by_label("Code or token").fill("wrong")
        await page.keyboard.press("Enter")
        await page.get_by_role("alert").wait_for()
        await check("login refused")
        await visit.log_in()
        for address in addresses:
            await page.goto(origin + address)
            assert await page.locator("main h1").count() == 1, f"{address} is a page of the console"
            await check(address)
        await page.goto(origin + FORM)
        await page.get_by_role("button", name="Add an entry").click()
        row = page.get_by_role("group", name="extras, entry 1")
        await row.wait_for()
        await check("form with a row")
        await page.get_by_role("button", name="Start").click()
        await page.get_by_role("alert").wait_for()
        await check("form with problems")
        await page.get_by_label("Your name").fill("Ugo")
        await page.get_by_label("green").check()
        await page.get_by_role("button", name="Remove").click()
        await row.wait_for(state="detached")
        await page.get_by_role("button", name="Start").click()
        await page.get_by_text("is live with the same key").wait_for()
        await check("form refused")
    assert {name: told for name, told in found.items() if told} == {}


@pytest.mark.parametrize(("role", "address"), [("view", FORM), ("view", "/catalogue/order-tea"), ("view", "/inbox")])
async def test_pages_for_those_who_may_less_break_no_rule_either(screen: Screen, role: str, address: str) -> None:
    source, secret = axe(), await screen.server.token("noor", role)
    await screen.server.app.runs.start("kiln-firing", None, HOST)
    async with screen.visit() as visit:
        page = visit.page
        await page.goto(f"{screen.server.origin}/inbox/login")
        await page.get_by_label("Code or token").fill(secret)
        await page.keyboard.press("Enter")
        await page.get_by_role("button", name="Log out").wait_for()
        await visit.whole()
        await page.goto(screen.server.origin + address)
        assert await violations(page, source) == []


async def test_a_page_that_breaks_rules_is_found(screen: Screen) -> None:
    async with screen.visit() as visit:
        await visit.page.set_content("<html><body><img src=x><input><p style='color:#ccc;background:#fff'>pale</p>")
        found = {one.partition(":")[0] for one in await violations(visit.page, axe())}
    assert {"image-alt", "label", "color-contrast", "document-title", "html-has-lang"} <= found
