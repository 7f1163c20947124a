"""A server reads its procedures when they change, and not for each call."""

import os
from pathlib import Path

import pytest
from service import Shop

pytestmark = pytest.mark.anyio


def age(root: Path) -> None:
    """Written long ago: what changes from now on gets another time."""
    for path in root.rglob("*"):
        os.utime(path, (0, 0))


async def test_what_did_not_change_is_not_read_again(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.sop("tea", "1. **Boil** — Boil water.")
    age(tmp_path)
    async with shop.opened() as app:
        first = app.library.entries()
        assert app.library.entries() is first
        shop.sop("cake", "1. **Bake** — Bake it.")
        assert [entry.name for entry in app.library.entries()] == ["cake", "tea"]
