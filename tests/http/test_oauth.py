"""OAuth bearer tokens: only what the issuer signed for this server, for long enough, opens what its scopes say."""

import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from http_server import bearer, served
from mcp.shared.exceptions import MCPError
from mcp_host import User, only, says

from procedo.config.serving import OAuthSettings
from procedo.core.access import Access, Role
from procedo.core.principal import Principal, PrincipalKind, Source
from procedo.core.reach import Reach
from procedo.surfaces.http.oauth import Bearer, OAuth, keys_of

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("oauth")]
ISSUER, RESOURCE = "https://id.example/", "https://ops.example/mcp"
SETTINGS = OAuthSettings(ISSUER, RESOURCE, "https://id.example/keys")
KEY = rsa.generate_private_key(65537, 2048)
OTHER = rsa.generate_private_key(65537, 2048)
CURVE = ec.generate_private_key(ec.SECP256R1())


def jwks(**keys: Any) -> str:
    """A key set with these public keys by id."""
    found = []
    for kid, key in keys.items():
        algorithm = jwt.algorithms.RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else jwt.algorithms.ECAlgorithm
        found.append({**json.loads(algorithm.to_jwk(key.public_key())), "kid": kid, "use": "sig"})
    return json.dumps({"keys": found})


def signed(key: Any = KEY, kid: str = "one", algorithm: str = "RS256", **changes: Any) -> str:
    """A token of ida's, with changes; a claim that is None is left out."""
    claims = {
        "iss": ISSUER,
        "aud": RESOURCE,
        "sub": "ida",
        "client_id": "desk-app",
        "exp": int(time.time()) + 300,
        "scope": "openid procedo:operate procedo:approve",
        **changes,
    }
    kept = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(kept, key, algorithm=algorithm, headers={"kid": kid})


@dataclass
class Issuer:
    """An issuer whose keys can change and who counts how often they are asked for."""

    keys: str = field(default_factory=lambda: jwks(one=KEY, curve=CURVE))
    asked: int = 0
    now: float = 0.0
    down: bool = False

    async def source(self) -> str:
        self.asked += 1
        if self.down:
            raise OSError("no route")
        return self.keys

    def oauth(self) -> OAuth:
        return OAuth(SETTINGS, self.source, lambda: self.now)


def person(subject: str = "ida", kind: PrincipalKind = PrincipalKind.HUMAN, *groups: str) -> Principal:
    return Principal(Source.HTTP, subject, kind, frozenset(groups))


async def test_a_good_token_opens_what_its_scopes_say() -> None:
    found = await Issuer().oauth().verify(signed(groups=["sre", 7]))
    assert found is not None
    access = Access(person("ida", PrincipalKind.HUMAN, "sre"), frozenset({Role.OPERATE, Role.APPROVE}))
    scopes = ("openid", "procedo:operate", "procedo:approve")
    assert found == Bearer("desk-app", scopes, found.expires_at, access)


async def test_a_token_signed_on_a_curve_is_good_too() -> None:
    assert await Issuer().oauth().verify(signed(CURVE, "curve", "ES256")) is not None


SCOPES = "procedo:operate"
LIMITS: dict[str, tuple[dict[str, Any], tuple[Reach, ...]]] = {
    "none": ({"scope": SCOPES}, ()),
    "an empty claim": ({"procedo": {}}, ()),
    "a scope": ({"scope": f"{SCOPES} procedo:sop:refund*"}, (Reach(("refund*",), None),)),
    "scopes": (
        {"scope": f"{SCOPES} procedo:sop:a procedo:sop:b procedo:agent:reviewer"},
        (Reach(("a", "b"), ("reviewer",)),),
    ),
    "a claim": ({"procedo": {"sops": ["close account"], "agents": []}}, (Reach(("close account",), ()),)),
    "both": (
        {"scope": f"{SCOPES} procedo:sop:a*", "procedo": {"agents": ["x"]}},
        (Reach(("a*",), None), Reach(None, ("x",))),
    ),
}


@pytest.mark.requirement("reach")
@pytest.mark.parametrize(("claims", "expected"), LIMITS.values(), ids=LIMITS)
async def test_scopes_and_a_claim_limit_what_a_token_reaches(
    claims: dict[str, Any], expected: tuple[Reach, ...]
) -> None:
    found = await Issuer().oauth().verify(signed(**claims))
    assert found is not None
    assert (found.access.reach, Role.OPERATE in found.access.roles) == (expected, True)


@pytest.mark.requirement("reach")
@pytest.mark.parametrize("claim", [None, 7, "a", ["a"], {"sops": "a"}, {"sops": [7]}, {"sop": ["a"]}, {"agents": [""]}])
async def test_a_token_whose_limits_cannot_be_read_opens_nothing(claim: Any) -> None:
    payload = jwt.decode(signed(), options={"verify_signature": False})
    token = jwt.encode({**payload, "procedo": claim}, KEY, algorithm="RS256", headers={"kid": "one"})
    assert await Issuer().oauth().verify(token) is None


@pytest.mark.requirement("reach")
@pytest.mark.parametrize("scope", ["procedo:sops:refund*", "procedo:Sop:refund*", "procedo:agents:x", "procedo:tool:x"])
async def test_a_misspelt_limit_is_not_taken_for_none(scope: str) -> None:
    assert await Issuer().oauth().verify(signed(scope=f"{SCOPES} {scope}")) is None
    padded = await Issuer().oauth().verify(signed(scope=[*SCOPES.split(), " procedo:sop:refund*"]))
    other = await Issuer().oauth().verify(signed(scope=f"{SCOPES} elsewhere:sops:refund* procedo:later"))
    assert padded is not None
    assert other is not None
    assert (padded.access.reach, other.access.reach) == ((Reach(("refund*",), None),), ())


BAD: dict[str, Callable[[], str]] = {
    "another issuer": lambda: signed(iss="https://evil.example/"),
    "another audience": lambda: signed(aud="https://other.example/mcp"),
    "no audience": lambda: signed(aud=None),
    "no end": lambda: signed(exp=None),
    "ended": lambda: signed(exp=int(time.time()) - 60),
    "not yet": lambda: signed(nbf=int(time.time()) + 120),
    "nobody": lambda: signed(sub=None),
    "a blank subject": lambda: signed(sub=" "),
    "another key under the same id": lambda: signed(OTHER),
    "an unknown key": lambda: signed(OTHER, "two"),
    "no key named": lambda: signed(kid=""),
    "unsigned": lambda: jwt.encode({"iss": ISSUER, "aud": RESOURCE, "sub": "ida", "exp": 9e9}, "", algorithm="none"),
    "a shared secret": lambda: signed("s" * 64, "one", "HS256"),
    "no token": lambda: "x.y.z",
    "nothing": lambda: "",
}


@pytest.mark.parametrize("name", BAD)
async def test_anything_else_opens_nothing(name: str) -> None:
    oauth = Issuer().oauth()
    assert await oauth.verify(BAD[name]()) is None
    assert await oauth.verify(signed()) is not None


async def test_scopes_that_are_not_ours_open_nothing() -> None:
    found = await Issuer().oauth().verify(signed(scope="approve admin procedo:everything"))
    assert found is not None
    assert found.access.roles == frozenset()


async def test_a_shared_secret_in_the_key_set_signs_nothing() -> None:
    """A key that is published and can also sign would let everybody in."""
    shared = {"kty": "oct", "kid": "shared", "k": "c" * 43}
    issuer = Issuer(json.dumps({"keys": [*json.loads(jwks(one=KEY))["keys"], shared]}))
    secret = jwt.PyJWK.from_dict(shared, "HS256").key
    assert await issuer.oauth().verify(signed(secret, "shared", "HS256")) is None
    assert await issuer.oauth().verify(signed()) is not None


async def test_a_client_that_acts_for_itself_is_an_agent() -> None:
    for claims in (
        {"sub": "bot", "client_id": "bot"},
        {"sub": "bot", "client_id": None, "azp": "bot"},
        {"client_id": None},
    ):
        found = await Issuer().oauth().verify(signed(**claims))
        assert found is not None
        assert found.access.principal.kind is PrincipalKind.AGENT


async def test_keys_are_kept_and_asked_for_again_when_a_token_names_a_new_one() -> None:
    issuer = Issuer()
    oauth = issuer.oauth()
    for _ in range(3):
        assert await oauth.verify(signed()) is not None
    assert issuer.asked == 1
    issuer.keys = jwks(two=OTHER)
    issuer.now = 31
    assert await oauth.verify(signed(OTHER, "two")) is not None
    assert await oauth.verify(signed()) is None, "the key that was withdrawn is not taken any more"
    assert issuer.asked == 2


async def test_unknown_keys_do_not_make_us_ask_the_issuer_over_and_over() -> None:
    issuer = Issuer()
    oauth = issuer.oauth()
    for number in range(20):
        assert await oauth.verify(signed(OTHER, f"made-up-{number}")) is None
    assert issuer.asked == 1


async def test_when_the_keys_cannot_be_had_nobody_comes_in_by_old_ones() -> None:
    issuer = Issuer()
    oauth = issuer.oauth()
    assert await oauth.verify(signed()) is not None
    issuer.now, issuer.down = 3601, True
    with pytest.raises(OSError, match="cannot be read: no route"):
        await oauth.verify(signed())
    assert await oauth.verify(signed()) is None
    issuer.now, issuer.down = 3700, False
    assert await oauth.verify(signed()) is not None


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"keys": [1]}', '{"keys": [{"kty": "??"}]}', "no json"])
async def test_a_key_file_that_is_none_lets_nobody_in(tmp_path: Path, content: str) -> None:
    file = tmp_path / "keys.json"
    file.write_text(content)
    oauth = OAuth(SETTINGS, keys_of(OAuthSettings(ISSUER, RESOURCE, jwks_file=file)))
    with pytest.raises(OSError, match="cannot be read"):
        await oauth.verify(signed())


@pytest.fixture
async def keys_served(anyio_backend: str) -> AsyncIterator[str]:
    """The issuer's keys at a real address."""
    import asyncio

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = jwks(one=KEY).encode()
        head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/keys"
    server.close()
    await server.wait_closed()


async def test_keys_are_read_from_their_address(keys_served: str) -> None:
    oauth = OAuth(SETTINGS, keys_of(OAuthSettings(ISSUER, RESOURCE, jwks_url=keys_served)))
    assert await oauth.verify(signed()) is not None


CONFIG = f"""
[http]
public_url = "https://ops.example"

[http.oauth]
issuer = "{ISSUER}"
resource = "{RESOURCE}"
jwks_file = "keys.json"
required_scopes = ["openid"]
"""


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_an_oauth_user_starts_a_run_and_answers_at_its_gate(tmp_path: Path, era: str) -> None:
    (tmp_path / "keys.json").write_text(jwks(one=KEY))
    async with served(tmp_path, CONFIG, protected=False) as server:
        user = User([says("approve")])
        async with server.host(era, signed(), user) as host:
            gate = only(await host.call("sop_start", name="kiln-firing"))["gate_id"]
            assert only(await host.call("sop_approve", gate_id=gate))["execution_id"] == "1.1"
        async with server.host(era, signed(sub="noor")) as host:
            assert "no gate" in await host.refused("sop_approve", gate_id=gate)


async def test_refusals_have_the_shapes_that_clients_look_for(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text(jwks(one=KEY))
    async with served(tmp_path, CONFIG, protected=False) as server, server.web() as web:
        nobody = await web.post("/mcp", json={})
        stranger = await web.post("/mcp", json={}, headers=bearer(signed(aud="https://other.example/mcp")))
        narrow = await web.post("/mcp", json={}, headers=bearer(signed(scope="procedo:approve")))
        metadata = (await web.get("/.well-known/oauth-protected-resource/mcp")).json()
        own = await server.token("ida", "view")
        known = await web.post("/mcp", json={}, headers=bearer(own))
    assert [answer.status_code for answer in (nobody, stranger, narrow)] == [401, 401, 403]
    challenge = 'resource_metadata="https://ops.example/.well-known/oauth-protected-resource/mcp"'
    assert challenge in nobody.headers["www-authenticate"]
    assert narrow.json()["error"] == "insufficient_scope"
    assert (metadata["resource"], metadata["authorization_servers"]) == (RESOURCE, [ISSUER])
    assert known.status_code not in (401, 403), "our own tokens are taken beside"


async def test_a_user_without_a_role_reads_nothing(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text(jwks(one=KEY))
    async with served(tmp_path, CONFIG, protected=False) as server:
        async with server.host("auto", signed(scope="openid procedo:view")) as host:
            assert (await host.client.read_resource("sop://catalog")).contents
        async with server.host("auto", signed(scope="openid")) as host:
            for uri in ("sop://catalog", "sop://format", "sop://sops/plain"):
                with pytest.raises(MCPError, match="may not look"):
                    await host.client.read_resource(uri)
            listings = (host.client.list_resources, host.client.list_resource_templates, host.client.list_prompts)
            for listing in listings:
                with pytest.raises(MCPError, match="may not look"):
                    await listing()
