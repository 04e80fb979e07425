-- The call that made this one while it ran; NULL: it came from outside.
ALTER TABLE tool_executions ADD COLUMN parent BLOB;

CREATE INDEX tool_executions_by_parent ON tool_executions (parent) WHERE parent IS NOT NULL;
