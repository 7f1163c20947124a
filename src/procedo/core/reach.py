"""How far a caller reaches: which procedures exist for it, and which agents may work on its behalf. Pure.

A run carries the reach of everybody limited who started it or moved it on. Each of them has to admit what happens
in it, so the narrowest wins, and none is ever taken away again.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, TypeAlias

from msgspec import Struct

from procedo.errors import BadArgument

__all__ = [
    "BOUNDLESS",
    "UNLIMITED",
    "Reach",
    "Reaches",
    "admits_agent",
    "admits_sop",
    "broader",
    "pattern",
    "told",
    "without",
]

_LONGEST: Final = 120
_JOKERS: Final = "*?"


class Reach(Struct, frozen=True):
    """Names or patterns (`*` any characters, `?` one) of procedures and agents. None: every one; empty: none."""

    sops: tuple[str, ...] | None = None
    agents: tuple[str, ...] | None = None


UNLIMITED: Final = Reach()
"""The reach of a credential without limits."""

Reaches: TypeAlias = tuple[Reach, ...]
"""Each of them has to admit; none of them at all is no limit."""

BOUNDLESS: Final[Reaches] = ()


@lru_cache(maxsize=256)
def _compiled(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)


def _matches(name: str, text: str) -> bool:
    # `fnmatch` would take brackets for sets of letters, and names may have some.
    return _compiled(text).fullmatch(name) is not None


def _fits(patterns: tuple[str, ...] | None, name: str) -> bool:
    return patterns is None or any(_matches(name, one) for one in patterns)


def admits_sop(reaches: Reaches, name: str) -> bool:
    """True when a procedure of that name exists within all of them."""
    return all(_fits(reach.sops, name) for reach in reaches)


def admits_agent(reaches: Reaches, alias: str) -> bool:
    """True when all of them let that agent work."""
    return all(_fits(reach.agents, alias) for reach in reaches)


def without(more: Reaches, known: Reaches) -> Reaches:
    """Those of `more` that are not among `known`, each once."""
    return tuple(dict.fromkeys(reach for reach in more if reach not in known))


def pattern(what: str, text: str) -> str:
    """A name or pattern of a `what` as it is kept. Raises `BadArgument` for what is none."""
    text = text.strip()
    if not text or len(text) > _LONGEST or not text.isprintable():
        message = f"{text[:100]!r} names no {what}."
        raise BadArgument("bad_reach", message, "Give a name, or a pattern with * for any characters and ? for one.")
    return text


def _covered(wanted: str, patterns: tuple[str, ...]) -> bool:
    """True when whatever `wanted` matches is surely matched by one of these: the same, `*`, or a longer beginning."""
    for one in patterns:
        if one in (wanted, "*"):
            return True
        start, star, rest = one.partition("*")
        if star and not rest and "?" not in start and wanted.startswith(start):
            return True
        if not any(joker in wanted for joker in _JOKERS) and _matches(wanted, one):
            return True
    return False


def _beyond(wanted: tuple[str, ...] | None, held: Iterable[tuple[str, ...] | None], what: str) -> list[str]:
    found = []
    for patterns in held:
        if patterns is None:
            continue
        if wanted is None:
            found.append(f"every {what}")
        else:
            found += [f"{what} {one}" for one in wanted if not _covered(one, patterns)]
    return list(dict.fromkeys(found))


def broader(wanted: Reach, held: Reaches) -> list[str]:
    """What `wanted` may open that `held` does not surely open, in words; in doubt it is named."""
    sops = _beyond(wanted.sops, [reach.sops for reach in held], "procedure")
    return sops + _beyond(wanted.agents, [reach.agents for reach in held], "agent")


def told(patterns: tuple[str, ...] | None) -> str:
    """Names and patterns as people read them."""
    return "every one" if patterns is None else ", ".join(patterns) or "none"
