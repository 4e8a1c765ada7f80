//! Whatever is changed behind the log's back, verifying names the first record that is wrong.

use std::path::Path;

use activity::{ActivityId, BreakReason, Durability, Hash, NotedHead, Verification};
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

/// The bytes of an entry: its kind, the record it is about and its hash.
const ENTRY: usize = 1 + 16 + 32;

/// The entries of the chain, each with its sequence.
type Entries = Vec<(u64, Vec<u8>)>;

fn change_chain(folder: &Path, change: impl FnOnce(&mut Entries)) {
    let database = Connection::open(folder.join("data/activity.db")).unwrap();
    let mut entries = Vec::new();
    let mut statement = database
        .prepare("SELECT first, entries FROM chain ORDER BY first")
        .unwrap();
    let mut rows = statement.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let (first, run): (i64, Vec<u8>) = (row.get(0).unwrap(), row.get(1).unwrap());
        let run = run.chunks(ENTRY).map(<[u8]>::to_vec);
        entries.extend((first.cast_unsigned()..).zip(run));
    }
    change(&mut entries);
    database.execute("DELETE FROM chain", []).unwrap();
    for (sequence, entry) in entries {
        database
            .execute(
                "INSERT INTO chain VALUES (?1, ?2)",
                rusqlite::params![sequence.cast_signed(), entry],
            )
            .unwrap();
    }
}

fn is_about(id: ActivityId) -> impl Fn(&(u64, Vec<u8>)) -> bool {
    let text = id.to_string();
    let bytes = ulid(&text);
    move |(_, entry)| entry[1..17] == bytes
}

/// Sixteen bytes of the 26 digits.
fn ulid(text: &str) -> [u8; 16] {
    let digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let digit = |letter: char| digits.find(letter).unwrap() as u128;
    let number = text
        .chars()
        .fold(0_u128, |number, letter| number << 5 | digit(letter));
    number.to_be_bytes()
}

/// Verifies as an auditor would: without opening the log for writing first.
async fn verify(folder: &Path, head: Option<Hash>) -> Verification {
    let activity = open_to_read(folder).0;
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

/// Changes the chain of a fresh log, given the place of the third record's start in it, and
/// expects this record to be named for this reason.
async fn expect_chain_break(
    change: impl FnOnce(&mut Entries, usize),
    place: Option<usize>,
    reason: BreakReason,
) {
    let folder = tempfile::tempdir().unwrap();
    let (ids, _) = filled(folder.path()).await;
    change_chain(folder.path(), |entries| {
        let start = entries.iter().position(is_about(ids[2])).unwrap();
        change(entries, start);
    });
    let broken = verify(folder.path(), None).await.broken.unwrap();
    assert_eq!(broken.reason, reason, "{broken:?}");
    if let Some(place) = place {
        assert_eq!(broken.id, Some(ids[place]), "{broken:?}");
    }
}

#[tokio::test]
async fn a_change_to_the_chain_names_the_record() {
    type Change = fn(&mut Vec<u8>);
    let table: &[(Change, Option<usize>)] = &[
        (|entry| entry[17..].fill(0), Some(2)),
        (|entry| entry[20] ^= 1, Some(2)),
        (|entry| entry[0] = 2, Some(2)),
        (|entry| entry[0] = 3, Some(2)),
        (|entry| entry[0] = 9, Some(2)),
        // Entries that name another record name it in the report, too.
        (|entry| entry[16] ^= 1, None),
        (|entry| entry.truncate(30), None),
    ];
    for (change, place) in table {
        let change = |entries: &mut Entries, start: usize| change(&mut entries[start].1);
        expect_chain_break(change, *place, BreakReason::HashMismatch).await;
    }
    let another = |entries: &mut Entries, start: usize| {
        let next: Vec<u8> = entries[start + 2].1[1..17].to_vec();
        entries[start].1[1..17].copy_from_slice(&next);
    };
    expect_chain_break(another, None, BreakReason::HashMismatch).await;
    let missing = BreakReason::EntriesMissing;
    let one = |entries: &mut Entries, start: usize| drop(entries.remove(start));
    expect_chain_break(one, Some(2), missing).await;
    let both = |entries: &mut Entries, start: usize| drop(entries.drain(start..start + 2));
    expect_chain_break(both, Some(3), missing).await;
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
    change_chain(folder.path(), |entries| {
        let fourth = entries[3].1.clone();
        entries[3].1 = std::mem::replace(&mut entries[6].1, fourth);
    });
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
async fn a_log_whose_last_records_were_removed_opens_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (ids, _) = filled(folder.path()).await;
    let sql = format!("DELETE FROM records WHERE id >= {}", key(3));
    change(folder.path(), &sql);
    let activity = open(folder.path());
    assert_eq!(list(&activity, &[("server", "files")]).await.total, 3);
    let broken = activity.verify(None).await.unwrap().broken.unwrap();
    assert_eq!(broken.id, Some(ids[3]));
    assert_eq!(broken.reason, BreakReason::RecordMissing);
    complete(&activity, read_call(), success()).await;
    assert_eq!(list(&activity, &[("server", "files")]).await.total, 4);
}

#[tokio::test]
async fn a_log_that_was_cut_short_lacks_the_noted_head() {
    let folder = tempfile::tempdir().unwrap();
    let (_, head) = filled(folder.path()).await;
    change(
        folder.path(),
        "DELETE FROM records WHERE id = (SELECT max(id) FROM records);
         DELETE FROM payloads WHERE record = (SELECT max(record) FROM payloads);",
    );
    change_chain(folder.path(), |entries| drop(entries.pop()));
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
    change_chain(folder.path(), |entries| entries.truncate(8));
    let sql = format!("DELETE FROM records WHERE id >= {}", key(4));
    change(folder.path(), &sql);
    let broken = verify(folder.path(), None).await.broken.unwrap();
    assert_eq!(broken.reason, BreakReason::TailMissing);
}

#[tokio::test]
async fn sums_that_were_changed_do_not_agree_with_the_records() {
    let hour = "(SELECT hour FROM hourly LIMIT 1)";
    for sql in [
        "UPDATE hourly SET records = 99".to_owned(),
        "UPDATE hourly SET duration_ms = duration_ms - 1".to_owned(),
        "UPDATE hourly SET request_bytes = 0".to_owned(),
        "UPDATE hourly SET response_bytes = response_bytes + 1".to_owned(),
        "UPDATE hourly SET server = tool".to_owned(),
        "UPDATE hourly SET status = 4".to_owned(),
        "UPDATE hourly SET hour = hour - 1".to_owned(),
        "DELETE FROM hourly".to_owned(),
        format!("INSERT INTO hourly VALUES ({hour}, 0, 0, 0, 0, 2, 1, 1, 1, 1)"),
        "UPDATE progress SET records = records + 1".to_owned(),
    ] {
        let folder = tempfile::tempdir().unwrap();
        filled(folder.path()).await;
        let found = verify(folder.path(), None).await;
        assert_eq!((found.holds(), found.sums_agree), (true, Some(true)));
        change(folder.path(), &sql);
        let found = verify(folder.path(), None).await;
        assert_eq!(found.sums_agree, Some(false), "{sql} went unnoticed");
        assert!(!found.holds() && found.broken.is_none());
    }
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
async fn deleting_the_beginning_without_a_checkpoint_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path()).await;
    change_chain(folder.path(), |entries| drop(entries.drain(..4)));
    let sql = format!("DELETE FROM records WHERE id < {}", key(2));
    change(folder.path(), &sql);
    let broken = verify(folder.path(), None).await.broken.unwrap();
    assert_eq!(
        (broken.sequence, broken.reason),
        (5, BreakReason::EntriesMissing)
    );
}
