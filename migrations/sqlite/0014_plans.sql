-- The plan of each session. The one that was written last has the highest `seq`.

CREATE TABLE plans (
    seq       INTEGER PRIMARY KEY,
    principal TEXT NOT NULL,
    workspace BLOB NOT NULL,
    session   TEXT NOT NULL,
    todos     TEXT NOT NULL, -- a JSON array
    UNIQUE (principal, workspace, session)
) STRICT;
