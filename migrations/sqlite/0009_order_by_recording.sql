-- The structured content of the result, redacted and capped, as JSON; NULL: there was none, or it is not kept.
ALTER TABLE tool_executions ADD COLUMN metadata TEXT;

-- Lists are in the order of recording, which no clock changes: every index holds seq behind its own columns anyway.
DROP INDEX tool_executions_by_tool;
DROP INDEX tool_executions_by_principal;
DROP INDEX tool_executions_by_outcome;
CREATE INDEX tool_executions_by_tool ON tool_executions (tool);
CREATE INDEX tool_executions_by_principal ON tool_executions (principal);
CREATE INDEX tool_executions_by_outcome ON tool_executions (outcome) WHERE outcome <> 'succeeded';

-- The clock as it was seen last, so that retention does not take a clock that was set for time that has passed.
CREATE TABLE clock (
    only    INTEGER PRIMARY KEY CHECK (only = 1),
    seen    INTEGER,                    -- NULL: not yet
    doubted INTEGER NOT NULL DEFAULT 0, -- so many microseconds of a jump forward are not believed yet
    jumped  INTEGER                     -- where the clock stood after that jump
) STRICT;

INSERT INTO clock (only, seen) SELECT 1, (SELECT started FROM tool_executions ORDER BY seq DESC LIMIT 1);

-- Empty. Something is written here and deleted at once to find out whether rows could be written.
CREATE TABLE trials (content BLOB) STRICT;
