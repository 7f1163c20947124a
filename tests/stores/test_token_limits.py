"""What a token reaches is kept with it; tokens from before there were limits have none."""

import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from procedo.core.access import Role, Token
from procedo.core.altered import altered
from procedo.core.principal import PrincipalKind
from procedo.core.reach import UNLIMITED, Reach
from procedo.ports import Store
from procedo.stores.connection import APPLICATION_ID, migrations
from procedo.stores.sqlite import SqliteStore

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("reach")]
NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
TOKEN = Token("tok-1", "desk", "d" * 64, "ida", PrincipalKind.HUMAN, frozenset({Role.VIEW}), frozenset(), NOW, "root")


@pytest.mark.parametrize(
    "reach", [UNLIMITED, Reach(("a*", "b"), None), Reach(None, ()), Reach((), ("reviewer", "w?"))], ids=str
)
async def test_limits_are_kept_as_they_were_given(store: Store, reach: Reach) -> None:
    limited = altered(TOKEN, reach=reach)
    await store.write(lambda writer: writer.put_token(limited))
    assert await store.read(lambda reader: reader.token(TOKEN.digest)) == limited
    ended = altered(limited, revoked_at=NOW)
    await store.write(lambda writer: writer.put_token(ended))
    assert await store.read(lambda reader: reader.tokens()) == (ended,)


async def test_a_token_from_before_there_were_limits_has_none(tmp_path: Path) -> None:
    file = tmp_path / "old.db"
    connection = sqlite3.connect(file, isolation_level=None)
    for number, script in migrations()[:4]:
        connection.executescript(script)
        connection.execute(f"PRAGMA user_version = {number}")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    row = ("tok-1", "desk", "d" * 64, "ida", "human", '["view"]', "[]", "2026-11-29T12:00:00.000000Z", "root")
    connection.execute(
        "INSERT INTO tokens (id, name, digest, subject, kind, roles, groups, created_at, created_by)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row,
    )  # fmt: skip
    connection.close()
    store = await SqliteStore.open(file)
    assert await store.read(lambda reader: reader.token(TOKEN.digest)) == TOKEN
    await store.close()
