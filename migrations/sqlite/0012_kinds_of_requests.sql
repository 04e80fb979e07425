-- What a row is about: a call of a tool, as all rows before this step were, or a request for a resource, a prompt or a
-- completion.
ALTER TABLE tool_executions ADD COLUMN kind TEXT NOT NULL DEFAULT 'tool';
