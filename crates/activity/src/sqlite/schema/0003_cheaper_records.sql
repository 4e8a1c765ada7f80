-- Filters and words are looked up in blocks of records instead of one tree each.
DROP INDEX records_by_type;
DROP INDEX records_by_source;
DROP INDEX records_by_status;
DROP INDEX records_by_server;
DROP INDEX records_by_tool;
DROP INDEX records_by_client;
DROP INDEX records_by_intent_type;
DROP INDEX records_by_sensitivity;
DROP INDEX records_by_session;
DROP INDEX records_by_request;
DROP TABLE search;

-- Records that have not ended are in no block yet.
CREATE INDEX open_records ON records (id) WHERE status = 1;

-- Records in the order in which they ended. Positions that are gone have been removed since.
CREATE TABLE blocks (
    id INTEGER PRIMARY KEY,
    oldest INTEGER NOT NULL,
    newest INTEGER NOT NULL,
    size INTEGER NOT NULL,
    gone BLOB
) STRICT;
CREATE INDEX blocks_by_newest ON blocks (newest);
CREATE INDEX blocks_by_oldest ON blocks (oldest);

-- What the records of a block are found by. The key is the block, then the bucket of the terms;
-- behind the last bucket is the list of the records, which few questions need.
CREATE TABLE terms (
    id INTEGER PRIMARY KEY,
    postings BLOB NOT NULL
) STRICT;

-- Ends up to here are in blocks.
ALTER TABLE progress ADD COLUMN indexed_sequence INTEGER NOT NULL DEFAULT 0;

-- How long calls took, as one row per tool and hour instead of one per bucket: `bucket:calls`,
-- separated by spaces.
CREATE TABLE hourly_histograms (
    hour INTEGER NOT NULL,
    server INTEGER NOT NULL,
    tool INTEGER NOT NULL,
    buckets TEXT NOT NULL,
    PRIMARY KEY (hour, server, tool)
) STRICT, WITHOUT ROWID;
INSERT INTO hourly_histograms
    SELECT hour, server, tool, group_concat(bucket || ':' || records, ' ')
    FROM hourly_durations GROUP BY hour, server, tool;
DROP TABLE hourly_durations;

-- Both payloads of a record in one row, apart from the rows that are listed. A payload that was
-- packed with zstd has the size of its text beside it.
CREATE TABLE payloads (
    record INTEGER PRIMARY KEY,
    arguments_unpacked INTEGER,
    response_unpacked INTEGER,
    arguments BLOB,
    response BLOB
) STRICT;
INSERT INTO payloads
    SELECT coalesce(arguments.record, responses.record),
           iif(arguments.coding = 1, arguments.size, NULL),
           iif(responses.coding = 1, responses.size, NULL),
           arguments.body, responses.body
    FROM arguments FULL JOIN responses ON responses.record = arguments.record
    ORDER BY 1;
DROP TABLE arguments;
DROP TABLE responses;

-- The hash chain: one row for what a batch added to it, with the sequence of its first entry. An
-- entry is its kind, the record it is about and its hash, in 1, 16 and 32 bytes.
ALTER TABLE chain RENAME TO entries;
CREATE TABLE chain (
    first INTEGER PRIMARY KEY,
    entries BLOB NOT NULL
) STRICT;
INSERT INTO chain
    SELECT entries.sequence,
           unhex(printf('%02X%016X%016X', entries.kind, coalesce(entries.record, 0),
                        coalesce(entries.record_tail, records.id_tail, 0)) || hex(entries.hash))
    FROM entries LEFT JOIN records ON records.id = entries.record
    ORDER BY entries.sequence;
DROP TABLE entries;
