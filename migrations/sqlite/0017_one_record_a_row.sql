-- Every row has its call as one canonical JSON object, which is the line of the backlog as well. The other columns are
-- those that lists and retention look at.
ALTER TABLE tool_executions ADD COLUMN record TEXT; -- NULL: a version before this step wrote the row into the columns

-- Rows with a record have NULL in the columns that nothing looks at, and in `kind` where it is a call of a tool. SQLite
-- removes constraints in this way alone (sqlite.org/lang_altertable.html, "simpler and faster procedure"); rebuilding
-- the table would take minutes of a start for a full log.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema
SET sql = replace(replace(replace(replace(replace(replace(replace(sql,
    'called_as        TEXT    NOT NULL', 'called_as        TEXT'),
    'source           TEXT    NOT NULL', 'source           TEXT'),
    'session          TEXT    NOT NULL', 'session          TEXT'),
    'arguments_digest TEXT    NOT NULL', 'arguments_digest TEXT'),
    'accesses         TEXT    NOT NULL', 'accesses         TEXT'),
    'result_bytes     INTEGER NOT NULL', 'result_bytes     INTEGER'),
    'kind TEXT NOT NULL DEFAULT', 'kind TEXT DEFAULT')
WHERE type = 'table' AND name = 'tool_executions';
PRAGMA writable_schema = RESET;
