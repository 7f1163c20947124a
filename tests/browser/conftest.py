"""The Chromium of the system, driven by playwright, with a fresh profile for each visit."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browsing import BOUND_MS, Screen
from http_server import served

if TYPE_CHECKING:
    from playwright.async_api import Browser

# Tests that need a browser say so where there is none; under PROCEDO_CI=1 that is a failure.
pytest.importorskip("playwright.async_api", reason="playwright is not installed: pip install 'procedo[browser]'")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """As everywhere, and as long as the browser lives."""
    return "asyncio"


@pytest.fixture(scope="module")
async def chromium(anyio_backend: str) -> AsyncIterator["Browser"]:
    """A browser; each visit has a profile of its own in it."""
    from playwright.async_api import async_playwright

    if CHROMIUM is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS, timeout=BOUND_MS)
        try:
            yield browser
        finally:
            await browser.close()


@pytest.fixture
async def screen(tmp_path: Path, chromium: "Browser") -> AsyncIterator[Screen]:
    """A server without tokens, and the browser."""
    place = tmp_path / "place"
    place.mkdir()
    async with served(place, protected=False) as server:
        yield Screen(chromium, server, tmp_path / "pictures")
