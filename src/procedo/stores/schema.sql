-- Today's schema. `migrations/` leads here step by step, and a test holds the two together.
--
-- The table that holds a thing says what it is: `runs` are projections that transitions overwrite, until they
-- end; `origins` and `transitions` are written once. Times are fixed-width UTC text, so that their order is time.
-- Runs are numbered inside the file, which keeps the many rows that belong to one short.

CREATE TABLE definitions (
    digest TEXT NOT NULL PRIMARY KEY,
    name   TEXT NOT NULL,
    files  TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE runs (
    run            INTEGER PRIMARY KEY,
    id             TEXT NOT NULL UNIQUE,
    sop            TEXT NOT NULL,
    digest         TEXT NOT NULL,
    version        TEXT NOT NULL,
    status         TEXT NOT NULL CHECK (status IN (
        'running', 'waiting_approval', 'paused_checkpoint', 'pending', 'paused', 'completed', 'failed', 'cancelled'
    )),
    reason         TEXT NOT NULL,
    started_at     TEXT NOT NULL,
    active_at      TEXT NOT NULL,
    ended_at       TEXT,
    key            TEXT,
    parent_run     TEXT,
    revision       INTEGER NOT NULL CHECK (revision > 0),
    seq            INTEGER NOT NULL CHECK (seq >= revision),
    head_hash      BLOB NOT NULL CHECK (length(head_hash) = 32),
    slot           INTEGER NOT NULL CHECK (slot IN (0, 1)),
    slot_since     TEXT,
    due_at         TEXT,
    gates          INTEGER NOT NULL,
    fans           INTEGER NOT NULL,
    last_output    TEXT,
    last_output_of TEXT,
    format         INTEGER NOT NULL,
    body           TEXT NOT NULL,
    CHECK ((ended_at IS NOT NULL) = (status IN ('completed', 'failed', 'cancelled')))
) STRICT;

-- Live things are few however many runs have ended, so their indexes are partial and stay small.
CREATE INDEX runs_live     ON runs (sop, slot)                 WHERE ended_at IS NULL;
CREATE INDEX runs_slots    ON runs (slot)                      WHERE slot = 1;
CREATE INDEX runs_waiting  ON runs (slot_since)                WHERE slot_since IS NOT NULL;
CREATE INDEX runs_due      ON runs (due_at)                    WHERE due_at IS NOT NULL;
CREATE INDEX runs_keys     ON runs (sop, key)                  WHERE ended_at IS NULL AND key IS NOT NULL;
CREATE INDEX runs_children ON runs (parent_run)                WHERE parent_run IS NOT NULL;
CREATE INDEX runs_started  ON runs (sop, started_at);
CREATE INDEX runs_ended    ON runs (ended_at)                  WHERE ended_at IS NOT NULL;
CREATE INDEX runs_finished ON runs (sop, status, ended_at)     WHERE ended_at IS NOT NULL;

CREATE TABLE origins (
    run    INTEGER PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
    format INTEGER NOT NULL,
    data   TEXT NOT NULL
) STRICT;

-- One row for each transition. `events` is an array of [kind, data] in JSON, deflated (see ledger.py); `seq` is the
-- number of the last of them and `hash` the end of the hash chain after it. `delegating` and `root` are absent
-- where they equal `acting`.
CREATE TABLE transitions (
    run        INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    revision   INTEGER NOT NULL,
    seq        INTEGER NOT NULL,
    at         TEXT NOT NULL,
    acting     TEXT NOT NULL,
    delegating TEXT,
    root       TEXT,
    format     INTEGER NOT NULL,
    events     BLOB NOT NULL,
    hash       BLOB NOT NULL CHECK (length(hash) = 32),
    PRIMARY KEY (run, revision)
) STRICT, WITHOUT ROWID;

CREATE TABLE executions (
    run    INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    id     TEXT NOT NULL,
    ord    INTEGER NOT NULL,
    format INTEGER NOT NULL,
    data   TEXT NOT NULL,
    PRIMARY KEY (run, id)
) STRICT, WITHOUT ROWID;

-- `output` absent means that it is the output of the execution `completed`.
CREATE TABLE steps (
    run           INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    step          INTEGER NOT NULL,
    visits        INTEGER NOT NULL,
    executions    INTEGER NOT NULL,
    completed     TEXT,
    output        TEXT,
    opened_seq    INTEGER NOT NULL,
    completed_seq INTEGER NOT NULL,
    PRIMARY KEY (run, step)
) STRICT, WITHOUT ROWID;

CREATE TABLE gates (
    id            TEXT NOT NULL PRIMARY KEY,
    run           INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    ord           INTEGER NOT NULL,
    code          TEXT NOT NULL COLLATE NOCASE,
    open          INTEGER NOT NULL CHECK (open IN (0, 1)),
    waiting_since TEXT NOT NULL,
    format        INTEGER NOT NULL,
    data          TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX gates_of_run  ON gates (run, ord);
CREATE INDEX gates_code    ON gates (code);
CREATE INDEX gates_waiting ON gates (waiting_since) WHERE open = 1;

CREATE TABLE fans (
    run       INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    step      INTEGER NOT NULL,
    following INTEGER NOT NULL,
    format    INTEGER NOT NULL,
    arrival   TEXT NOT NULL,
    items     TEXT NOT NULL,
    PRIMARY KEY (run, step)
) STRICT, WITHOUT ROWID;

-- `output` absent means that it is the output of `execution`.
CREATE TABLE fan_items (
    run       INTEGER NOT NULL,
    step      INTEGER NOT NULL,
    item      INTEGER NOT NULL,
    execution TEXT NOT NULL,
    output    TEXT,
    PRIMARY KEY (run, step, item),
    FOREIGN KEY (run, step) REFERENCES fans ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE keys (
    scope  TEXT NOT NULL,
    key    TEXT NOT NULL,
    digest TEXT NOT NULL,
    run_id TEXT NOT NULL,
    PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX keys_of_run ON keys (run_id);

-- Jobs of the embedded carrier. One that is done stays, without its payload, so that its id is never taken again.
-- `ready_at` is when it can be claimed: its due time (empty: at once), or the end of the claim that is on it.
CREATE TABLE jobs (
    job      INTEGER PRIMARY KEY,
    id       TEXT NOT NULL UNIQUE,
    kind     TEXT NOT NULL,
    run_id   TEXT NOT NULL,
    subject  TEXT NOT NULL,
    due_at   TEXT,
    payload  TEXT,
    ready_at TEXT NOT NULL,
    owner    TEXT,
    fence    INTEGER NOT NULL DEFAULT 0,
    done     INTEGER NOT NULL DEFAULT 0 CHECK (done IN (0, 1))
) STRICT;

CREATE INDEX jobs_ready  ON jobs (ready_at, job) WHERE done = 0;
CREATE INDEX jobs_of_run ON jobs (run_id);

-- What `transitions` and `origins` say is said for ever, and a run that has ended stays as it is. The one
-- exception is pruning: runs that have ended, whole, named in `pruning` within the same transaction.
CREATE TABLE pruning (
    run INTEGER PRIMARY KEY
) STRICT;

CREATE TRIGGER pruning_ended_only BEFORE INSERT ON pruning
WHEN NOT EXISTS (SELECT 1 FROM runs WHERE run = NEW.run AND ended_at IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'only a run that has ended is pruned'); END;

CREATE TRIGGER runs_final BEFORE UPDATE ON runs WHEN OLD.ended_at IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a run that has ended never changes'); END;

CREATE TRIGGER runs_kept BEFORE DELETE ON runs
WHEN NOT EXISTS (SELECT 1 FROM pruning WHERE run = OLD.run)
BEGIN SELECT RAISE(ABORT, 'runs are deleted by pruning only'); END;

CREATE TRIGGER runs_once BEFORE INSERT ON runs
WHEN EXISTS (SELECT 1 FROM runs WHERE run = NEW.run OR id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'a run is never replaced'); END;

CREATE TRIGGER origins_once BEFORE INSERT ON origins
WHEN EXISTS (SELECT 1 FROM origins WHERE run = NEW.run)
BEGIN SELECT RAISE(ABORT, 'the origin of a run is never replaced'); END;

CREATE TRIGGER origins_fixed BEFORE UPDATE ON origins
BEGIN SELECT RAISE(ABORT, 'the origin of a run never changes'); END;

CREATE TRIGGER origins_kept BEFORE DELETE ON origins
WHEN NOT EXISTS (SELECT 1 FROM pruning WHERE run = OLD.run)
BEGIN SELECT RAISE(ABORT, 'origins are deleted by pruning only'); END;

CREATE TRIGGER transitions_once BEFORE INSERT ON transitions
WHEN EXISTS (SELECT 1 FROM transitions WHERE run = NEW.run AND revision = NEW.revision)
BEGIN SELECT RAISE(ABORT, 'the record is append-only'); END;

CREATE TRIGGER transitions_fixed BEFORE UPDATE ON transitions
BEGIN SELECT RAISE(ABORT, 'the record is append-only'); END;

CREATE TRIGGER transitions_kept BEFORE DELETE ON transitions
WHEN NOT EXISTS (SELECT 1 FROM pruning WHERE run = OLD.run)
BEGIN SELECT RAISE(ABORT, 'the record is append-only'); END;

-- Who may come in: tokens, logins at the web page, and runs that belong to one caller.

-- `sops` and `agents` are what exists for the holder: names and patterns as a JSON array; NULL where there is no limit.
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
    revoked_at TEXT,
    sops       TEXT,
    agents     TEXT
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

-- What became of telling people about a gate: one row for each gate and route, of its latest moment.
CREATE TABLE tellings (
    run      INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    gate     TEXT NOT NULL,
    route    TEXT NOT NULL,
    occasion TEXT NOT NULL,
    at       TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    error    TEXT NOT NULL,
    given_up INTEGER NOT NULL CHECK (given_up IN (0, 1)),
    PRIMARY KEY (run, gate, route)
) STRICT, WITHOUT ROWID;

CREATE INDEX tellings_failed ON tellings (at) WHERE error <> '';

-- One row that is written to find out whether the disk takes anything; it belongs to no run and no record.
CREATE TABLE pulse (
    pulse INTEGER PRIMARY KEY CHECK (pulse = 1),
    beats INTEGER NOT NULL
) STRICT;
