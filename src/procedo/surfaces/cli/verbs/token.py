"""Makes a token, lists those that there are, or ends one.

A token lets somebody in without this terminal: over HTTP, at the inbox page, or with PROCEDO_TOKEN. Its secret
is shown once and kept as a digest. Making or ending one needs a person at a terminal who types `y`, or a
human's token with the role approve, which makes tokens with no more than it has itself. A group counts when
procedo.toml has a policy for it and says by_token; one that counts nowhere is warned of. For a token with --sop no
other procedure exists; with --agent, what it starts or moves on is left to no other agent.
"""

import asyncio
import difflib
from argparse import ArgumentParser
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from procedo.core.access import Access, Role, Token
from procedo.core.principal import PrincipalKind
from procedo.core.reach import UNLIMITED, Reach, broader, pattern, told
from procedo.errors import BadArgument, Refused
from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.credential import redeemed, require_person, shown_token
from procedo.surfaces.cli.output import ago
from procedo.surfaces.cli.person import operator
from procedo.surfaces.cli.terminal import controlling_terminal

if TYPE_CHECKING:
    from procedo.access.tokens import Issued

EXAMPLES = (
    "procedo token create ida-phone --subject ida --role approve",
    "procedo token create build-bot --kind agent --role operate --expires 30d",
    "procedo token create refunds-desk --role operate --sop 'refund*' --agent reviewer",
    "procedo token list",
    "procedo token revoke ida-phone",
)
_ROLES = [str(role) for role in Role]


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument("what", choices=["create", "list", "revoke"], help="what to do")
    parser.add_argument("name", metavar="NAME", nargs="?", help="create: a new name; revoke: the name or the id")
    parser.add_argument("--subject", metavar="WHO", help="create: who acts with it (default: the name)")
    parser.add_argument("--kind", choices=["human", "agent"], default="human", help="create: a person or a program")
    parser.add_argument(
        "--role", action="append", choices=_ROLES, default=[], help="create: what it opens; may be given several times"
    )
    parser.add_argument(
        "--group", action="append", metavar="GROUP", default=[], help="create: a group that its holder belongs to"
    )
    parser.add_argument(
        "--sop", action="append", metavar="NAME", help="create: only this procedure, or pattern such as 'refund*'"
    )
    parser.add_argument(
        "--agent", action="append", metavar="NAME", help="create: only this agent may work on its behalf, or pattern"
    )
    parser.add_argument(
        "--no-agents", action="store_true", help="create: no agent of procedo.toml may work on its behalf"
    )
    parser.add_argument("--expires", metavar="TIME", help="create: how long it lives, such as 30d or 12h")


def _lifetime(text: str | None) -> float | None:
    from procedo.duration import seconds

    if text is None:
        return None
    try:
        return seconds(text)
    except ValueError as error:
        raise BadArgument("bad_argument", f"--expires {text}: {error}.", "Such as 30d, 12h or 90m.") from error


def _wanted(call: Call) -> dict[str, Any]:
    """What the token is to be."""
    if not call["role"]:
        raise BadArgument("bad_argument", "A token needs a --role.", f"It is one of {', '.join(_ROLES)}.")
    return {
        "subject": call["subject"] or call["name"],
        "kind": PrincipalKind(call["kind"]),
        "roles": frozenset(map(Role, call["role"])),
        "groups": frozenset(call["group"]),
        "lifetime_s": _lifetime(call["expires"]),
        "reach": _reach(call),
    }


def _reach(call: Call) -> Reach:
    """The limits of the token. An empty list of agents is not the same as none at all."""
    sops, agents = call["sop"], call["agent"]
    if agents is not None and call["no_agents"]:
        raise BadArgument("bad_argument", "--agent and --no-agents exclude each other.", "Give one of them.")
    for what, names in (("procedure", sops), ("agent", agents)):
        for name in names or ():
            pattern(what, name)
    if call["no_agents"]:
        agents = []
    return Reach(None if sops is None else tuple(sops), None if agents is None else tuple(agents))


def _check_reach(maker: Access, wanted: dict[str, Any], until: datetime | None, now: datetime) -> None:
    """A token makes nothing that reaches further than itself, and nobody else who decides."""
    _check_maker(maker)
    more = sorted(wanted["roles"] - {role for role in Role if maker.may(role)})
    more += sorted(wanted["groups"] - maker.principal.groups)
    more += broader(wanted["reach"], maker.reach)
    if more:
        raise Refused(
            "not_permitted", f"Your token has not {', '.join(more)}, so it cannot give it.", "No token was made."
        )
    own = wanted["kind"] is PrincipalKind.HUMAN and wanted["subject"].strip().casefold() == maker.principal.identity
    if Role.APPROVE in wanted["roles"] and not own:
        message = "With a token you make tokens that decide for yourself alone."
        raise Refused("not_permitted", message, "Make this one at a terminal.")
    lifetime = wanted["lifetime_s"]
    if until is not None and (lifetime is None or (until - now).total_seconds() < lifetime):
        message = f"Your token ends at {until:%Y-%m-%d %H:%M} UTC, and the new one would live longer."
        raise Refused("not_permitted", message, "Give a shorter --expires.")


def _check_maker(maker: Access) -> None:
    require_person(maker, Role.APPROVE, "makes and ends no tokens")


def _idle_groups(call: Call, groups: Collection[str]) -> list[str]:
    """Why some of these groups make nobody a member of anything as things stand."""
    from procedo.config import load

    policies = load(call.workspace()).policies.values()
    known = {policy.group: policy.by_token for policy in policies if policy.group is not None}
    return [_why_idle(group, known) for group in sorted(groups) if not known.get(group)]


def _why_idle(group: str, known: Mapping[str, bool]) -> str:
    if group in known:
        return f"Group {group!r} counts its listed members alone: no token does until it says by_token = true."
    near = difflib.get_close_matches(group, known, n=3)
    meant = f"did you mean {', '.join(near)}?" if near else f"groups of policies: {', '.join(sorted(known)) or 'none'}."
    return f"No policy of procedo.toml requires a group {group!r}; {meant}"


async def _create(call: Call, wanted: dict[str, Any], secret: str | None) -> "Issued":
    async with call.app() as app:
        if secret is None:
            return await app.tokens.create(call["name"], operator(), **wanted)
        maker, held = await redeemed(app, secret), await app.tokens.find(secret)
        until = None if held is None else held.expires_at
        _check_reach(maker, wanted, until, app.clock.now())
        return await app.tokens.create(call["name"], maker.principal, **wanted)


async def _revoke(call: Call, secret: str | None) -> Token:
    async with call.app() as app:
        if secret is not None:
            maker = await redeemed(app, secret)
            _check_maker(maker)
            _check_known(call["name"], await app.tokens.list(), maker)
        return await app.tokens.revoke(call["name"])


def _theirs(tokens: Iterable[Token], access: Access) -> tuple[Token, ...]:
    """Those that reach no further than the caller: the limits of others tell names that do not exist here."""
    return tuple(token for token in tokens if not broader(token.reach, access.reach))


def _check_known(name: str, tokens: Collection[Token], maker: Access) -> None:
    theirs = _theirs(tokens, maker)
    if any(name in (token.name, token.id) for token in tokens if token not in theirs):
        message = f"The token {name!r} reaches further than yours, so you cannot end it."
        raise Refused("not_permitted", message, "Somebody with a token that reaches as far does that.")


def _confirmed(lines: list[str], question: str) -> None:
    with controlling_terminal() as terminal:
        terminal.show("\n".join(["", *lines]))
        if not terminal.confirmed(f"{question} [y/N]"):
            raise Refused("not_confirmed", "Nothing was done: it was not confirmed.", "Run the command again.")


def _value(token: Token, now: datetime) -> dict[str, Any]:
    """A token as JSON, without its digest."""
    return {
        "id": token.id,
        "name": token.name,
        "subject": token.subject,
        "kind": str(token.kind),
        "roles": sorted(token.roles),
        "groups": sorted(token.groups),
        "sops": None if token.reach.sops is None else list(token.reach.sops),
        "agents": None if token.reach.agents is None else list(token.reach.agents),
        "state": token.state(now),
        "created_at": token.created_at.isoformat(),
        "created_by": token.created_by,
        "expires_at": None if token.expires_at is None else token.expires_at.isoformat(),
        "revoked_at": None if token.revoked_at is None else token.revoked_at.isoformat(),
    }


def _make(call: Call) -> int:
    wanted, secret = _wanted(call), shown_token(call)
    warnings = _idle_groups(call, wanted["groups"])
    if secret is None:
        shown = [f"A new token {call['name']!r} for {wanted['kind']} {wanted['subject']!r}."]
        shown += [f"  roles   {', '.join(sorted(wanted['roles']))}"]
        shown += [f"  groups  {', '.join(sorted(wanted['groups']))}"] if wanted["groups"] else []
        if wanted["reach"] != UNLIMITED:
            shown += [f"  sops    {told(wanted['reach'].sops)}", f"  agents  {told(wanted['reach'].agents)}"]
        shown += [f"  lives   {call['expires'] or 'until it is revoked'}"]
        shown += [f"  warning: {text}" for text in warnings]
        _confirmed(shown, "Make it?")
    issued = asyncio.run(_create(call, wanted, secret))
    if call.json:
        call.output.value({**_value(issued.token, datetime.now(UTC)), "secret": issued.secret, "warnings": warnings})
        return 0
    call.output.line(issued.secret)
    for text in warnings:
        call.notes.line(f"{call.notes.style('yellow', 'warning:')} {text}")
    call.notes.line(f"Token {issued.token.name} ({issued.token.id}). The line above is its secret, shown only now.")
    return 0


def _end(call: Call) -> int:
    secret = shown_token(call)
    if secret is None:
        _confirmed([f"The token {call['name']!r} will open nothing any more."], "End it?")
    token = asyncio.run(_revoke(call, secret))
    if call.json:
        call.output.value(_value(token, datetime.now(UTC)))
    else:
        call.output.line(f"Token {token.name} ({token.id}) is revoked.")
    return 0


async def _all(call: Call) -> tuple[Token, ...]:
    async with call.app() as app:
        return _theirs(await app.tokens.list(), call.access)


def _show(call: Call) -> int:
    found, now = asyncio.run(_all(call)), datetime.now(UTC)
    if call.json:
        call.output.value({"tokens": [_value(token, now) for token in found]})
    elif not found:
        call.output.line("There is no token. Make one with: procedo token create NAME --role ROLE")
    else:
        rows = [
            (
                token.name,
                token.state(now),
                f"{token.subject} ({token.kind})",
                ", ".join(sorted(token.roles)),
                ", ".join(sorted(token.groups)) or "-",
                told(token.reach.sops),
                told(token.reach.agents),
                "never" if token.expires_at is None else ago(token.expires_at, now),
                token.id,
            )
            for token in found
        ]
        call.output.table(("NAME", "STATE", "SUBJECT", "ROLES", "GROUPS", "SOPS", "AGENTS", "EXPIRES", "ID"), rows)
    return 0


def run(call: Call) -> int:
    """Create, list or revoke."""
    if call["what"] == "list":
        return _show(call)
    if not call["name"]:
        raise BadArgument("bad_argument", f"token {call['what']} needs a NAME.", "See: procedo token --help")
    return _make(call) if call["what"] == "create" else _end(call)
