"""The Chromium of the system, driven by playwright, with a fresh profile for each test."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from browsing import Screen
from http_server import served

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


@pytest.fixture
async def screen(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Screen]:
    """A server without tokens, and a browser."""
    from playwright.async_api import async_playwright

    if CHROMIUM is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    place = tmp_path / "place"
    place.mkdir()
    async with served(place, protected=False) as server, async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        try:
            yield Screen(browser, server, tmp_path / "pictures")
        finally:
            await browser.close()
