-- What programs and hooks want a call to be found by, as a JSON object of texts; NULL: nothing.
ALTER TABLE tool_executions ADD COLUMN labels TEXT;
