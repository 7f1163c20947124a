"""A real browser at our server: pages that remember what went wrong on them, and pictures for people."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from http_server import Served

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

__all__ = ["BOUND_MS", "Screen", "Visit"]

BOUND_MS = 240_000


@dataclass
class Visit:
    """A page in the browser. `problems` are console errors, `elsewhere` requests that left our server."""

    page: "Page"
    server: Served
    folder: Path
    problems: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    async def log_in(self) -> None:
        """Type the code that the terminal shows."""
        await self.page.goto(f"{self.server.origin}/inbox")
        await self.page.get_by_label("Code or token").fill(self.server.codes[-1])
        await self.page.keyboard.press("Enter")
        await self.page.get_by_role("heading", name="Waiting for a decision").wait_for()
        await self.whole()

    async def whole(self) -> None:
        """Until the page is there to its end: what stands above may be seen before."""
        await self.page.wait_for_load_state()

    async def picture(self, name: str) -> None:
        """Keep a picture of the whole page, for people: in PROCEDO_PICTURES, else in the test's folder."""
        folder = Path(os.environ.get("PROCEDO_PICTURES") or self.folder)
        await self.page.screenshot(path=folder / f"{name}.png", full_page=True)


@dataclass
class Screen:
    """A server, and a browser that opens pages on it."""

    browser: "Browser"
    server: Served
    folder: Path

    @asynccontextmanager
    async def visit(self, **options: Any) -> AsyncIterator[Visit]:
        """A page of its own; `options` as for playwright's `new_context`."""
        context = await self.browser.new_context(**options)
        context.set_default_timeout(BOUND_MS)
        page = await context.new_page()
        visit = Visit(page, self.server, self.folder)
        page.on("console", lambda m: visit.problems.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: visit.problems.append(str(error)))
        page.on("request", lambda r: None if r.url.startswith(self.server.origin) else visit.elsewhere.append(r.url))
        try:
            yield visit
        finally:
            await context.close()
