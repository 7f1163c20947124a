-- Who may come in: tokens, logins at the web page, and runs that belong to one caller.

CREATE TABLE tokens (
    token      INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    name       TEXT NOT NULL,
    digest     TEXT NOT NULL UNIQUE CHECK (length(digest) = 64),
    subject    TEXT NOT NULL CHECK (subject <> ''),
    kind       TEXT NOT NULL CHECK (kind IN ('human', 'agent')),
    roles      TEXT NOT NULL,
    groups     TEXT NOT NULL,
    created_at TEXT NOT NULL,
    created_by TEXT NOT NULL,
    expires_at TEXT,
    revoked_at TEXT
) STRICT;

CREATE TRIGGER tokens_fixed BEFORE UPDATE ON tokens
WHEN OLD.revoked_at IS NOT NULL OR NEW.revoked_at IS NULL
BEGIN SELECT RAISE(ABORT, 'a token is revoked once, and never changed otherwise'); END;

CREATE TRIGGER tokens_kept BEFORE DELETE ON tokens
BEGIN SELECT RAISE(ABORT, 'tokens stay in the record'); END;

CREATE TABLE logins (
    digest     TEXT NOT NULL PRIMARY KEY CHECK (length(digest) = 64),
    subject    TEXT NOT NULL CHECK (subject <> ''),
    token      TEXT NOT NULL,
    created_at TEXT NOT NULL,
    expires_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- A run without a row here belongs to the operators of the server.
CREATE TABLE owners (
    run   INTEGER PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
    owner TEXT NOT NULL
) STRICT;

CREATE INDEX owners_owner ON owners (owner);
