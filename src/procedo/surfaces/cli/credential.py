"""Tokens at the command line: `--token`, or better `PROCEDO_TOKEN`, which no list of processes shows.

A token stands for a person who is not at the terminal, so whoever shows one is asked nothing.
"""

from argparse import ArgumentParser
from typing import TYPE_CHECKING

from procedo.core.principal import Source
from procedo.surfaces.cli.call import Call

if TYPE_CHECKING:
    from procedo.app import App
    from procedo.core.access import Access

__all__ = ["VARIABLE", "redeemed", "shown_token", "token_argument"]

VARIABLE = "PROCEDO_TOKEN"


def token_argument(parser: ArgumentParser) -> None:
    """Define `--token`."""
    parser.add_argument(
        "--token", metavar="SECRET", help=f"act with this token and without a terminal (better: {VARIABLE}=…)"
    )


def shown_token(call: Call) -> str | None:
    """The secret that was given, or None."""
    return call["token"] or call.environ.get(VARIABLE) or None


async def redeemed(app: "App", secret: str) -> "Access":
    """What a secret opens at the command line. Raises `Refused` when it is not live."""
    return await app.tokens.redeem(secret, Source.CLI)
