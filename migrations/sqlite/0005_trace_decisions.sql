-- What was found on each part of a call, as a JSON array; NULL in rows that are older than this step.
ALTER TABLE tool_executions ADD COLUMN trace TEXT;
