-- A provider is who configures it, its name, and how it is started: two projects may have a server of one name each. Of the
-- old rows nobody knows whose they were. They are lists that the servers give again.
DROP TABLE tools;
DROP TABLE catalogues;

-- The providers whose tools are known. A tool that is gone is forgotten, so all tools of a catalogue were last seen
-- when the catalogue was, and saving one that has not changed writes one short row.
CREATE TABLE catalogues (
    id            INTEGER PRIMARY KEY,
    configured_in TEXT    NOT NULL, -- the place that names the provider; empty: a program does
    provider      TEXT    NOT NULL,
    start         TEXT    NOT NULL, -- a digest of how it is started
    last_seen     INTEGER NOT NULL,
    UNIQUE (configured_in, provider, start)
) STRICT;

-- The last known tools of each provider.
CREATE TABLE tools (
    catalogue     INTEGER NOT NULL REFERENCES catalogues (id) ON DELETE CASCADE,
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
    changed       TEXT,             -- the parts of the definition that changed last, a JSON array; NULL: none since first_seen
    changed_at    INTEGER,
    PRIMARY KEY (catalogue, name),
    CHECK ((changed IS NULL) = (changed_at IS NULL))
) STRICT;
