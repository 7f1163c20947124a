"""Tokens, logins and owners of runs in SQLite."""

import sqlite3
from collections.abc import Mapping
from typing import Any, Final

from procedo.core.access import Login, Role, Token
from procedo.core.principal import PrincipalKind
from procedo.core.reach import Reach
from procedo.core.state import Status
from procedo.ports import Filter, Summary
from procedo.stores.head import SUMMARY, summary
from procedo.stores.jsontext import instant, moment, parsed, text

__all__ = ["AccessReader", "AccessWriter"]

_TOKENS: Final = """SELECT id, name, digest, subject, kind, roles, groups, created_at, created_by, expires_at,
                    revoked_at, sops, agents FROM tokens"""
_OWNED: Final = "FROM owners JOIN runs USING (run) WHERE owner = ?"


def _token(row: tuple[Any, ...]) -> Token:
    identifier, name, digest, subject, kind, roles, groups, created_at, created_by, expires_at, revoked_at, *reach = row
    return Token(
        id=identifier,
        name=name,
        digest=digest,
        subject=subject,
        kind=PrincipalKind(kind),
        roles=frozenset(map(Role, parsed(roles))),
        groups=frozenset(parsed(groups)),
        created_at=instant(created_at),
        created_by=created_by,
        expires_at=None if expires_at is None else instant(expires_at),
        revoked_at=None if revoked_at is None else instant(revoked_at),
        reach=Reach(*(None if names is None else tuple(parsed(names)) for names in reach)),
    )


class AccessReader:
    """The part of a `Reader` that tells who may come in."""

    _connection: sqlite3.Connection

    def tokens(self) -> tuple[Token, ...]:
        """See `Reader.tokens`."""
        return tuple(map(_token, self._connection.execute(f"{_TOKENS} ORDER BY token")))

    def token(self, digest: str) -> Token | None:
        """See `Reader.token`."""
        row = self._connection.execute(f"{_TOKENS} WHERE digest = ?", (digest,)).fetchone()
        return None if row is None else _token(row)

    def login(self, digest: str) -> Login | None:
        """See `Reader.login`."""
        sql = "SELECT digest, subject, token, created_at, expires_at FROM logins WHERE digest = ?"
        row = self._connection.execute(sql, (digest,)).fetchone()
        return None if row is None else Login(row[0], row[1], row[2], instant(row[3]), instant(row[4]))

    def owner(self, run_id: str) -> str | None:
        """See `Reader.owner`."""
        row = self._connection.execute(
            "SELECT owner FROM owners JOIN runs USING (run) WHERE id = ?", (run_id,)
        ).fetchone()
        return None if row is None else str(row[0])

    def owned(self, whose: str, wanted: Filter) -> tuple[Summary, ...]:
        """See `Reader.owned`."""
        tests, values = "", [whose]
        for column, value in (("sop", wanted.sop), ("status", wanted.status)):
            if value is not None:
                tests += f" AND {column} = ?"
                values.append(str(value))
        if wanted.live is not None:
            tests += f" AND ended_at IS {'NULL' if wanted.live else 'NOT NULL'}"
        sql = f"SELECT {SUMMARY} {_OWNED}{tests} ORDER BY active_at DESC, run DESC LIMIT ?"  # names of our own columns
        return tuple(map(summary, self._connection.execute(sql, (*values, wanted.limit))))

    def owned_counts(self, whose: str, sop: str | None = None) -> Mapping[Status, int]:
        """See `Reader.owned_counts`."""
        test, values = ("", (whose,)) if sop is None else (" AND sop = ?", (whose, sop))
        found = dict.fromkeys(Status, 0)
        sql = f"SELECT status, count(*) {_OWNED}{test} GROUP BY status"
        found.update((Status(status), count) for status, count in self._connection.execute(sql, values))
        return found


class AccessWriter(AccessReader):
    """The part of a `Writer` that keeps who may come in."""

    def put_token(self, new: Token) -> None:
        """See `Writer.put_token`."""
        ended = None if new.revoked_at is None else moment(new.revoked_at)
        known = self._connection.execute("SELECT revoked_at FROM tokens WHERE id = ?", (new.id,)).fetchone()
        if known is not None:
            if ended is not None and known[0] is None:
                self._connection.execute("UPDATE tokens SET revoked_at = ? WHERE id = ?", (ended, new.id))
            return
        until = None if new.expires_at is None else moment(new.expires_at)
        row = (
            new.id,
            new.name,
            new.digest,
            new.subject,
            new.kind.value,
            text(sorted(new.roles)),
            text(sorted(new.groups)),
        )
        limits = (None if names is None else text(names) for names in (new.reach.sops, new.reach.agents))
        self._connection.execute(
            """INSERT INTO tokens (id, name, digest, subject, kind, roles, groups, created_at, created_by, expires_at,
               revoked_at, sops, agents) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            (*row, moment(new.created_at), new.created_by, until, ended, *limits),
        )

    def put_login(self, new: Login) -> None:
        """See `Writer.put_login`."""
        created = moment(new.created_at)
        self._connection.execute("DELETE FROM logins WHERE expires_at < ?", (created,))
        row = (new.digest, new.subject, new.token, created, moment(new.expires_at))
        self._connection.execute("INSERT INTO logins VALUES (?, ?, ?, ?, ?)", row)

    def drop_login(self, digest: str) -> None:
        """See `Writer.drop_login`."""
        self._connection.execute("DELETE FROM logins WHERE digest = ?", (digest,))

    def put_owner(self, run_id: str, new: str) -> None:
        """See `Writer.put_owner`."""
        self._connection.execute("INSERT INTO owners SELECT run, ? FROM runs WHERE id = ?", (new, run_id))
