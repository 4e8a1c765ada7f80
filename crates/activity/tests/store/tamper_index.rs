//! Lists, exports and simulations are answered from what is derived from records. Whatever is changed
//! there, verifying says so, and a start puts it right.

use std::path::Path;

use activity::sqlite::SqliteStore;
use activity::{Activity, BreakReason, ExportFormat, ExportRequest, Filter, Verification};
use policy::OperationType;
use rusqlite::Connection;

use crate::support::*;

const FILTERS: [(&[(&str, &str)], u64); 5] = [
    (&[("tool", "write_file")], 300),
    (&[("intent_type", "write")], 300),
    (&[("status", "error")], 550),
    (&[("q", "notes")], 1_100),
    (&[("server", "files"), ("q", "disk")], 550),
];

/// A block, and some that are in none.
async fn filled(folder: &Path) {
    let activity = open(folder);
    for number in 0..1_100 {
        let start = if number < 300 {
            call("files", "write_file", OperationType::Write)
        } else {
            read_call()
        };
        let end = if number % 2 == 0 {
            success()
        } else {
            failure()
        };
        complete(&activity, start, end).await;
    }
    activity.close().await.unwrap();
}

fn change(folder: &Path, sql: &str) {
    let connection = Connection::open(folder.join("data/activity.db")).unwrap();
    connection.execute_batch(sql).unwrap();
}

async fn verify(folder: &Path) -> Verification {
    open_to_read(folder).0.verify(None).await.unwrap()
}

async fn expect_lists(activity: &Activity, name: &str) {
    for (filter, expected) in FILTERS {
        let found = list(activity, filter).await.total;
        assert_eq!(found, expected, "{filter:?} after {name}");
    }
}

#[tokio::test]
async fn a_changed_index_is_noticed_and_rebuilt() {
    let whole = tempfile::tempdir().unwrap();
    filled(whole.path()).await;
    let verification = verify(whole.path()).await;
    assert_eq!(verification.index_agrees, Some(true), "{verification:?}");
    expect_lists(&open_to_read(whole.path()).0, "nothing").await;
    // One bucket of one block, the list of one block, a block without its terms, all of them.
    for sql in [
        "DELETE FROM terms",
        "DELETE FROM blocks",
        "DELETE FROM terms; DELETE FROM blocks",
        "DELETE FROM terms WHERE id = (SELECT min(id) FROM terms)",
        "DELETE FROM terms WHERE id = (SELECT max(id) FROM terms)",
        "DELETE FROM blocks WHERE id = 1",
        "UPDATE terms SET postings = x''",
        "UPDATE terms SET postings = x'ff' WHERE id % 65 = 64",
        "UPDATE terms SET postings = (SELECT postings FROM terms AS other \
         WHERE other.id > terms.id LIMIT 1) WHERE id = (SELECT min(id) FROM terms)",
        "UPDATE blocks SET gone = unhex(printf('%.*c', 256, 'F'))",
        "UPDATE blocks SET gone = unhex('01' || printf('%.*c', 254, '0')) WHERE id = 1",
        "UPDATE blocks SET gone = x'00'",
        "INSERT INTO terms SELECT id + 65000, postings FROM terms",
    ] {
        let folder = tempfile::tempdir().unwrap();
        copy_files(whole.path(), folder.path());
        change(folder.path(), sql);
        let verification = verify(folder.path()).await;
        assert_eq!(verification.broken, None, "{sql}");
        assert_eq!(verification.index_agrees, Some(false), "{sql}");
        assert!(!verification.holds(), "{sql}");

        let opened = SqliteStore::open(&options(folder.path())).unwrap();
        assert!(opened.rebuilt && opened.moved_aside.is_none(), "{sql}");
        let activity = Activity::new(std::sync::Arc::new(opened.store), settings());
        expect_lists(&activity, sql).await;
        let verification = activity.verify(None).await.unwrap();
        assert!(verification.holds(), "{sql}: {verification:?}");
        // It goes on from there.
        complete(&activity, read_call(), failure()).await;
        assert_eq!(list(&activity, &[("status", "error")]).await.total, 551);
        activity.close().await.unwrap();
        let opened = SqliteStore::open(&options(folder.path())).unwrap();
        assert!(!opened.rebuilt, "{sql}");
    }
}

#[tokio::test]
async fn what_a_start_cannot_see_is_noticed_by_verifying() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path()).await;
    // Moves a record from one place of the block to another: all numbers stay the same.
    change(
        folder.path(),
        "UPDATE blocks SET oldest = oldest + 1 WHERE id = 1",
    );
    assert_eq!(verify(folder.path()).await.index_agrees, Some(false));
}

#[tokio::test]
async fn a_payload_without_a_record_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    complete(&activity, read_call(), success()).await;
    activity.close().await.unwrap();
    change(
        folder.path(),
        "INSERT INTO payloads (record, arguments) VALUES (12345, x'7b7d')",
    );
    let broken = verify(folder.path()).await.broken.unwrap();
    assert_eq!(broken.reason, BreakReason::PayloadNotInChain);
}

#[tokio::test]
async fn a_record_that_is_gone_does_not_cut_off_what_is_behind_it() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path()).await;
    // One in the middle of the first page, one that would be the last of it, and whole pages.
    change(
        folder.path(),
        "DELETE FROM records WHERE id IN (SELECT id FROM records ORDER BY id DESC LIMIT 1 OFFSET 3);
         DELETE FROM records WHERE id IN (SELECT id FROM records ORDER BY id DESC LIMIT 1 OFFSET 48);
         DELETE FROM records WHERE id IN (SELECT id FROM records ORDER BY id DESC LIMIT 300 OFFSET 600)",
    );
    let activity = open_to_read(folder.path()).0;
    for pairs in [&[][..], &[("server", "files")]] {
        let mut found = 0;
        let mut cursor: Option<String> = None;
        loop {
            let mut pairs = pairs.to_vec();
            if let Some(cursor) = &cursor {
                pairs.push(("cursor", cursor));
            }
            let page = list(&activity, &pairs).await;
            found += page.activities.len();
            match page.next_cursor {
                Some(next) => {
                    assert_eq!(page.activities.len(), 50, "{pairs:?}");
                    cursor = Some(next.to_string());
                }
                None => break,
            }
        }
        assert_eq!(found, 1_100 - 302, "{pairs:?}");
    }
    for filter in [Filter::default(), filter(&[("server", "files")])] {
        let mut export = activity.export(ExportRequest {
            filter,
            format: ExportFormat::JsonLines,
            include_bodies: false,
            limit: None,
        });
        while export.next_chunk().await.unwrap().is_some() {}
        assert_eq!(export.written(), 1_100 - 302);
    }
}

#[tokio::test]
async fn one_unreadable_record_is_left_to_verify() {
    for (sql, total) in [
        (
            "UPDATE records SET status = 99 WHERE id = (SELECT min(id) FROM records)",
            2,
        ),
        (
            "UPDATE records SET facts = -1 WHERE id = (SELECT max(id) FROM records)",
            2,
        ),
        ("UPDATE records SET warnings = '{' WHERE status = 1", 2),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let activity = open(folder.path());
        complete(&activity, read_call(), success()).await;
        complete(&activity, read_call(), success()).await;
        let running = activity
            .begin(read_call(), activity::Durability::Durable)
            .await
            .unwrap();
        std::mem::forget(running);
        let elsewhere = tempfile::tempdir().unwrap();
        // Neither summed up nor indexed yet, as after a crash.
        assert_eq!(list(&activity, &[]).await.total, 3);
        copy_files(folder.path(), elsewhere.path());
        change(elsewhere.path(), sql);
        let activity = open(elsewhere.path());
        let page = list(&activity, &[]).await;
        assert_eq!(page.activities.len(), total, "{sql}");
        let found = list(&activity, &[("server", "files")]).await;
        assert_eq!(found.activities.len(), total, "{sql}");
        assert!(!activity.verify(None).await.unwrap().holds(), "{sql}");
        complete(&activity, read_call(), success()).await;
    }
}
