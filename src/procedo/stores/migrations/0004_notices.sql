-- Notices about gates.
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
