"""Tokens: made once, shown once, kept as a digest.

A secret has 256 random bits. Nobody guesses or enumerates that many, so one plain SHA-256 is enough to keep
it: slow hashes and salts protect passwords, which people choose and which an attacker can list.
"""

import hashlib
import secrets
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from procedo.core.access import Access, Role, Token
from procedo.core.altered import altered
from procedo.core.principal import Principal, PrincipalKind, Source
from procedo.core.reach import UNLIMITED, Reach, pattern
from procedo.errors import BadArgument, NotFound, Refused
from procedo.ports import Reader, Store, Writer

__all__ = ["PREFIX", "Issued", "Tokens", "secret_digest"]

PREFIX: Final = "procedo_"
"""What every secret begins with, so that people and secret scanners recognise one."""

_BYTES: Final = 32
_LONGEST_NAME: Final = 80
_KINDS: Final = (PrincipalKind.HUMAN, PrincipalKind.AGENT)


class Issued(Struct, frozen=True):
    """A new token, and its secret: the only moment at which it is known."""

    token: Token
    secret: str


def secret_digest(secret: str) -> str:
    """The digest by which a secret is kept and found."""
    return hashlib.sha256(secret.strip().encode("utf-8", "surrogatepass")).hexdigest()


def _checked(what: str, text: str) -> str:
    text = text.strip()
    if not text or len(text) > _LONGEST_NAME or not text.isprintable():
        message = f"The {what} of a token is printable text of 1 to {_LONGEST_NAME} characters, got {text[:100]!r}."
        raise BadArgument("bad_token", message, f"Choose another {what}.")
    return text


def _patterns(what: str, given: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if given is None else tuple(dict.fromkeys(pattern(what, text) for text in given))


class Tokens:
    """The tokens of one store. Whoever calls has made sure that the maker may make tokens."""

    def __init__(self, store: Store, now: Callable[[], datetime]) -> None:
        self._store = store
        self._now = now

    async def create(
        self,
        name: str,
        maker: Principal,
        *,
        subject: str,
        kind: PrincipalKind,
        roles: Collection[Role],
        groups: Collection[str] = (),
        lifetime_s: float | None = None,
        reach: Reach = UNLIMITED,
    ) -> Issued:
        """Make a token. Raises `BadArgument` for a name that a live token has, and for one without any role."""
        if kind not in _KINDS:
            raise BadArgument("bad_token", f"A token is for a human or an agent, not for {kind}.", "Name one of them.")
        if not roles:
            raise BadArgument("bad_token", "A token without a role opens nothing.", f"Roles: {', '.join(Role)}.")
        if lifetime_s is not None and lifetime_s <= 0:
            raise BadArgument("bad_token", "A token has to live for some time.", "Give a longer time, such as 30d.")
        now, secret = self._now(), PREFIX + secrets.token_urlsafe(_BYTES)
        token = Token(
            id=f"tok-{secrets.token_hex(4)}",
            name=_checked("name", name),
            digest=secret_digest(secret),
            subject=_checked("subject", subject),
            kind=kind,
            roles=frozenset(roles),
            groups=frozenset(_checked("group", group) for group in groups),
            created_at=now,
            created_by=maker.key,
            expires_at=None if lifetime_s is None else now + timedelta(seconds=lifetime_s),
            reach=Reach(_patterns("procedure", reach.sops), _patterns("agent", reach.agents)),
        )

        def work(writer: Writer) -> None:
            for known in writer.tokens():
                if known.name.casefold() == token.name.casefold() and known.state(now) == "live":
                    message = f"There is a live token {known.name!r} already ({known.id})."
                    raise BadArgument("name_taken", message, "Choose another name, or revoke that one first.")
            writer.put_token(token)

        await self._store.write(work)
        return Issued(token, secret)

    async def list(self) -> tuple[Token, ...]:
        """Every token that was ever made, the oldest first."""
        return await self._store.read(lambda reader: reader.tokens())

    async def revoke(self, reference: str) -> Token:
        """End a token, named by its id or its name; ending it again changes nothing. Raises `NotFound`."""
        now = self._now()

        def work(writer: Writer) -> Token:
            token = _named(writer, reference, now)
            if token.revoked_at is not None:
                return token
            ended = altered(token, revoked_at=now)
            writer.put_token(ended)
            return ended

        return await self._store.write(work)

    async def redeem(self, secret: str, source: Source) -> Access:
        """What the holder of a secret may do at this door.

        Raises `Refused` (`bad_token`) for one that is unknown, expired or revoked.
        """
        token = await self.find(secret)
        if token is None:
            raise Refused("bad_token", "No live token has that secret.", "Ask for a new token: procedo token create.")
        return token.access(source)

    async def find(self, secret: str) -> Token | None:
        """The live token with this secret, or None. The search is by digest, so its time tells nothing of secrets."""
        digest = secret_digest(secret)
        token = await self._store.read(lambda reader: reader.token(digest))
        return token if token is not None and token.state(self._now()) == "live" else None

    async def any(self) -> bool:
        """True when a token was ever made here, also when it has ended: this server is not open to anybody then."""
        return bool(await self.list())


def _named(reader: Reader, reference: str, now: datetime) -> Token:
    wanted = reference.strip().casefold()
    found = [t for t in reader.tokens() if wanted in (t.id, t.name.casefold())]
    found.sort(key=lambda token: token.state(now) != "live")
    if not found:
        raise NotFound("unknown_token", f"There is no token {reference!r}.", "See: procedo token list")
    return found[0]
