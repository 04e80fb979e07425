-- Conversations with agents: what is known of each, and its events, which are only ever added.

CREATE TABLE conversations (
    seq           INTEGER PRIMARY KEY,
    id            BLOB    NOT NULL CHECK (length(id) = 16),
    principal     TEXT    NOT NULL,
    workspace     BLOB    NOT NULL,
    title         TEXT    NOT NULL,
    profile       TEXT,
    created       INTEGER NOT NULL,
    updated       INTEGER NOT NULL,
    events        INTEGER NOT NULL, -- as many as it has
    last          INTEGER NOT NULL, -- the one that was added to last has the highest
    original      BLOB    CHECK (length(original) = 16),
    copied_events INTEGER,
    UNIQUE (principal, id)
) STRICT;
CREATE INDEX conversations_by_last ON conversations (principal, workspace, last);

CREATE TABLE conversation_events (
    seq          INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES conversations (seq) ON DELETE CASCADE,
    number       INTEGER NOT NULL, -- 1 for the first, then without gaps
    at           INTEGER NOT NULL,
    version      INTEGER NOT NULL, -- of the form that the event is written in
    event        TEXT    NOT NULL, -- a JSON object
    UNIQUE (conversation, number)
) STRICT;
