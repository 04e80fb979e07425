-- Versions of what each server offers to models and users, and of the way in which it is started. A server is one name in
-- one configuration file. The approved text is served until a newer version is approved.
CREATE TABLE definition_versions (
    configured_in TEXT    NOT NULL, -- the file that names the server; empty: a program does
    server        TEXT    NOT NULL,
    kind          TEXT    NOT NULL CHECK (kind IN ('launch', 'instructions', 'tool', 'prompt', 'resource', 'template')),
    name          TEXT    NOT NULL, -- the item's name at its server; empty for the launch and the instructions
    number        INTEGER NOT NULL,
    definition    TEXT,             -- JSON; NULL: the server did not offer the item any more
    fingerprint   BLOB,             -- SHA-256 of the members that models and users read
    seen_at       INTEGER NOT NULL,
    approved_at   INTEGER,          -- NULL: not approved
    approved_by   TEXT,
    findings      TEXT    NOT NULL, -- sentences of the scan, a JSON array
    hard          INTEGER NOT NULL, -- 1: a finding makes the item unavailable until it is approved
    PRIMARY KEY (configured_in, server, kind, name, number),
    CHECK ((approved_at IS NULL) = (approved_by IS NULL)),
    CHECK ((definition IS NULL) = (fingerprint IS NULL))
) STRICT, WITHOUT ROWID;
