"""Who is behind a bearer token: our own tokens and OAuth, through the SDK's port."""

import logging
from typing import Final

from mcp.server.auth.provider import AccessToken
from pydantic import ConfigDict

from procedo.access.tokens import PREFIX, Tokens
from procedo.core.access import Access
from procedo.core.principal import Source
from procedo.surfaces.http.oauth import OAuth

__all__ = ["Admitted", "Verifier"]

_LOG: Final = logging.getLogger(__name__)


class Admitted(AccessToken):
    """A verified token with what it opens. `token` is left empty: nothing behind the door needs the secret."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    access: Access


class Verifier:
    """The SDK's `TokenVerifier`. `resource` is what tokens have to be made for, `scopes` what each has to carry."""

    def __init__(
        self, tokens: Tokens, oauth: OAuth | None = None, resource: str | None = None, scopes: tuple[str, ...] = ()
    ) -> None:
        self._tokens = tokens
        self._oauth = oauth
        self._resource = resource
        self._scopes = scopes

    async def verify_token(self, token: str) -> Admitted | None:
        """The holder of a token, or None."""
        return await self._own(token) if token.startswith(PREFIX) else await self._foreign(token)

    async def _own(self, secret: str) -> Admitted | None:
        # Judged at each request, with the store's own clock; so the SDK is told no end.
        token = await self._tokens.find(secret)
        if token is None:
            return None
        return Admitted(
            token="",
            client_id=token.id,
            scopes=list(self._scopes),
            resource=self._resource,
            subject=token.subject,
            access=token.access(Source.HTTP),
        )

    async def _foreign(self, token: str) -> Admitted | None:
        if self._oauth is None:
            return None
        try:
            bearer = await self._oauth.verify(token)
        except OSError as error:
            _LOG.warning("no OAuth token can be verified: %s", error)
            return None
        if bearer is None:
            return None
        return Admitted(
            token="",
            client_id=bearer.client,
            scopes=list(bearer.scopes),
            expires_at=bearer.expires_at,
            resource=self._resource,
            subject=bearer.access.principal.subject,
            claims={"iss": self._oauth.issuer},
            access=bearer.access,
        )
