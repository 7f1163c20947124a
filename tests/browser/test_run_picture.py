"""The picture of a run in a page that plays the host, with what a real server answered."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from browsing import Screen, Visit
from mcp import Client
from mcp.client import advertise
from mcp.client.streamable_http import streamable_http_client
from mcp.server.apps import APP_MIME_TYPE, EXTENSION_ID
from mcp.types import TextResourceContents
from web_page import HOST

from procedo.surfaces.mcp.picture import PICTURE_URI

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("picture")]

# A host as the extension describes it: the page stands in a frame without rights, and everything goes by message.
HARNESS = """<!doctype html><meta charset="utf-8"><title>host</title>
<body style="margin:0;background:BACKGROUND">
<iframe sandbox="allow-scripts" style="border:0;width:100%;height:900px"></iframe>
<script>
const frame = document.querySelector("iframe"), page = PAGE, results = RESULTS, seen = window.seen = [];
window.addEventListener("message", ({ source, data }) => {
  if (source !== frame.contentWindow) return;
  seen.push(data.method || "answer");
  const say = (message) => frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, "*");
  if (data.method === "ui/initialize") {
    say({ id: data.id, result: { protocolVersion: data.params.protocolVersion, hostInfo: { name: "h", version: "1" },
      hostCapabilities: CAPABILITIES, hostContext: { theme: "THEME" } } });
  } else if (data.method === "ui/notifications/initialized") {
    say({ method: "ui/notifications/tool-input", params: { arguments: {} } });
    say({ method: "ui/notifications/tool-result", params: results[0] });
  } else if (data.method === "tools/call") {
    window.called = data.params;
    say({ id: data.id, result: results[1] });
  }
});
frame.srcdoc = page;
</script>"""


@asynccontextmanager
async def rendering_host(screen: Screen) -> AsyncIterator[Client]:
    extensions = [advertise(EXTENSION_ID, {"mimeTypes": [APP_MIME_TYPE]})]
    transport = streamable_http_client(f"{screen.server.origin}/mcp")
    async with Client(transport, mode="auto", extensions=extensions) as client:
        yield client


async def answered(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, {**arguments, "wait_s": 0})
    return json.loads(result.model_dump_json(by_alias=True, exclude_none=True))


async def shown(visit: Visit, client: Client, theme: str, *results: Any, calls: bool = True) -> Any:
    (page,) = (await client.read_resource(PICTURE_URI)).contents
    assert isinstance(page, TextResourceContents)
    html = HARNESS
    for name, value in {
        "PAGE": json.dumps(page.text).replace("</", "<\\/"),
        "RESULTS": json.dumps(results).replace("</", "<\\/"),
        "CAPABILITIES": json.dumps({"serverTools": {}} if calls else {}),
        "BACKGROUND": "#14181f" if theme == "dark" else "#ffffff",
        "THEME": theme,
    }.items():
        html = html.replace(name, value)
    await visit.page.set_content(html)
    return visit.page.frame_locator("iframe")


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_the_run_is_drawn_and_drawn_again_when_it_has_moved(screen: Screen, theme: str) -> None:
    runs = screen.server.app.runs
    async with rendering_host(screen) as client, screen.visit(viewport={"width": 620, "height": 960}) as visit:
        started = await answered(client, "sop_start", name="letter")
        run_id = started["structuredContent"]["run_id"]
        draft = {"subject": "The pool", "body": "Closed on <b>Monday</b>.", "token": "abc"}
        await client.call_tool(
            "sop_advance", {"run_id": run_id, "execution_id": "1.1", "status": "completed", "output": draft}
        )
        parked = await answered(client, "sop_status", run_id=run_id)
        frame = await shown(visit, client, theme, started, parked)
        await frame.get_by_text("the assistant acts next").wait_for()
        assert await frame.locator("svg g.active text").first.text_content() == "1. Draft"
        assert await frame.locator("svg g.ahead").count() == 2
        await visit.picture(f"run-{theme}-started")
        await frame.get_by_role("button", name="Look again").click()
        await frame.get_by_text("a person has to act").wait_for()
        assert await visit.page.evaluate("window.called") == {
            "name": "sop_status",
            "arguments": {"run_id": run_id, "wait_s": 0},
        }
        assert await frame.locator("svg g.waiting text").first.text_content() == "2. Judge"
        assert await frame.locator("svg g.done text").first.text_content() == "1. Draft"
        gate = frame.locator("section.gate")
        assert "Closed on <b>Monday</b>." in (await gate.inner_text())
        assert "[masked]" in (await gate.inner_text())
        assert await gate.locator("b").count() == 0, "content is text, never markup"
        await visit.picture(f"run-{theme}-gate")
        body = frame.locator("body")
        paper = await body.evaluate("(b) => getComputedStyle(b).backgroundColor")
        assert paper == ("rgb(20, 24, 31)" if theme == "dark" else "rgb(255, 255, 255)")
        assert (await runs.look(run_id)).run.open_gates
        assert visit.elsewhere == []
        assert visit.problems == []


async def test_an_ended_run_shows_its_output_and_asks_for_nothing_more(screen: Screen) -> None:
    async with rendering_host(screen) as client, screen.visit(viewport={"width": 380, "height": 900}) as visit:
        run_id = (await answered(client, "sop_start", name="plain"))["structuredContent"]["run_id"]
        for number in (1, 2, 3):
            await screen.server.app.runs.advance(run_id, f"{number}.1", "completed", {"n": number}, HOST)
        ended = await answered(client, "sop_status", run_id=run_id)
        frame = await shown(visit, client, "light", ended)
        await frame.get_by_text("nobody has to act").wait_for()
        assert '"n": 3' in await frame.locator("section.output pre").inner_text()
        assert await frame.locator("svg g.done").count() == 3
        assert await frame.get_by_role("button").count() == 0
        assert await frame.locator("body").evaluate("(b) => b.scrollWidth <= innerWidth")
        await visit.picture("run-ended")


async def test_an_answer_without_structure_is_shown_as_its_text(screen: Screen) -> None:
    async with rendering_host(screen) as client, screen.visit() as visit:
        frame = await shown(visit, client, "light", await answered(client, "sop_start", name="nothing"), calls=False)
        await frame.get_by_text("unknown_sop").wait_for()
        assert await visit.page.evaluate("window.seen") == ["ui/initialize", "ui/notifications/initialized"]
