//! Whoever forges what retention leaves behind is found out, and a head that retention removed is
//! not called tampering.

use std::path::Path;

use activity::{Activity, BreakReason, Hash, NotedHead, RetentionPolicy, Verification};
use rusqlite::Connection;

use crate::support::*;

/// The bytes of an entry: its kind, the record it is about and its hash.
const ENTRY: usize = 1 + 16 + 32;

fn database(folder: &Path) -> Connection {
    Connection::open(folder.join("data/activity.db")).unwrap()
}

fn change(folder: &Path, sql: &str) {
    let changed = database(folder).execute_batch(sql);
    changed.unwrap_or_else(|error| panic!("{error} in {sql}"));
}

/// Verifies as an auditor would: without opening the log for writing first.
async fn verify(folder: &Path, head: Option<Hash>) -> Verification {
    let activity = open_to_read(folder).0;
    activity.verify(head).await.unwrap()
}

async fn expect_break(folder: &Path, sequence: u64, reason: BreakReason) {
    let found = verify(folder, None).await;
    let broken = found.broken.map(|broken| (broken.sequence, broken.reason));
    assert_eq!(broken, Some((sequence, reason)));
}

/// Ten records, and the head after each of them.
async fn filled(folder: &Path) -> Vec<Hash> {
    let activity = open(folder);
    let heads = fill(&activity, 10).await;
    activity.close().await.unwrap();
    heads
}

async fn fill(activity: &Activity, records: usize) -> Vec<Hash> {
    let mut heads = Vec::new();
    for _ in 0..records {
        complete(activity, read_call(), success()).await;
        heads.push(activity.head().await.unwrap().hash);
    }
    heads
}

async fn keep(activity: &Activity, records: u64) {
    let policy = RetentionPolicy {
        max_count: Some(records),
        ..RetentionPolicy::default()
    };
    activity.prune(policy).await.unwrap();
}

/// A log from which retention removed twice, so that it has two checkpoints: entries 21 and 22.
async fn pruned(folder: &Path) -> Vec<Hash> {
    let mut heads = filled(folder).await;
    let activity = open(folder);
    keep(&activity, 7).await;
    keep(&activity, 5).await;
    let found = activity.verify(None).await.unwrap();
    assert!(found.holds(), "{found:?}");
    assert_eq!(found.checkpoint.unwrap().removed_records, 5);
    heads.push(found.head.hash);
    activity.close().await.unwrap();
    heads
}

/// Removes the first entries of the chain with the records that ended in them, as somebody would
/// who knows the layout, and returns the sequence and the hash of the last of them.
fn remove_beginning(folder: &Path, records: usize) -> (i64, Vec<u8>) {
    let connection = database(folder);
    let mut statement = connection
        .prepare("SELECT first, entries FROM chain ORDER BY first")
        .unwrap();
    let runs = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    let runs: Vec<(i64, Vec<u8>)> = runs.unwrap().map(Result::unwrap).collect();
    let first = runs[0].0;
    let all: Vec<u8> = runs.into_iter().flat_map(|(_, run)| run).collect();
    let entries: Vec<&[u8]> = all.chunks(ENTRY).collect();
    // A record that was answered at once is one entry, any other is two.
    let ends = entries.iter().enumerate();
    let (cut, _) = ends
        .filter(|(_, entry)| [2, 3].contains(&entry[0]))
        .nth(records - 1)
        .unwrap();
    let through = first + i64::try_from(cut).unwrap();
    connection.execute("DELETE FROM chain", []).unwrap();
    connection
        .execute(
            "INSERT INTO chain VALUES (?1, ?2)",
            (through + 1, entries[cut + 1..].concat()),
        )
        .unwrap();
    let oldest = format!("(SELECT id FROM records ORDER BY id LIMIT {records})");
    connection
        .execute_batch(&format!(
            "DELETE FROM payloads WHERE record IN {oldest};
             DELETE FROM records WHERE id IN {oldest};
             UPDATE progress SET records = records - {records};"
        ))
        .unwrap();
    (through, entries[cut][17..].to_vec())
}

fn forge(folder: &Path, sequence: i64, through: (i64, Vec<u8>), removed: i64) {
    database(folder)
        .execute(
            "INSERT OR REPLACE INTO checkpoints VALUES (?1, ?2, ?3, ?4, 1700000000000)",
            (sequence, through.0, through.1, removed),
        )
        .unwrap();
}

#[tokio::test]
async fn a_checkpoint_that_the_chain_does_not_know_hides_nothing() {
    // Before the rest, in its midst, at its end, beyond it, and where numbers turn negative.
    for sequence in [0, 1, 4, 10, 20, 21, 1_000_000, i64::MAX, -1, i64::MIN] {
        let folder = tempfile::tempdir().unwrap();
        let heads = filled(folder.path()).await;
        let through = remove_beginning(folder.path(), 3);
        forge(folder.path(), sequence, through, 3);
        let reason = BreakReason::CheckpointNotInChain;
        expect_break(folder.path(), sequence.cast_unsigned(), reason).await;
        let found = verify(folder.path(), heads.last().copied()).await;
        assert!(!found.holds());
        assert_eq!(found.checkpoint, None, "it is not worth repeating");
    }
}

#[tokio::test]
async fn a_checkpoint_in_the_place_of_a_real_one_hides_nothing() {
    for sequence in [21, 22] {
        let folder = tempfile::tempdir().unwrap();
        pruned(folder.path()).await;
        let through = remove_beginning(folder.path(), 1);
        forge(folder.path(), sequence, through, 6);
        let found = verify(folder.path(), None).await;
        assert!(found.broken.is_some(), "{sequence} went unnoticed");
    }
}

#[tokio::test]
async fn another_checkpoint_beside_the_real_ones_is_noticed() {
    for sequence in [1, 12, 19, 23, 400] {
        let folder = tempfile::tempdir().unwrap();
        pruned(folder.path()).await;
        change(
            folder.path(),
            &format!(
                "INSERT INTO checkpoints SELECT {sequence}, through_sequence, through_hash,
                     removed_records, made_at FROM checkpoints WHERE sequence = 22"
            ),
        );
        let reason = BreakReason::CheckpointNotInChain;
        expect_break(folder.path(), sequence, reason).await;
    }
}

#[tokio::test]
async fn a_change_to_any_column_of_a_checkpoint_is_noticed() {
    let table = [
        ("removed_records = 7", BreakReason::CheckpointChanged),
        ("removed_records = 0", BreakReason::CheckpointChanged),
        ("removed_records = -1", BreakReason::CheckpointChanged),
        ("made_at = 1", BreakReason::CheckpointChanged),
        (
            "made_at = 9223372036854775807",
            BreakReason::CheckpointUnreadable,
        ),
        ("through_hash = x'00'", BreakReason::CheckpointUnreadable),
        ("through_hash = x''", BreakReason::CheckpointUnreadable),
        (
            "through_hash = zeroblob(33)",
            BreakReason::CheckpointUnreadable,
        ),
    ];
    for (column, reason) in table {
        for sequence in [21, 22] {
            let folder = tempfile::tempdir().unwrap();
            pruned(folder.path()).await;
            let sql = format!("UPDATE checkpoints SET {column} WHERE sequence = {sequence}");
            change(folder.path(), &sql);
            expect_break(folder.path(), sequence, reason).await;
        }
    }
    // With these the chain does not even begin where the newest one says.
    for column in [
        "through_hash = zeroblob(32)",
        "through_sequence = 1",
        "through_sequence = through_sequence + 1",
        "sequence = 21",
        "sequence = 23",
    ] {
        let folder = tempfile::tempdir().unwrap();
        pruned(folder.path()).await;
        let sql = format!(
            "DELETE FROM checkpoints WHERE sequence = 21;
             UPDATE checkpoints SET {column} WHERE sequence = 22"
        );
        change(folder.path(), &sql);
        let found = verify(folder.path(), None).await;
        assert!(found.broken.is_some(), "{column} went unnoticed");
    }
}

#[tokio::test]
async fn an_entry_without_its_checkpoint_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    pruned(folder.path()).await;
    change(folder.path(), "DELETE FROM checkpoints WHERE sequence = 21");
    expect_break(folder.path(), 21, BreakReason::CheckpointMissing).await;
    // Without the newest, nothing says where the chain begins.
    change(folder.path(), "DELETE FROM checkpoints");
    expect_break(folder.path(), 11, BreakReason::EntriesMissing).await;
}

#[tokio::test]
async fn a_head_that_retention_removed_cannot_be_confirmed() {
    let folder = tempfile::tempdir().unwrap();
    let heads = pruned(folder.path()).await;
    let noted = async |head| {
        let found = verify(folder.path(), Some(head)).await;
        assert_eq!(found.broken, None);
        (found.noted_head.unwrap(), found.holds())
    };
    // Both checkpoints say which entry was the last to go, so these are known to have been there.
    assert_eq!(
        noted(heads[2]).await,
        (NotedHead::Behind { entries: 16 }, true)
    );
    assert_eq!(
        noted(heads[4]).await,
        (NotedHead::Behind { entries: 12 }, true)
    );
    for removed in [0, 1, 3] {
        assert_eq!(noted(heads[removed]).await, (NotedHead::Unconfirmed, false));
    }
    assert_eq!(
        noted(heads[5]).await,
        (NotedHead::Behind { entries: 10 }, true)
    );
    assert_eq!(noted(heads[10]).await, (NotedHead::Current, true));
    assert_eq!(
        noted(Hash::GENESIS).await,
        (NotedHead::Behind { entries: 22 }, true)
    );
}

#[tokio::test]
async fn a_head_that_was_never_there_is_missing_only_if_all_was_seen() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path()).await;
    let never = Some(Hash::of(b"never"));
    let noted = verify(folder.path(), never).await.noted_head;
    assert_eq!(noted, Some(NotedHead::Missing));
    change(folder.path(), "DELETE FROM names");
    let found = verify(folder.path(), never).await;
    assert!(found.broken.is_some());
    assert_eq!(found.noted_head, Some(NotedHead::Unconfirmed));
}

/// Sums outlive the records that retention removes, so they may tell more, but never less.
#[tokio::test]
async fn sums_of_removed_records_are_no_disagreement() {
    let folder = tempfile::tempdir().unwrap();
    pruned(folder.path()).await;
    change(
        folder.path(),
        "UPDATE hourly SET records = 4, duration_ms = duration_ms - 1",
    );
    let found = verify(folder.path(), None).await;
    assert_eq!((found.sums_agree, found.holds()), (Some(false), false));
}
