-- Questions that nobody could be asked in mid-call, until somebody answers them.

CREATE TABLE deferred_questions (
    seq       INTEGER PRIMARY KEY,
    principal TEXT    NOT NULL,
    workspace BLOB    NOT NULL,
    number    INTEGER NOT NULL, -- 1 for the principal's first in the workspace
    session   TEXT    NOT NULL,
    asked     INTEGER NOT NULL,
    questions TEXT    NOT NULL, -- a JSON array
    answers   TEXT,             -- a JSON array with a text for each; NULL: they wait
    UNIQUE (principal, workspace, number)
) STRICT;
