-- What exists for the holder of a token: names and patterns as a JSON array; NULL where there is no limit.

ALTER TABLE tokens ADD COLUMN sops TEXT;

ALTER TABLE tokens ADD COLUMN agents TEXT;
