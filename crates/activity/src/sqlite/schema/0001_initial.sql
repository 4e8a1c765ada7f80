-- Words that repeat: servers, tools, clients.
CREATE TABLE names (
    id INTEGER PRIMARY KEY,
    text TEXT NOT NULL UNIQUE
) STRICT;

-- One row per record. The upper half of its identifier is the key, so rows are in order of time.
CREATE TABLE records (
    id INTEGER PRIMARY KEY,
    id_tail INTEGER NOT NULL,
    type INTEGER NOT NULL,
    source INTEGER NOT NULL,
    status INTEGER NOT NULL,
    server INTEGER,
    tool INTEGER,
    client INTEGER,
    intent INTEGER NOT NULL,
    intent_type INTEGER,
    sensitivity INTEGER,
    reason TEXT,
    variant INTEGER,
    tier INTEGER,
    provenance INTEGER,
    warnings TEXT,
    session_id TEXT,
    request_id TEXT,
    request_bytes INTEGER NOT NULL,
    arguments_digest BLOB,
    arguments_form INTEGER,
    error_code TEXT,
    error_message TEXT,
    duration_ms INTEGER,
    response_bytes INTEGER,
    response_digest BLOB,
    response_form INTEGER
) STRICT;

-- Every index ends in the key, so that each filter finds the newest first.
CREATE INDEX records_by_type ON records (type);
CREATE INDEX records_by_source ON records (source);
CREATE INDEX records_by_status ON records (status);
CREATE INDEX records_by_server ON records (server);
CREATE INDEX records_by_tool ON records (tool);
CREATE INDEX records_by_client ON records (client) WHERE client IS NOT NULL;
CREATE INDEX records_by_intent_type ON records (intent_type) WHERE intent_type IS NOT NULL;
CREATE INDEX records_by_sensitivity ON records (sensitivity) WHERE sensitivity IS NOT NULL;
CREATE INDEX records_by_session ON records (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX records_by_request ON records (request_id) WHERE request_id IS NOT NULL;

-- Payloads are apart from the rows that are listed. Coding 0 is text, 1 is zstd; size is that of
-- the text.
CREATE TABLE arguments (
    record INTEGER PRIMARY KEY,
    coding INTEGER NOT NULL,
    size INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;
CREATE TABLE responses (
    record INTEGER PRIMARY KEY,
    coding INTEGER NOT NULL,
    size INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;

-- The hash chain: one row per entry. Only the first entry of a record carries the rest of its
-- identifier, so that a record whose row is gone can still be named.
CREATE TABLE chain (
    sequence INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,
    record INTEGER,
    record_tail INTEGER,
    hash BLOB NOT NULL
) STRICT;
CREATE TABLE checkpoints (
    sequence INTEGER PRIMARY KEY,
    through_sequence INTEGER NOT NULL,
    through_hash BLOB NOT NULL,
    removed_records INTEGER NOT NULL,
    made_at INTEGER NOT NULL
) STRICT;

-- What follows is derived from the above and can lag behind it; progress says how far it is.
CREATE TABLE progress (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    through_sequence INTEGER NOT NULL,
    records INTEGER NOT NULL,
    bytes INTEGER NOT NULL
) STRICT;
INSERT INTO progress VALUES (1, 0, 0, 0);

-- Sums per hour; 0 stands for "none".
CREATE TABLE hourly (
    hour INTEGER NOT NULL,
    server INTEGER NOT NULL,
    tool INTEGER NOT NULL,
    client INTEGER NOT NULL,
    intent_type INTEGER NOT NULL,
    status INTEGER NOT NULL,
    records INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    request_bytes INTEGER NOT NULL,
    response_bytes INTEGER NOT NULL,
    PRIMARY KEY (hour, server, tool, client, intent_type, status)
) STRICT, WITHOUT ROWID;
CREATE TABLE hourly_durations (
    hour INTEGER NOT NULL,
    server INTEGER NOT NULL,
    tool INTEGER NOT NULL,
    bucket INTEGER NOT NULL,
    records INTEGER NOT NULL,
    PRIMARY KEY (hour, server, tool, bucket)
) STRICT, WITHOUT ROWID;

-- Words by which records are found. The text is split before it gets here, so the simplest
-- tokenizer will do, and no positions are needed.
CREATE VIRTUAL TABLE search USING fts5(
    words,
    content = '',
    contentless_delete = 1,
    detail = none,
    tokenize = 'ascii'
);
