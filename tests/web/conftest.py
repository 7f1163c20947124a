from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from web_page import REVIEW, Office, office


@pytest.fixture
async def desk(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Office]:
    """An office where procedures have their usual policies."""
    async with office(tmp_path) as opened:
        yield opened


@pytest.fixture
async def reviewed(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Office]:
    """An office where two pharmacists decide about the kiln."""
    from mcp_host import ALL, KILN

    steps = KILN["SOP.md"].replace("requires_confirmation: true", "requires_confirmation: true\n   - policy: two")
    async with office(tmp_path, REVIEW, {**ALL, "kiln-firing": {**KILN, "SOP.md": steps}}) as opened:
        yield opened
