import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta

import pytest
from mcp_host import FixedClock

from procedo.access.tokens import Tokens
from procedo.core.access import Access, Role, Token
from procedo.core.altered import altered
from procedo.core.principal import Principal, PrincipalKind, Source
from procedo.errors import BadArgument, NotFound, Refused
from procedo.stores.memory import MemoryStore

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("token-digest")]
OPERATOR = Principal(Source.CLI, "root", PrincipalKind.HUMAN)


@dataclass
class Bench:
    store: MemoryStore
    clock: FixedClock
    tokens: Tokens

    async def make(self, name: str = "ida-phone", **changes: object) -> tuple[Token, str]:
        wanted: dict[str, object] = {
            "subject": "ida",
            "kind": PrincipalKind.HUMAN,
            "roles": {Role.APPROVE},
            "groups": {"sre"},
            "lifetime_s": 3600.0,
        }
        issued = await self.tokens.create(name, OPERATOR, **{**wanted, **changes})  # type: ignore[arg-type]  # named below
        return issued.token, issued.secret


@pytest.fixture
async def bench(anyio_backend: str) -> AsyncIterator[Bench]:
    store, clock = MemoryStore(), FixedClock()
    yield Bench(store, clock, Tokens(store, clock.now))
    await store.close()


async def test_a_token_lets_its_subject_in_with_its_roles_and_groups(bench: Bench) -> None:
    _, secret = await bench.make()
    expected = Access(Principal(Source.WEB, "ida", PrincipalKind.HUMAN, frozenset({"sre"})), frozenset({Role.APPROVE}))
    assert await bench.tokens.redeem(secret, Source.WEB) == expected


async def test_the_store_holds_the_digest_and_nothing_of_the_secret(bench: Bench) -> None:
    token, secret = await bench.make()
    assert await bench.tokens.list() == (token,)
    assert token.digest == hashlib.sha256(secret.encode()).hexdigest()
    assert secret.removeprefix("procedo_") not in repr(token)
    assert len(secret.removeprefix("procedo_")) >= 43, "256 bits in base 64"


async def test_two_tokens_never_share_a_secret(bench: Bench) -> None:
    secrets = {(await bench.make(f"t{number}"))[1] for number in range(20)}
    assert len(secrets) == 20


async def test_another_secret_opens_nothing(bench: Bench) -> None:
    _, secret = await bench.make()
    for wrong in ("", "procedo_", secret[:-1], secret + "x", secret.upper()):
        with pytest.raises(Refused, match="No live token"):
            await bench.tokens.redeem(wrong, Source.HTTP)


async def test_a_token_opens_nothing_from_the_moment_it_expires(bench: Bench) -> None:
    token, secret = await bench.make()
    bench.clock.time += timedelta(seconds=3599)
    assert await bench.tokens.find(secret) == token
    bench.clock.time += timedelta(seconds=1)
    assert await bench.tokens.find(secret) is None
    assert token.state(bench.clock.now()) == "expired"


async def test_a_revoked_token_opens_nothing_and_stays_in_the_list(bench: Bench) -> None:
    token, secret = await bench.make()
    ended = await bench.tokens.revoke("IDA-phone")
    assert ended == altered(token, revoked_at=bench.clock.now())
    assert await bench.tokens.find(secret) is None
    bench.clock.time += timedelta(days=1)
    assert await bench.tokens.revoke(token.id) == ended, "the first moment stays"
    assert await bench.tokens.list() == (ended,)


async def test_a_name_is_free_again_when_its_token_has_ended(bench: Bench) -> None:
    first, _ = await bench.make()
    with pytest.raises(BadArgument, match=f"live token 'ida-phone' already \\({first.id}\\)"):
        await bench.make("IDA-Phone")
    await bench.tokens.revoke("ida-phone")
    second, secret = await bench.make()
    await bench.tokens.revoke(first.id)
    assert await bench.tokens.find(secret) == second
    assert (await bench.tokens.revoke("ida-phone")).id == second.id, "a name means the live one"


async def test_ending_a_token_that_does_not_exist_is_not_found(bench: Bench) -> None:
    with pytest.raises(NotFound):
        await bench.tokens.revoke("nobody")


WRONG: dict[str, dict[str, object]] = {
    "no role": {"roles": set[Role]()},
    "the system": {"kind": PrincipalKind.SYSTEM},
    "no time": {"lifetime_s": 0.0},
    "no subject": {"subject": "  "},
    "a subject of two lines": {"subject": "ida\nnoor"},
    "a group without a name": {"groups": {""}},
}


@pytest.mark.parametrize("changes", WRONG.values(), ids=WRONG)
async def test_a_token_that_means_nothing_is_not_made(bench: Bench, changes: dict[str, object]) -> None:
    with pytest.raises(BadArgument):
        await bench.make("x", **changes)
    assert await bench.tokens.list() == ()


async def test_a_server_with_ended_tokens_still_counts_as_one_with_tokens(bench: Bench) -> None:
    assert not await bench.tokens.any()
    await bench.make()
    await bench.tokens.revoke("ida-phone")
    assert await bench.tokens.any()
