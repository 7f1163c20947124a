from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from procedo.ports import Store
from procedo.stores.memory import MemoryStore
from procedo.stores.sqlite import SqliteStore


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "data" / "procedo.db"


async def opened(kind: str, file: Path) -> Store:
    """Every store there is; another one joins all contract tests by a name here and in `STORES`."""
    if kind == "memory":
        return MemoryStore()
    return await SqliteStore.open(file, remembered=0 if kind == "sqlite, forgetful" else 64)


STORES = ["sqlite", "sqlite, forgetful", "memory"]


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, file: Path, anyio_backend: str) -> AsyncIterator[Store]:
    made = await opened(request.param, file)
    yield made
    await made.close()


@pytest.fixture
async def sqlite(file: Path, anyio_backend: str) -> AsyncIterator[SqliteStore]:
    made = await SqliteStore.open(file)
    yield made
    await made.close()
