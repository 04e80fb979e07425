-- What belongs to a workspace of its principal: outputs, changes of files, what a session has read. A workspace is the
-- real path of the first root, else of the start folder. What was kept before is of none: no path is empty, so nobody
-- finds it any more, and it goes with time. Numbers of handles go on for the principal, over all workspaces.

-- The same content has a handle in each workspace, so the table is made anew.
CREATE TABLE outputs_of_workspaces (
    seq        INTEGER PRIMARY KEY,
    principal  TEXT    NOT NULL,
    workspace  BLOB    NOT NULL,
    number     INTEGER NOT NULL,
    media_type TEXT    NOT NULL,
    digest     BLOB    NOT NULL REFERENCES contents (digest) DEFERRABLE INITIALLY DEFERRED, -- which is named last
    bytes      INTEGER NOT NULL,
    call       BLOB    NOT NULL CHECK (length(call) = 16), -- the first call that stored it
    stored     INTEGER NOT NULL,                           -- when it was stored last
    UNIQUE (principal, number),
    UNIQUE (principal, workspace, digest, media_type)
) STRICT;

INSERT INTO outputs_of_workspaces
SELECT seq, principal, x'', number, media_type, digest, bytes, call, stored FROM stored_outputs;
DROP TABLE stored_outputs;
ALTER TABLE outputs_of_workspaces RENAME TO stored_outputs;
CREATE INDEX stored_outputs_by_time ON stored_outputs (stored);
CREATE INDEX stored_outputs_by_digest ON stored_outputs (digest);

ALTER TABLE journal_entries ADD COLUMN workspace BLOB NOT NULL DEFAULT x'';
DROP INDEX journal_entries_by_session;
CREATE INDEX journal_entries_by_session ON journal_entries (principal, workspace, session);

-- What sessions have read or written that go on in another process. The one that was seen last has the highest `seq`.
CREATE TABLE seen_files (
    seq       INTEGER PRIMARY KEY,
    principal TEXT    NOT NULL,
    workspace BLOB    NOT NULL,
    session   TEXT    NOT NULL,
    path      BLOB    NOT NULL,
    digest    BLOB    NOT NULL CHECK (length(digest) = 32), -- of its content as it was seen
    UNIQUE (principal, workspace, session, path)
) STRICT;
