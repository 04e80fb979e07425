-- The bytes of all contents, in one row: retention asks after every few outputs that it forgets, under the write lock.
CREATE TABLE contents_total (
    only  INTEGER PRIMARY KEY CHECK (only = 1),
    bytes INTEGER NOT NULL
) STRICT;

INSERT INTO contents_total SELECT 1, coalesce(sum(bytes), 0) FROM contents;

CREATE TRIGGER contents_total_grows AFTER INSERT ON contents
BEGIN
    UPDATE contents_total SET bytes = bytes + new.bytes;
END;

CREATE TRIGGER contents_total_shrinks AFTER DELETE ON contents
BEGIN
    UPDATE contents_total SET bytes = bytes - old.bytes;
END;
