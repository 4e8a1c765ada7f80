//! Whatever is changed behind the log's back, verifying names the first record that is wrong.

use std::path::Path;

use activity::{
    Activity, ActivityId, BreakReason, Durability, Hash, NotedHead, RetentionPolicy, Verification,
};
use rusqlite::Connection;

use crate::support::*;

/// Five finished records, then one that is open.
async fn filled(folder: &Path) -> (Vec<ActivityId>, Hash) {
    let activity = open(folder);
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(complete(&activity, read_call(), success()).await);
    }
    let running = activity
        .begin(read_call(), Durability::Written)
        .await
        .unwrap();
    ids.push(running.id());
    std::mem::forget(running);
    let head = activity.head().await.unwrap().hash;
    activity.close().await.unwrap();
    (ids, head)
}

fn change(folder: &Path, sql: &str) {
    let connection = Connection::open(folder.join("data/activity.db")).unwrap();
    connection.execute_batch(sql).unwrap();
}

/// Verifies as an auditor would: without opening the log for writing first.
async fn verify(folder: &Path, head: Option<Hash>) -> Verification {
    let store = activity::sqlite::SqliteStore::open_read_only(&folder.join("data")).unwrap();
    let activity = Activity::new(std::sync::Arc::new(store), settings());
    activity.verify(head).await.unwrap()
}

/// The key of the record at this place, as SQL.
fn key(place: usize) -> String {
    format!("(SELECT id FROM records ORDER BY id LIMIT 1 OFFSET {place})")
}

#[tokio::test]
async fn an_untouched_log_holds() {
    let folder = tempfile::tempdir().unwrap();
    let (_, head) = filled(folder.path()).await;
    let verification = verify(folder.path(), Some(head)).await;
    assert!(verification.holds());
    assert_eq!((verification.records, verification.entries), (6, 11));
    assert_eq!(verification.noted_head, Some(NotedHead::Current));
}

#[tokio::test]
async fn a_change_to_any_column_names_the_record() {
    let third = key(2);
    let columns = [
        "id_tail = id_tail + 1",
        "type = 6",
        "source = 2",
        "status = 3",
        "status = 99",
        "server = server + 1",
        "server = NULL",
        "tool = NULL",
        "client = NULL",
        "intent = 0",
        "intent_type = 3",
        "sensitivity = NULL",
        "reason = 'another'",
        "variant = 2",
        "tier = 2",
        "provenance = 1",
        "facts = NULL",
        "facts = 1",
        "facts = -1",
        "warnings = '[]'",
        "warnings = 'no json'",
        "session_id = 'x'",
        "request_id = NULL",
        "request_bytes = 121",
        "arguments_digest = zeroblob(32)",
        "arguments_digest = NULL",
        "arguments_digest = x'00'",
        "arguments_form = 0",
        "arguments_form = 3",
        "arguments_form = 77",
        "error_code = ''",
        "error_message = 'x'",
        "duration_ms = 13",
        "duration_ms = NULL",
        "response_bytes = 45",
        "response_digest = NULL",
        "response_form = 3",
    ];
    for column in columns {
        let folder = tempfile::tempdir().unwrap();
        let (ids, _) = filled(folder.path()).await;
        change(
            folder.path(),
            &format!("UPDATE records SET {column} WHERE id = {third}"),
        );
        let broken = verify(folder.path(), None).await.broken;
        let broken = broken.unwrap_or_else(|| panic!("{column} went unnoticed"));
        assert_eq!(broken.id, Some(ids[2]), "{column}: {broken:?}");
    }
}

/// Makes the change in a fresh log and expects this record to be named for this reason.
async fn expect_break(sql: &str, place: Option<usize>, reason: BreakReason) {
    let folder = tempfile::tempdir().unwrap();
    let (ids, _) = filled(folder.path()).await;
    change(folder.path(), sql);
    let broken = verify(folder.path(), None).await.broken;
    let broken = broken.unwrap_or_else(|| panic!("{sql} went unnoticed"));
    assert_eq!(broken.reason, reason, "{sql}");
    if let Some(place) = place {
        assert_eq!(broken.id, Some(ids[place]), "{sql}");
    }
}

#[tokio::test]
async fn a_change_to_a_payload_names_the_record() {
    let (third, last) = (key(2), key(5));
    for (column, reason) in [
        ("arguments", BreakReason::ArgumentsChanged),
        ("response", BreakReason::ResponseChanged),
    ] {
        for change in [" = x'7b7d'", " = NULL", "_unpacked = 3", "_unpacked = -1"] {
            let sql = format!("UPDATE payloads SET {column}{change} WHERE record = {third}");
            expect_break(&sql, Some(2), reason).await;
        }
    }
    let sql = format!("DELETE FROM payloads WHERE record = {third}");
    expect_break(&sql, Some(2), BreakReason::ArgumentsChanged).await;
    // A response for a record that has none, because it has not ended.
    let sql = format!("UPDATE payloads SET response = x'7b7d' WHERE record = {last}");
    expect_break(&sql, Some(5), BreakReason::ResponseChanged).await;
}

#[tokio::test]
async fn a_change_to_the_chain_names_the_record() {
    let (third, fourth) = (key(2), key(3));
    let start = format!("(SELECT min(sequence) FROM chain WHERE record = {third})");
    for column in [
        "hash = zeroblob(32)",
        "hash = x'00'",
        "kind = 2",
        "kind = 3",
        "kind = 9",
    ] {
        let sql = format!("UPDATE chain SET {column} WHERE sequence = {start}");
        expect_break(&sql, Some(2), BreakReason::HashMismatch).await;
    }
    // Entries that name another record name it in the report, too.
    for column in [format!("record = {fourth}"), "record_tail = 1".to_owned()] {
        let sql = format!("UPDATE chain SET {column} WHERE sequence = {start}");
        expect_break(&sql, None, BreakReason::HashMismatch).await;
    }
    let sql = format!("DELETE FROM chain WHERE sequence = {start}");
    expect_break(&sql, Some(2), BreakReason::EntriesMissing).await;
    let sql = format!("DELETE FROM chain WHERE record = {third}");
    expect_break(&sql, Some(3), BreakReason::EntriesMissing).await;
}

#[tokio::test]
async fn a_removed_row_or_a_changed_name_names_the_record() {
    let sql = format!("DELETE FROM records WHERE id = {}", key(2));
    expect_break(&sql, Some(2), BreakReason::RecordMissing).await;
    let sql = "UPDATE names SET text = 'other' WHERE text = 'files'";
    expect_break(sql, Some(0), BreakReason::HashMismatch).await;
    expect_break("DELETE FROM names", Some(0), BreakReason::HashMismatch).await;
    let sql = "UPDATE records SET status = 2, duration_ms = 1, response_bytes = 0 WHERE status = 1";
    expect_break(sql, Some(5), BreakReason::EndedOutsideChain).await;
}

#[tokio::test]
async fn swapped_rows_are_noticed() {
    let (second, fourth) = (key(1), key(3));
    for column in ["record", "arguments", "response"] {
        let folder = tempfile::tempdir().unwrap();
        let activity = open(folder.path());
        let mut ids = Vec::new();
        for number in 0..5 {
            let (arguments, response) = (format!("{{\"a\":{number}}}"), format!("[{number}]"));
            let start = activity::Start {
                arguments: Some(&arguments),
                ..read_call()
            };
            let end = activity::End {
                response: Some(&response),
                ..success()
            };
            ids.push(complete(&activity, start, end).await);
        }
        activity.close().await.unwrap();
        let swap = if column == "record" {
            format!(
                "UPDATE payloads SET record = -1 WHERE record = {second};
                 UPDATE payloads SET record = {second} WHERE record = {fourth};
                 UPDATE payloads SET record = {fourth} WHERE record = -1;"
            )
        } else {
            format!(
                "CREATE TEMP TABLE pair AS SELECT * FROM payloads
                     WHERE record IN ({second}, {fourth});
                 UPDATE payloads SET {column} =
                     (SELECT {column} FROM pair WHERE pair.record <> payloads.record)
                     WHERE record IN (SELECT record FROM pair);"
            )
        };
        change(folder.path(), &swap);
        let broken = verify(folder.path(), None).await.broken.unwrap();
        assert_eq!(broken.id, Some(ids[1]), "{column}");
    }
    let folder = tempfile::tempdir().unwrap();
    let (ids, _) = filled(folder.path()).await;
    change(
        folder.path(),
        "UPDATE chain SET sequence = -1 WHERE sequence = 4;
         UPDATE chain SET sequence = 4 WHERE sequence = 7;
         UPDATE chain SET sequence = 7 WHERE sequence = -1;",
    );
    let broken = verify(folder.path(), None).await.broken.unwrap();
    assert_eq!((broken.sequence, broken.id), (4, Some(ids[3])));
}

#[tokio::test]
async fn a_record_that_was_slipped_in_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path()).await;
    change(
        folder.path(),
        "CREATE TEMP TABLE copy AS SELECT * FROM records ORDER BY id LIMIT 1;
         UPDATE copy SET id = id - 1;
         INSERT INTO records SELECT * FROM copy;",
    );
    let broken = verify(folder.path(), None).await.broken.unwrap();
    assert_eq!(broken.reason, BreakReason::NotInChain);
    assert!(broken.id.is_some());
}

#[tokio::test]
async fn a_log_that_was_cut_short_lacks_the_noted_head() {
    let folder = tempfile::tempdir().unwrap();
    let (_, head) = filled(folder.path()).await;
    change(
        folder.path(),
        "DELETE FROM records WHERE id = (SELECT max(id) FROM records);
         DELETE FROM payloads WHERE record = (SELECT max(record) FROM payloads);
         DELETE FROM chain WHERE sequence = (SELECT max(sequence) FROM chain);",
    );
    // The rest is a perfectly good log; only the head that was noted elsewhere tells.
    assert!(verify(folder.path(), None).await.holds());
    let verification = verify(folder.path(), Some(head)).await;
    assert_eq!(verification.noted_head, Some(NotedHead::Missing));
    assert!(!verification.holds());
}

#[tokio::test]
async fn a_cut_into_what_was_already_summed_up_is_noticed_without_a_head() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path()).await;
    change(
        folder.path(),
        "DELETE FROM chain WHERE sequence > 8;
         DELETE FROM records WHERE id NOT IN (SELECT record FROM chain);",
    );
    let broken = verify(folder.path(), None).await.broken.unwrap();
    assert_eq!(broken.reason, BreakReason::TailMissing);
}

#[tokio::test]
async fn a_head_noted_earlier_is_still_found() {
    let folder = tempfile::tempdir().unwrap();
    let (_, head) = filled(folder.path()).await;
    let activity = open(folder.path());
    complete(&activity, read_call(), success()).await;
    let verification = activity.verify(Some(head)).await.unwrap();
    // The open record was interrupted at the start, and one more came.
    assert_eq!(
        verification.noted_head,
        Some(NotedHead::Behind { entries: 3 })
    );
    assert!(verification.holds());
}

#[tokio::test]
async fn a_changed_checkpoint_is_noticed() {
    for column in [
        "removed_records = 7",
        "made_at = 1",
        "through_hash = zeroblob(32)",
        "through_sequence = 1",
    ] {
        let folder = tempfile::tempdir().unwrap();
        filled(folder.path()).await;
        let activity = open(folder.path());
        let policy = RetentionPolicy {
            max_count: Some(3),
            ..RetentionPolicy::default()
        };
        assert_eq!(activity.prune(policy).await.unwrap().records, 3);
        assert!(activity.verify(None).await.unwrap().holds());
        activity.close().await.unwrap();
        change(folder.path(), &format!("UPDATE checkpoints SET {column}"));
        assert!(
            verify(folder.path(), None).await.broken.is_some(),
            "{column} went unnoticed"
        );
    }
}

#[tokio::test]
async fn deleting_the_beginning_without_a_checkpoint_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path()).await;
    change(
        folder.path(),
        "DELETE FROM chain WHERE sequence <= 4;
         DELETE FROM records WHERE id NOT IN (SELECT record FROM chain);",
    );
    let broken = verify(folder.path(), None).await.broken.unwrap();
    assert_eq!(
        (broken.sequence, broken.reason),
        (5, BreakReason::EntriesMissing)
    );
}
