-- Sessions of agents: a head for each execution, and what was said and done in it.

CREATE TABLE sessions (
    run       INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    execution TEXT NOT NULL,
    fence     INTEGER NOT NULL,
    format    INTEGER NOT NULL,
    data      TEXT NOT NULL,
    PRIMARY KEY (run, execution)
) STRICT, WITHOUT ROWID;

CREATE TABLE session_messages (
    run       INTEGER NOT NULL,
    execution TEXT NOT NULL,
    seq       INTEGER NOT NULL,
    format    INTEGER NOT NULL,
    data      TEXT NOT NULL,
    PRIMARY KEY (run, execution, seq),
    FOREIGN KEY (run, execution) REFERENCES sessions ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE session_turns (
    run       INTEGER NOT NULL,
    execution TEXT NOT NULL,
    turn      INTEGER NOT NULL,
    agent     TEXT NOT NULL,
    at        TEXT NOT NULL,
    cost_usd  TEXT,
    format    INTEGER NOT NULL,
    data      TEXT NOT NULL,
    PRIMARY KEY (run, execution, turn),
    FOREIGN KEY (run, execution) REFERENCES sessions ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX session_turns_spent ON session_turns (agent, at);

CREATE TABLE session_calls (
    run       INTEGER NOT NULL,
    execution TEXT NOT NULL,
    turn      INTEGER NOT NULL,
    place     INTEGER NOT NULL,
    format    INTEGER NOT NULL,
    data      TEXT NOT NULL,
    PRIMARY KEY (run, execution, turn, place),
    FOREIGN KEY (run, execution) REFERENCES sessions ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- Actions counted against an agent's hourly budget; the same call is counted once.
CREATE TABLE actions (
    call  TEXT NOT NULL PRIMARY KEY,
    agent TEXT NOT NULL,
    at    TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX actions_agent ON actions (agent, at);
