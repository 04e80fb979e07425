-- Contents are files beside the database, `blobs/`, named by their SHA-256; these tables say what they are needed for.
-- A content's file gets its name, and loses it, only under the write lock of the database.
CREATE TABLE contents (
    digest BLOB    PRIMARY KEY CHECK (length(digest) = 32),
    bytes  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The number of each principal's last handle. It outlives the outputs, so that no handle ever names two contents.
CREATE TABLE output_numbers (
    principal TEXT    PRIMARY KEY,
    last      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Results that were too large for a model: `o{number}` of the principal.
CREATE TABLE stored_outputs (
    seq        INTEGER PRIMARY KEY,
    principal  TEXT    NOT NULL,
    number     INTEGER NOT NULL,
    media_type TEXT    NOT NULL,
    digest     BLOB    NOT NULL REFERENCES contents (digest) DEFERRABLE INITIALLY DEFERRED, -- which is named last
    bytes      INTEGER NOT NULL,
    call       BLOB    NOT NULL CHECK (length(call) = 16), -- the first call that stored it
    stored     INTEGER NOT NULL,                           -- when it was stored last
    UNIQUE (principal, number),
    UNIQUE (principal, digest, media_type)
) STRICT;

-- What calls did to files: one entry a call.
CREATE TABLE journal_entries (
    seq       INTEGER PRIMARY KEY,
    call      BLOB    NOT NULL CHECK (length(call) = 16),
    principal TEXT    NOT NULL,
    session   TEXT    NOT NULL,
    tool      TEXT    NOT NULL,
    at        INTEGER NOT NULL,
    reverts   BLOB    CHECK (length(reverts) = 16),        -- the call whose changes this one took back
    UNIQUE (principal, call)
) STRICT;

-- The files of an entry, in the order of the changes. No digest: no file. A content may be spoken of and not be kept.
CREATE TABLE file_changes (
    seq           INTEGER PRIMARY KEY,
    entry         INTEGER NOT NULL REFERENCES journal_entries (seq) ON DELETE CASCADE,
    path          BLOB    NOT NULL,
    before_digest BLOB    CHECK (length(before_digest) = 32),
    before_mode   INTEGER,
    after_digest  BLOB    CHECK (length(after_digest) = 32),
    after_mode    INTEGER,
    CHECK ((before_digest IS NULL) = (before_mode IS NULL) AND (after_digest IS NULL) = (after_mode IS NULL))
) STRICT;

CREATE INDEX file_changes_by_entry ON file_changes (entry);
CREATE INDEX journal_entries_by_session ON journal_entries (principal, session);

-- For retention: what is oldest, and whether anything needs a content.
CREATE INDEX stored_outputs_by_time ON stored_outputs (stored);
CREATE INDEX journal_entries_by_time ON journal_entries (at);
CREATE INDEX stored_outputs_by_digest ON stored_outputs (digest);
CREATE INDEX file_changes_by_before ON file_changes (before_digest) WHERE before_digest IS NOT NULL;
CREATE INDEX file_changes_by_after ON file_changes (after_digest) WHERE after_digest IS NOT NULL;
