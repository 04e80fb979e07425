-- Conversations of agents that were handed work: in which session, by which call, and to which agent.

ALTER TABLE conversations ADD COLUMN within_session TEXT;
ALTER TABLE conversations ADD COLUMN within_call BLOB CHECK (length(within_call) = 16);
ALTER TABLE conversations ADD COLUMN agent TEXT;

CREATE INDEX conversations_handed_over ON conversations (principal, workspace, within_session, last)
    WHERE within_session IS NOT NULL;
