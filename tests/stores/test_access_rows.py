from datetime import UTC, datetime, timedelta

import pytest

from procedo.core.access import EVERYTHING, Login, Role, Token
from procedo.core.altered import altered
from procedo.core.principal import PrincipalKind
from procedo.ports import Store, Writer

pytestmark = pytest.mark.anyio
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
FIRST = Token(
    "tok-1", "phone", "a" * 64, "ida", PrincipalKind.HUMAN, EVERYTHING, frozenset({"sre", "ü"}), NOW, "human:cli:root"
)
SECOND = altered(
    FIRST, id="tok-2", digest="b" * 64, kind=PrincipalKind.AGENT, roles=frozenset({Role.VIEW}), groups=frozenset(),
    expires_at=NOW + timedelta(days=1),
)  # fmt: skip
LOGIN = Login("c" * 64, "ida", "tok-1", NOW, NOW + timedelta(hours=1))


async def test_tokens_come_back_as_they_were_put_in_the_order_of_making(store: Store) -> None:
    await store.write(lambda writer: writer.put_token(FIRST))
    await store.write(lambda writer: writer.put_token(SECOND))
    assert await store.read(lambda reader: reader.tokens()) == (FIRST, SECOND)
    assert await store.read(lambda reader: reader.token("b" * 64)) == SECOND
    assert await store.read(lambda reader: reader.token("d" * 64)) is None


async def test_of_a_known_token_only_the_end_changes_and_only_once(store: Store) -> None:
    await store.write(lambda writer: writer.put_token(FIRST))
    ended = altered(FIRST, revoked_at=NOW)
    await store.write(lambda writer: writer.put_token(altered(ended, subject="noor", roles=frozenset())))
    assert await store.read(lambda reader: reader.tokens()) == (ended,)
    await store.write(lambda writer: writer.put_token(altered(FIRST, revoked_at=NOW + timedelta(days=1))))
    await store.write(lambda writer: writer.put_token(FIRST))
    assert await store.read(lambda reader: reader.tokens()) == (ended,)


async def test_a_login_is_found_until_it_is_dropped(store: Store) -> None:
    await store.write(lambda writer: writer.put_login(LOGIN))
    assert await store.read(lambda reader: reader.login(LOGIN.digest)) == LOGIN
    await store.write(lambda writer: writer.drop_login(LOGIN.digest))
    assert await store.read(lambda reader: reader.login(LOGIN.digest)) is None


async def test_a_new_login_sweeps_out_those_that_expired_before_it(store: Store) -> None:
    later = altered(LOGIN, digest="d" * 64, created_at=NOW + timedelta(hours=2), expires_at=NOW + timedelta(hours=3))
    await store.write(lambda writer: writer.put_login(LOGIN))
    await store.write(lambda writer: writer.put_login(altered(LOGIN, digest="e" * 64, expires_at=later.expires_at)))
    await store.write(lambda writer: writer.put_login(later))
    found = await store.read(lambda reader: [reader.login(d * 64) is not None for d in "cde"])
    assert found == [False, True, True]


async def test_what_a_failed_transaction_put_is_not_there(store: Store) -> None:
    def work(writer: Writer) -> None:
        writer.put_token(FIRST)
        writer.put_login(LOGIN)
        raise LookupError

    with pytest.raises(LookupError):
        await store.write(work)
    assert await store.read(lambda reader: (reader.tokens(), reader.login(LOGIN.digest))) == ((), None)
