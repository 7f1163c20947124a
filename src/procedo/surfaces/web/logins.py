"""Who is logged in: sessions behind a cookie, kept by digest, ended by time, by logging out, or by their token.

The cookie's secret is never stored. The token against forged requests is made of it, so that both
belong together and nothing more has to be kept. The page is for people: no agent's token opens it, also where a
policy lets that agent decide.
"""

import hashlib
import hmac
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from procedo.access.tokens import PREFIX, Tokens, secret_digest
from procedo.core.access import EVERYTHING, Access, Login, Token
from procedo.core.principal import Principal, PrincipalKind, Source
from procedo.errors import Refused
from procedo.ports import Reader, Store
from procedo.surfaces.web.code import TerminalCode

__all__ = ["LIFETIME", "Logins", "Opened", "Visitor"]

LIFETIME: Final = timedelta(hours=12)
_BYTES: Final = 32


class Opened(Struct, frozen=True):
    """A new session: the secret for the cookie, and how long it lasts in seconds."""

    secret: str
    seconds: int


class Visitor(Struct, frozen=True):
    """Somebody who is logged in, and the token that each of their forms has to carry."""

    access: Access
    form_token: str
    expires_at: datetime

    def sent(self, form_token: str) -> bool:
        """True when a form was made for this very session."""
        return secrets.compare_digest(form_token.encode("utf-8", "replace"), self.form_token.encode())


def _form_token(secret: str) -> str:
    return hmac.new(secret.encode(), b"forms of the inbox", hashlib.sha256).hexdigest()


class Logins:
    """Opens, finds and ends sessions. `operator` is who a login by terminal code is."""

    def __init__(
        self, store: Store, tokens: Tokens, code: TerminalCode, operator: str, now: Callable[[], datetime]
    ) -> None:
        self._store = store
        self._tokens = tokens
        self._code = code
        self._operator = operator
        self._now = now

    def show_code(self) -> bool:
        """Show a new code in the terminal; False when the last one is still good, or was shown a moment ago."""
        return self._code.renew()

    @property
    def code_good_until(self) -> datetime | None:
        """Until when the code in the terminal opens a session; None when there is none that does."""
        return self._code.good_until

    async def open(self, credential: str) -> Opened | None:
        """A session for a terminal code or a person's token, or None when it is neither.

        Raises `Refused` (`not_permitted`) for the live token of an agent.
        """
        credential = credential.strip()
        if credential.startswith(PREFIX):
            token = await self._tokens.find(credential)
            if token is not None and token.kind is not PrincipalKind.HUMAN:
                message = "This is the token of an agent, and this page is for people."
                raise Refused("not_permitted", message, "Log in with the code in the terminal, or a person's token.")
            return None if token is None else await self._begin(token.subject, token)
        return await self._begin(self._operator, None) if self._code.take(credential) else None

    async def _begin(self, subject: str, token: Token | None) -> Opened:
        now, secret = self._now(), secrets.token_urlsafe(_BYTES)
        until = now + LIFETIME
        if token is not None and token.expires_at is not None:
            until = min(until, token.expires_at)
        login = Login(secret_digest(secret), subject, "" if token is None else token.id, now, until)
        await self._store.write(lambda writer: writer.put_login(login))
        return Opened(secret, int((until - now).total_seconds()))

    async def find(self, secret: str) -> Visitor | None:
        """Who is behind a cookie, or None. A session by token ends with its token."""
        digest = secret_digest(secret)

        def work(reader: Reader) -> tuple[Login | None, tuple[Token, ...]]:
            login = reader.login(digest)
            return login, reader.tokens() if login is not None and login.token else ()

        login, tokens = await self._store.read(work)
        if login is None or login.expires_at <= self._now():
            return None
        access = self._access(login, tokens)
        return None if access is None else Visitor(access, _form_token(secret), login.expires_at)

    def _access(self, login: Login, tokens: tuple[Token, ...]) -> Access | None:
        if not login.token:
            return Access(Principal(Source.WEB, login.subject, PrincipalKind.HUMAN), EVERYTHING)
        token = next((token for token in tokens if token.id == login.token), None)
        if token is None or token.state(self._now()) != "live" or token.kind is not PrincipalKind.HUMAN:
            return None
        return token.access(Source.WEB)

    async def close(self, secret: str) -> None:
        """Log out."""
        digest = secret_digest(secret)
        await self._store.write(lambda writer: writer.drop_login(digest))
