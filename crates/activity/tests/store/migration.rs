//! A log that an earlier version left behind is brought up to date and loses nothing.

use activity::sqlite::SqliteStore;
use activity::{Activity, End, Period, Start};
use rusqlite::Connection;

use crate::support::*;

/// Turns a log of the newest layout into what layout 2 would have been. The histogram is of one bucket.
const BACK_TO_LAYOUT_2: &str = "
    CREATE TABLE arguments (record INTEGER PRIMARY KEY, coding INTEGER NOT NULL,
        size INTEGER NOT NULL, body BLOB NOT NULL) STRICT;
    CREATE TABLE responses (record INTEGER PRIMARY KEY, coding INTEGER NOT NULL,
        size INTEGER NOT NULL, body BLOB NOT NULL) STRICT;
    INSERT INTO arguments SELECT record, arguments_unpacked IS NOT NULL,
        coalesce(arguments_unpacked, length(arguments)), arguments
        FROM payloads WHERE arguments IS NOT NULL;
    INSERT INTO responses SELECT record, response_unpacked IS NOT NULL,
        coalesce(response_unpacked, length(response)), response
        FROM payloads WHERE response IS NOT NULL;
    CREATE TABLE hourly_durations (hour INTEGER NOT NULL, server INTEGER NOT NULL,
        tool INTEGER NOT NULL, bucket INTEGER NOT NULL, records INTEGER NOT NULL,
        PRIMARY KEY (hour, server, tool, bucket)) STRICT, WITHOUT ROWID;
    INSERT INTO hourly_durations SELECT hour, server, tool,
        CAST(substr(buckets, 1, instr(buckets, ':') - 1) AS INTEGER),
        CAST(substr(buckets, instr(buckets, ':') + 1) AS INTEGER) FROM hourly_histograms;
    CREATE TABLE entries (sequence INTEGER PRIMARY KEY, kind INTEGER NOT NULL, record INTEGER,
        record_tail INTEGER, hash BLOB NOT NULL) STRICT;
    INSERT INTO entries
        WITH RECURSIVE runs (sequence, entry, rest) AS (
            SELECT first - 1, NULL, entries FROM chain
            UNION ALL SELECT sequence + 1, substr(rest, 1, 49), substr(rest, 50)
            FROM runs WHERE length(rest) > 0),
        parts AS (SELECT sequence, CAST(hex(substr(entry, 1, 1)) AS INTEGER) AS kind,
                         hex(substr(entry, 2, 8)) AS record, hex(substr(entry, 10, 8)) AS tail,
                         substr(entry, 18) AS hash
                  FROM runs WHERE entry IS NOT NULL)
        SELECT parts.sequence, parts.kind, records.id,
               iif(parts.kind = 2, NULL, records.id_tail), parts.hash
        FROM parts JOIN records ON printf('%016X%016X', records.id, records.id_tail)
            = parts.record || parts.tail;
    DROP TABLE chain;
    ALTER TABLE entries RENAME TO chain;
    DROP TABLE payloads; DROP TABLE hourly_histograms; DROP TABLE blocks; DROP TABLE terms;
    DROP INDEX open_records;
    ALTER TABLE progress DROP COLUMN indexed_sequence;
    DROP TABLE folded_hours;
    ALTER TABLE progress DROP COLUMN protected_records;
    ALTER TABLE progress DROP COLUMN protected_bytes;
    ALTER TABLE progress DROP COLUMN is_counted;
    ALTER TABLE progress DROP COLUMN believed_ms;
    ALTER TABLE progress DROP COLUMN doubted_ms;
    CREATE VIRTUAL TABLE search USING fts5(words, content = '', contentless_delete = 1,
        detail = none, tokenize = 'ascii');
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
    PRAGMA user_version = 2;";

#[tokio::test]
async fn layout_2_becomes_the_newest() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    let large = format!("\"{}\"", "packed ".repeat(2_000));
    let start = || Start {
        arguments: Some(&large),
        ..read_call()
    };
    let packed = complete(&activity, start(), success()).await;
    let without = complete(
        &activity,
        read_call(),
        End {
            response: None,
            ..success()
        },
    )
    .await;
    for _ in 0..1_500 {
        complete(&activity, read_call(), success()).await;
    }
    complete(&activity, read_call(), failure()).await;
    let before = activity.usage(Period::Day).await.unwrap();
    let (packed, without) = (
        activity.get(packed).await.unwrap(),
        activity.get(without).await.unwrap(),
    );
    let head = activity.head().await.unwrap().hash;
    activity.close().await.unwrap();
    let database = Connection::open(folder.path().join("data/activity.db")).unwrap();
    database.execute_batch(BACK_TO_LAYOUT_2).unwrap();
    drop(database);

    let opened = SqliteStore::open(&options(folder.path())).unwrap();
    let backup = opened.backup.unwrap();
    assert!(
        backup.to_string_lossy().contains("backup-v2-"),
        "{}",
        backup.display()
    );
    let activity = Activity::new(std::sync::Arc::new(opened.store), settings());
    let verification = activity.verify(Some(head)).await.unwrap();
    assert!(verification.holds(), "{verification:?}");
    for kept in [packed.unwrap(), without.unwrap()] {
        assert_eq!(activity.get(kept.id).await.unwrap(), Some(kept));
    }
    for (pairs, expected) in [
        (&[("q", "packed")][..], 1),
        (&[("status", "error")], 1),
        (&[("server", "files")], 1_503),
        (&[("q", "notes"), ("status", "success")], 1_501),
    ] {
        assert_eq!(list(&activity, pairs).await.total, expected, "{pairs:?}");
    }
    let after = activity.usage(Period::Day).await.unwrap();
    assert_eq!(after.tools, before.tools);
}
