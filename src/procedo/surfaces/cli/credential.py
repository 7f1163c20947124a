"""Tokens at the command line: `--token`, or better `PROCEDO_TOKEN`, which no list of processes shows.

With a token every verb acts as its holder and with its roles. A token stands for somebody who is not at the
terminal, so whoever shows one is asked nothing.
"""

import asyncio
from typing import TYPE_CHECKING, Final

from procedo.core.altered import altered
from procedo.core.principal import PrincipalKind, Source
from procedo.errors import Refused
from procedo.surfaces.cli.call import Call

if TYPE_CHECKING:
    from procedo.app import App
    from procedo.core.access import Access, Role

__all__ = ["VARIABLE", "identified", "redeemed", "require_person", "shown_token"]

VARIABLE: Final = "PROCEDO_TOKEN"


def shown_token(call: Call) -> str | None:
    """The secret that was given, or None. An empty `--token` was given all the same: it opens nothing."""
    given: str | None = call["token"]
    return given if given is not None else call.environ.get(VARIABLE) or None


async def redeemed(app: "App", secret: str) -> "Access":
    """What a secret opens at the command line. Raises `Refused` when it is not live."""
    return await app.tokens.redeem(secret, Source.CLI)


async def _holder(call: Call, secret: str) -> "Access":
    async with call.app() as app:
        return await redeemed(app, secret)


def identified(call: Call) -> Call:
    """The call as the holder of the token that was given. Raises `Refused` when that is not live."""
    secret = shown_token(call)
    return call if secret is None else altered(call, holder=asyncio.run(_holder(call, secret)))


def require_person(access: "Access", role: "Role", what: str) -> None:
    """Raises `Refused` (`not_permitted`) for whoever lacks the role, and for an agent.

    `what` says what an agent's token does not do.
    """
    access.require(role)
    if access.principal.kind is not PrincipalKind.HUMAN:
        raise Refused("not_permitted", f"An agent's token {what}.", "A person does that.")
