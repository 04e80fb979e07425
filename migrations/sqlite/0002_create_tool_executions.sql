-- The audit trail: one row a call.
--
-- Rows are appended, so the table is kept in the order of recording (seq); a version 7 UUID as the primary key of the
-- table itself would put these wide rows into the inner pages of the tree.
CREATE TABLE tool_executions (
    seq              INTEGER PRIMARY KEY,
    id               BLOB    NOT NULL UNIQUE CHECK (length(id) = 16), -- a version 7 UUID: sorts by time
    tool             TEXT    NOT NULL,
    called_as        TEXT    NOT NULL,
    source           TEXT    NOT NULL,
    principal        TEXT    NOT NULL,
    session          TEXT    NOT NULL,
    client           TEXT    NOT NULL,
    arguments        TEXT,             -- JSON; NULL: not kept
    arguments_digest TEXT    NOT NULL,
    accesses         TEXT    NOT NULL, -- a JSON array of texts
    verdict          TEXT,             -- NULL: the call did not get as far as a decision
    reason           TEXT,
    approved_by      TEXT,
    started          INTEGER NOT NULL,
    ended            INTEGER,
    outcome          TEXT    NOT NULL,
    error_kind       TEXT,
    detail           TEXT,             -- the failure's message, or who took the call back
    result_bytes     INTEGER NOT NULL,
    result_digest    TEXT,
    instance         BLOB,             -- the process in which the call runs; NULL once it is over
    CHECK ((outcome = 'running') = (instance IS NOT NULL))
) STRICT;

-- For lists, newest first. Most calls succeed and are found soon without an index, so they have none by outcome.
CREATE INDEX tool_executions_by_tool ON tool_executions (tool, id);
CREATE INDEX tool_executions_by_principal ON tool_executions (principal, id);
CREATE INDEX tool_executions_by_outcome ON tool_executions (outcome, id) WHERE outcome <> 'succeeded';

-- For the start: what runs, and in which process. Holds as many entries as calls run.
CREATE INDEX tool_executions_running ON tool_executions (instance) WHERE instance IS NOT NULL;
