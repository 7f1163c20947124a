"""What a caller may do at all: roles, the tokens and logins that carry them. Pure.

A role opens verbs, a policy opens a gate: whoever decides needs both.
"""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import Struct

from procedo.core.principal import Principal, PrincipalKind, Source
from procedo.core.reach import BOUNDLESS, UNLIMITED, Reach, Reaches
from procedo.errors import Refused

__all__ = ["EVERYTHING", "Access", "Login", "Role", "Token", "roles"]


class Role(StrEnum):
    """What one may do. `operate` and `approve` include `view`, since nobody acts well blindly."""

    VIEW = "view"
    OPERATE = "operate"
    APPROVE = "approve"


EVERYTHING: Final = frozenset(Role)
_DOES: Final = {
    Role.VIEW: "look at procedures and runs",
    Role.OPERATE: "start runs and move them on",
    Role.APPROVE: "decide at gates",
}


class Access(Struct, frozen=True):
    """A caller whom a door has identified, with the roles and the limits that this door gives them."""

    principal: Principal
    roles: frozenset[Role]
    reach: Reaches = BOUNDLESS

    def may(self, role: Role) -> bool:
        """True when the caller has this role."""
        return role in self.roles or (role is Role.VIEW and bool(self.roles))

    def require(self, role: Role) -> None:
        """Raises `Refused` (`not_permitted`) when the caller lacks this role."""
        if self.may(role):
            return
        has = ", ".join(sorted(self.roles)) or "none"
        message = f"{self.principal} may not {_DOES[role]}: that needs the role {role}, and the roles here are: {has}."
        raise Refused("not_permitted", message, "Whoever operates this server gives roles; nothing was changed.")


class Token(Struct, frozen=True):
    """A credential as it is kept: everything but the secret, of which only the digest is known.

    `id` names it in lists, `subject` is who acts with it, `reach` what exists for them. A token is never changed, only
    revoked.
    """

    id: str
    name: str
    digest: str
    subject: str
    kind: PrincipalKind
    roles: frozenset[Role]
    groups: frozenset[str]
    created_at: datetime
    created_by: str
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    reach: Reach = UNLIMITED

    def state(self, now: datetime) -> str:
        """`live`, `expired` or `revoked`."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "live"

    def access(self, source: Source) -> Access:
        """What its holder may do at a door."""
        limits = BOUNDLESS if self.reach == UNLIMITED else (self.reach,)
        return Access(Principal(source, self.subject, self.kind, self.groups), self.roles, limits)


class Login(Struct, frozen=True):
    """A login at the web page, kept by the digest of its secret.

    `token` is the id of the token that was shown at the login; empty for the terminal code, whose holder
    is `subject` with every role.
    """

    digest: str
    subject: str
    token: str
    created_at: datetime
    expires_at: datetime


def roles(words: Iterable[str]) -> frozenset[Role]:
    """The roles that these words name; other words are left out."""
    known = {str(role): role for role in Role}
    return frozenset(known[word] for word in words if word in known)
