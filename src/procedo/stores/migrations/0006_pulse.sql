-- One row that is written to find out whether the disk takes anything; it belongs to no run and no record.

CREATE TABLE pulse (
    pulse INTEGER PRIMARY KEY CHECK (pulse = 1),
    beats INTEGER NOT NULL
) STRICT;
