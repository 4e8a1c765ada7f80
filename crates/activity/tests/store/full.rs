//! A full disk: new records are refused in time, ends are kept, nothing breaks, and it recovers.

use std::sync::Arc;

use activity::sqlite::{SqliteOptions, SqliteStore};
use activity::{Activity, Durability, End, Health, RetentionPolicy, Status, StoreError};
use policy::OperationType;

use crate::support::*;

fn small(folder: &std::path::Path) -> Activity {
    let options = SqliteOptions {
        directory: folder.join("data"),
        max_file_bytes: Some(600 * 1024),
    };
    Activity::new(
        Arc::new(SqliteStore::open(&options).unwrap().store),
        settings(),
    )
}

/// Writes until there is no room, and tells how many records fitted.
async fn fill(activity: &Activity) -> u64 {
    let body = format!("\"{}\"", "0123456789".repeat(200));
    for written in 0..10_000 {
        let end = End {
            response: Some(&body),
            ..success()
        };
        match activity.record(read_call(), end, Durability::Written).await {
            Ok(_) => {}
            Err(StoreError::Full) => return written,
            Err(error) => panic!("{error}"),
        }
    }
    panic!("it never ran full");
}

#[tokio::test]
async fn a_full_disk_refuses_writes_keeps_ends_and_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let activity = small(folder.path());
    let running = activity
        .begin(
            call("files", "write_file", OperationType::Write),
            Durability::Durable,
        )
        .await
        .unwrap();
    let written = fill(&activity).await;
    assert!(written > 10, "{written}");
    assert_eq!(activity.health(), Health::Full);

    // The write and destructive lanes get a typed refusal; so does a read, which goes on.
    for durability in [Durability::Durable, Durability::Batched] {
        let error = activity.begin(read_call(), durability).await.unwrap_err();
        assert!(matches!(error, StoreError::Full), "{error}");
        assert_eq!(error.to_string(), "the activity log has no space left");
    }

    // The end of what runs is not lost: it is told to be late, and kept.
    let id = running.id();
    let big = format!("\"{}\"", "x y z ".repeat(2_000));
    let end = End {
        response: Some(&big),
        ..success()
    };
    let _ = running.finish(end, Durability::Written).await;

    // Reading goes on meanwhile, and nothing is broken. What was accepted last waits for space.
    let page = list(&activity, &[("limit", "1")]).await;
    assert!(
        page.total > 10 && page.total <= written + 1,
        "{}",
        page.total
    );
    assert!(activity.verify(None).await.unwrap().holds());

    let policy = RetentionPolicy {
        max_count: Some(5),
        ..RetentionPolicy::default()
    };
    eventually("retention has made room", async || {
        activity.prune(policy).await.unwrap();
        activity
            .record(read_call(), success(), Durability::Durable)
            .await
            .is_ok()
    })
    .await;
    eventually("the late end is stored", async || {
        let record = activity.get(id).await.unwrap();
        record.is_none_or(|record| record.status == Status::Success)
    })
    .await;
    assert_eq!(activity.health(), Health::Good);
    assert!(activity.verify(None).await.unwrap().holds());
}

#[tokio::test]
async fn a_full_log_opens_again() {
    let folder = tempfile::tempdir().unwrap();
    let activity = small(folder.path());
    let written = fill(&activity).await;
    let _ = activity.close().await;
    let activity = open(folder.path());
    assert_eq!(list(&activity, &[]).await.total, written);
    assert!(activity.verify(None).await.unwrap().holds());
    complete(&activity, read_call(), success()).await;
}

#[tokio::test]
async fn a_log_that_ran_full_before_anything_was_summed_up_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions {
        directory: folder.path().join("data"),
        // So little that it is full before the first slice of sums is due.
        max_file_bytes: Some(250 * 1024),
    };
    let store = SqliteStore::open(&options).unwrap().store;
    let activity = Activity::new(Arc::new(store), settings());
    fill(&activity).await;
    let policy = RetentionPolicy {
        max_count: Some(5),
        ..RetentionPolicy::default()
    };
    eventually("retention has made room", async || {
        activity.prune(policy).await.unwrap();
        activity
            .record(read_call(), success(), Durability::Durable)
            .await
            .is_ok()
    })
    .await;
    eventually(
        "what had been accepted is stored and forgotten",
        async || {
            activity.prune(policy).await.unwrap();
            list(&activity, &[]).await.total == 5 && activity.health() == Health::Good
        },
    )
    .await;
    assert!(activity.verify(None).await.unwrap().holds());
}
