-- The database is Toolstead's: "TSTD". A file that bears another number belongs to another program and is left alone.
PRAGMA application_id = 0x54535444;

-- The providers whose tools are known. A tool that is gone is forgotten, so all tools of a catalogue were last seen
-- when the catalogue was, and saving one that has not changed writes one short row.
CREATE TABLE catalogues (
    provider  TEXT    PRIMARY KEY,
    last_seen INTEGER NOT NULL      -- microseconds since 1970-01-01T00:00:00Z, as all times here
) STRICT, WITHOUT ROWID;

-- The last known tools of each provider.
CREATE TABLE tools (
    provider      TEXT    NOT NULL REFERENCES catalogues (provider),
    name          TEXT    NOT NULL,
    definition    TEXT    NOT NULL, -- the JSON object that goes on the wire, its members in their order
    category      TEXT    NOT NULL,
    tags          TEXT    NOT NULL, -- a JSON array of texts
    source        TEXT    NOT NULL CHECK (source IN ('built-in', 'mcp', 'embedded')),
    server        TEXT,             -- the name of the MCP server, or of the provider that embeds it
    upstream_name TEXT,             -- the tool's name at its MCP server
    unavailable   TEXT,             -- why it cannot work here; NULL: it can
    fingerprint   BLOB    NOT NULL, -- SHA-256 of name, description, schemas and annotations
    first_seen    INTEGER NOT NULL,
    PRIMARY KEY (provider, name)
) STRICT;

-- What an operator switched off, known or not.
CREATE TABLE disabled_tools (
    name TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
