"""What hosts that render apps get beside the answers, and that nobody else gets it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client import advertise
from mcp.server.apps import APP_MIME_TYPE, EXTENSION_ID
from mcp.types import TextResourceContents
from mcp_host import ERAS, PLAIN, desk

from procedo.app import App
from procedo.surfaces.mcp.picture import PICTURE_KEY, PICTURE_URI
from procedo.surfaces.mcp.server import build_server

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("picture"), pytest.mark.parametrize("era", ERAS)]


def forked(reveal: str = "all") -> dict[str, str]:
    return {
        "SOP.toml": f'[sop]\nname = "forked"\ndescription = "d"\nexecution_mode = "auto"\nreveal = "{reveal}"\n',
        "SOP.md": "## Steps\n\n1. **First** — Do it.\n   - switch: hot>$.t > 5>3;cold>>2\n"
        "2. **Warm up**\n3. **Last**\n",
    }


@asynccontextmanager
async def client(app: App, era: str, *mime: str) -> AsyncIterator[Client]:
    extensions = [advertise(EXTENSION_ID, {"mimeTypes": list(mime)})] if mime else []
    async with Client(build_server(app), mode=era, extensions=extensions) as connected:
        yield connected


async def pictured(host: Client, tool: str, **arguments: Any) -> Any:
    result = await host.call_tool(tool, {**arguments, "wait_s": 0})
    assert not result.is_error
    return result.structured_content, (result.meta or {}).get(PICTURE_KEY)


async def test_a_host_that_renders_apps_gets_the_page_and_what_it_draws(tmp_path: Path, era: str) -> None:
    async with desk(tmp_path, era, {"forked": forked()}) as at, client(at.app, era, APP_MIME_TYPE) as host:
        tools = {tool.name: tool.meta for tool in (await host.list_tools()).tools}
        drawn = {name for name, meta in tools.items() if meta == {"ui": {"resourceUri": PICTURE_URI}}}
        assert drawn == {"sop_start", "sop_status", "sop_approve"}
        (page,) = (await host.read_resource(PICTURE_URI)).contents
        assert isinstance(page, TextResourceContents)
        assert page.mime_type == APP_MIME_TYPE
        assert "http://www.w3.org/2000/svg" in page.text
        assert page.text.count("://") == 1, "the page names no other address"
        view, picture = await pictured(host, "sop_start", name="forked")
        assert picture == {
            "steps": [
                {"number": 1, "title": "First", "kind": "execute", "mark": "active"},
                {"number": 2, "title": "Warm up", "kind": "execute"},
                {"number": 3, "title": "Last", "kind": "execute"},
            ],
            "ways": [
                {"source": 1, "target": 3, "label": "hot: $.t > 5"},
                {"source": 1, "target": 2, "label": "cold: else"},
                {"source": 2, "target": 3},
            ],
        }
        assert "steps" not in view
        assert (await pictured(host, "sop_status", run_id=view["run_id"]))[1] == picture
        assert (await pictured(host, "sop_status"))[1] is None


async def test_the_picture_shows_no_more_than_the_procedure_reveals(tmp_path: Path, era: str) -> None:
    for reveal, titles, ways in [("titles", ["First", "Warm up", "Last"], 3), ("current", ["First"], 0)]:
        folder = tmp_path / reveal
        folder.mkdir()
        async with desk(folder, era, {"forked": forked(reveal)}) as at, client(at.app, era, APP_MIME_TYPE) as host:
            _, picture = await pictured(host, "sop_start", name="forked")
            assert [step["title"] for step in picture["steps"]] == titles
            assert (len(picture["ways"]), [w for w in picture["ways"] if "label" in w]) == (ways, [])


async def test_nobody_else_gets_more_than_the_answer(tmp_path: Path, era: str) -> None:
    async with desk(tmp_path, era, {"plain": PLAIN}) as at:
        for mime in ((), ("text/html",)):
            async with client(at.app, era, *mime) as host:
                view, picture = await pictured(host, "sop_start", name="plain")
                assert (view["status"], picture) == ("running", None)
