"""OAuth bearer tokens: signed JWTs of one issuer, for this server, checked against the issuer's public keys."""

import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import jwt
from msgspec import Struct

from procedo.config.serving import OAuthSettings
from procedo.core.access import Access, roles
from procedo.core.principal import Principal, PrincipalKind, Source
from procedo.core.reach import BOUNDLESS, UNLIMITED, Reach, Reaches, pattern, without
from procedo.errors import BadArgument

__all__ = ["Bearer", "JwksSource", "OAuth", "keys_of"]

_LOG: Final = logging.getLogger(__name__)
_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Public-key signatures alone: with a shared secret, whoever can check a token could also make one."""
_LEEWAY_S: Final = 30
_FRESH_S: Final = 3600.0
_AGAIN_S: Final = 30.0
"""The shortest time between two looks for a key that is not known."""
_LARGEST_JWKS: Final = 1_048_576
_FETCH_S: Final = 5.0
_PREFIX: Final = "procedo:"
_LIMITS: Final = {"sops": "procedo:sop:", "agents": "procedo:agent:"}
_LIMIT_PREFIXES: Final = tuple(_LIMITS.values())
_CLAIM: Final = "procedo"

JwksSource = Callable[[], Awaitable[str]]


class Bearer(Struct, frozen=True):
    """A token that was verified: who holds it, through which client, until when (epoch seconds), and what it opens."""

    client: str
    scopes: tuple[str, ...]
    expires_at: int
    access: Access


def _bearer(claims: Mapping[str, Any]) -> Bearer:
    """What the claims say. A client that acts for itself, and not for a user, is an agent.

    Raises `BadArgument` for limits that cannot be read: whoever set them wanted some.
    """
    subject, scopes, groups = str(claims["sub"]), _scopes(claims), claims.get("groups")
    client = str(claims.get("client_id") or claims.get("azp") or subject)
    named = frozenset(g for g in groups if isinstance(g, str)) if isinstance(groups, list) else frozenset[str]()
    kind = PrincipalKind.AGENT if client == subject else PrincipalKind.HUMAN
    words = (scope.removeprefix(_PREFIX) for scope in scopes if scope.startswith(_PREFIX))
    access = Access(Principal(Source.HTTP, subject, kind, named), roles(words), _reach(claims, scopes))
    return Bearer(client, scopes, int(claims["exp"]), access)


def _scopes(claims: Mapping[str, Any]) -> tuple[str, ...]:
    given = claims.get("scope", claims.get("scp", ""))
    words = given.split() if isinstance(given, str) else given if isinstance(given, list) else []
    return tuple(word.strip() for word in words if isinstance(word, str))


def _reach(claims: Mapping[str, Any], scopes: tuple[str, ...]) -> Reaches:
    """The limits that scopes name, and those of the claim `procedo`; where both are given, both hold."""
    for scope in scopes:
        # A word with something behind it is meant as a limit; a misspelt one would be none at all.
        if scope.startswith(_PREFIX) and ":" in scope.removeprefix(_PREFIX) and not scope.startswith(_LIMIT_PREFIXES):
            raise BadArgument(
                "bad_reach", f"The scope {scope!r} is no limit.", f"They are {', '.join(_LIMIT_PREFIXES)}…."
            )
    sops, agents = (_after(prefix, scopes) for prefix in _LIMITS.values())
    found = [Reach(sops, agents), _claimed(claims.get(_CLAIM, {}))]
    return without(tuple(one for one in found if one != UNLIMITED), BOUNDLESS)


def _after(prefix: str, scopes: tuple[str, ...]) -> tuple[str, ...] | None:
    named = tuple(pattern("procedure or agent", one.removeprefix(prefix)) for one in scopes if one.startswith(prefix))
    return named or None


def _claimed(claim: Any) -> Reach:
    known = isinstance(claim, dict) and set(claim) <= set(_LIMITS)
    if not known or not all(isinstance(one, list) and all(isinstance(n, str) for n in one) for one in claim.values()):
        message = f"The claim {_CLAIM!r} is no object with lists of names in sops and agents."
        raise BadArgument("bad_reach", message, "Leave it out where there are no limits.")
    given = {what: tuple(pattern(what.rstrip("s"), name) for name in names) for what, names in claim.items()}
    return Reach(**given)


def keys_of(settings: OAuthSettings) -> JwksSource:
    """Where the issuer's keys are read from."""
    file, url = settings.jwks_file, settings.jwks_url

    async def from_file() -> str:
        return _read(file) if file is not None else ""

    async def from_url() -> str:
        return await _fetch(url or "")

    return from_url if file is None else from_file


def _read(file: Path) -> str:
    with file.open("rb") as stream:
        return stream.read(_LARGEST_JWKS).decode()


async def _fetch(url: str) -> str:
    import httpx2

    content = bytearray()
    async with (
        httpx2.AsyncClient(trust_env=False, timeout=_FETCH_S, follow_redirects=False) as client,
        client.stream("GET", url) as answer,
    ):
        answer.raise_for_status()
        async for part in answer.aiter_bytes():
            content += part
            if len(content) > _LARGEST_JWKS:
                raise ValueError(f"{url} answers with more than {_LARGEST_JWKS} bytes")
    return content.decode()


def _key_set(text: str) -> dict[str, Any]:
    """The document of a key set. Raises `ValueError` for anything else."""
    document = json.loads(text)
    keys = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(keys, list) or not all(isinstance(key, dict) for key in keys):
        raise ValueError("it is no JSON Web Key Set")
    return {"keys": keys}


class OAuth:
    """Verifies bearer tokens. Keys are kept for an hour, and looked for again when a token names an unknown one."""

    def __init__(
        self, settings: OAuthSettings, source: JwksSource, elapsed: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._source = source
        self._elapsed = elapsed
        self._keys: dict[str, jwt.PyJWK] = {}
        self._read_at: float | None = None
        self._tried_at: float | None = None

    @property
    def issuer(self) -> str:
        """Whose tokens these are."""
        return self._settings.issuer

    async def verify(self, token: str) -> Bearer | None:
        """The holder of a token, or None when it is not good here. Raises `OSError` when no keys can be had."""
        try:
            head = jwt.get_unverified_header(token)
            if head.get("alg") not in _ALGORITHMS:
                return None
            key = await self._key(str(head.get("kid", "")))
            if key is None:
                return None
            claims = jwt.decode(
                token,
                key,
                algorithms=[head["alg"]],
                audience=self._settings.resource,
                issuer=self._settings.issuer,
                leeway=_LEEWAY_S,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
            return _bearer(claims) if str(claims["sub"]).strip() else None
        except (jwt.InvalidTokenError, BadArgument) as error:
            _LOG.info("a bearer token is not taken: %s", error)
            return None

    async def _key(self, kid: str) -> jwt.PyJWK | None:
        now = self._elapsed()
        stale = self._read_at is None or now - self._read_at > _FRESH_S
        asked = self._tried_at is not None and now - self._tried_at < _AGAIN_S
        if (stale or kid not in self._keys) and not asked:
            self._tried_at = now
            if stale:
                self._keys = {}
            await self._renew(now)
        return self._keys.get(kid)

    async def _renew(self, now: float) -> None:
        import httpx2

        try:
            found = jwt.PyJWKSet.from_dict(_key_set(await self._source()))
        except (OSError, ValueError, httpx2.HTTPError, jwt.PyJWTError) as error:
            message = f"the keys of {self._settings.issuer} cannot be read: {error}"
            raise OSError(message) from error
        self._keys = {str(key.key_id): key for key in found.keys if key.key_id}
        self._read_at = now
