//! Pruning: the oldest go, the reserved share stays, the rest still verifies, and the disk gets its
//! space back.

use std::time::Duration;

use activity::sqlite::SqliteStore;
use activity::{
    Activity, ActivityId, Durability, End, NotedHead, RecordType, RetentionPolicy, Source, Start,
    Status,
};
use jiff::Timestamp;
use policy::OperationType;
use rusqlite::Connection;

use crate::support::*;

fn count(most: u64) -> RetentionPolicy {
    RetentionPolicy {
        max_count: Some(most),
        ..RetentionPolicy::default()
    }
}

#[tokio::test]
async fn the_oldest_go_and_the_rest_verifies() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    let mut ids = Vec::new();
    for _ in 0..300 {
        ids.push(complete(&activity, read_call(), success()).await);
    }
    let noted = activity.head().await.unwrap().hash;
    assert_eq!(activity.prune(count(120)).await.unwrap().records, 180);
    let page = list(&activity, &[]).await;
    assert_eq!(page.total, 120);
    assert_eq!(activity.get(ids[179]).await.unwrap(), None);
    assert!(activity.get(ids[180]).await.unwrap().is_some());
    assert_eq!(list(&activity, &[("q", "notes")]).await.total, 120);

    let verification = activity.verify(Some(noted)).await.unwrap();
    assert!(verification.holds(), "{verification:?}");
    assert_eq!(verification.records, 120);
    assert_eq!(verification.checkpoint.unwrap().removed_records, 180);
    assert!(matches!(
        verification.noted_head,
        Some(NotedHead::Behind { .. })
    ));

    // Again, and again after a restart: checkpoints of checkpoints.
    assert_eq!(activity.prune(count(50)).await.unwrap().records, 70);
    assert_eq!(activity.prune(count(50)).await.unwrap().records, 0);
    activity.close().await.unwrap();
    let activity = open(folder.path());
    complete(&activity, read_call(), success()).await;
    assert_eq!(activity.prune(count(0)).await.unwrap().records, 51);
    let verification = activity.verify(None).await.unwrap();
    assert!(verification.holds(), "{verification:?}");
    assert_eq!(verification.records, 0);
    assert_eq!(verification.checkpoint.unwrap().removed_records, 301);
}

#[tokio::test]
async fn what_is_open_is_never_removed() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    complete(&activity, read_call(), success()).await;
    let running = activity
        .begin(read_call(), Durability::Durable)
        .await
        .unwrap();
    for _ in 0..10 {
        complete(&activity, read_call(), success()).await;
    }
    assert_eq!(activity.prune(count(0)).await.unwrap().records, 11);
    let record = activity.get(running.id()).await.unwrap().unwrap();
    assert_eq!(record.status, Status::Pending);
    // Its start went with the others and was stated anew, so it is still protected.
    let verification = activity.verify(None).await.unwrap();
    assert!(verification.holds(), "{verification:?}");
    assert_eq!(verification.records, 1);

    let id = running.id();
    running
        .finish(success(), Durability::Written)
        .await
        .unwrap();
    assert!(activity.verify(None).await.unwrap().holds());
    assert_eq!(activity.prune(count(1)).await.unwrap().records, 0);
    assert_eq!(
        activity.get(id).await.unwrap().unwrap().status,
        Status::Success
    );
    assert_eq!(activity.prune(count(0)).await.unwrap().records, 1);
    assert!(activity.verify(None).await.unwrap().holds());
}

#[tokio::test]
async fn records_that_overlap_are_removed_without_a_gap() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    let mut running = std::collections::VecDeque::new();
    for round in 0..200 {
        running.push_back(
            activity
                .begin(read_call(), Durability::Written)
                .await
                .unwrap(),
        );
        if round >= 7 {
            let oldest = running.pop_front().unwrap();
            oldest.finish(success(), Durability::Written).await.unwrap();
        }
        if round % 40 == 39 {
            activity.prune(count(20)).await.unwrap();
            let verification = activity.verify(None).await.unwrap();
            assert!(verification.holds(), "{round}: {verification:?}");
            assert_eq!(verification.records, 27);
        }
    }
}

#[tokio::test]
async fn age_and_size_count_too() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    let body = format!("\"{}\"", "0123456789".repeat(300));
    for _ in 0..20 {
        let end = End {
            response: Some(&body),
            ..success()
        };
        complete(&activity, read_call(), end).await;
    }
    let old = RetentionPolicy {
        max_age: Some(Duration::from_hours(1)),
        ..RetentionPolicy::default()
    };
    assert_eq!(activity.prune(old).await.unwrap().records, 0);
    let small = RetentionPolicy {
        max_bytes: Some(20_000),
        ..RetentionPolicy::default()
    };
    let removed = activity.prune(small).await.unwrap().records;
    assert!((12..=17).contains(&removed), "{removed}");
    let everything = RetentionPolicy {
        max_age: Some(Duration::ZERO),
        ..RetentionPolicy::default()
    };
    eventually("everything is older than nothing", async || {
        activity.prune(everything).await.unwrap();
        list(&activity, &[]).await.total == 0
    })
    .await;
}

#[tokio::test]
async fn space_is_given_back_to_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    // Text that does not compress, so that the file really grows.
    let mut seed = 1_u64;
    for _ in 0..200 {
        let noise: String = (0..8_000)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                char::from(b'a' + u8::try_from((seed >> 33) % 26).unwrap())
            })
            .collect();
        let response = format!("\"{noise}\"");
        let end = End {
            response: Some(&response),
            ..success()
        };
        complete(&activity, read_call(), end).await;
    }
    let size = || {
        let files = ["activity.db", "activity.db-wal"];
        let path = |file| folder.path().join("data").join(file);
        files
            .iter()
            .map(|file| std::fs::metadata(path(file)).unwrap().len())
            .sum::<u64>()
    };
    activity.prune(RetentionPolicy::default()).await.unwrap();
    let before = size();
    let pruned = activity.prune(count(2)).await.unwrap();
    assert!(pruned.released_bytes > 500_000, "{pruned:?}");
    assert!(size() < before / 4, "{} of {before}", size());
    assert!(activity.verify(None).await.unwrap().holds());
}

#[tokio::test]
async fn sums_survive_what_they_summed() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    for _ in 0..10 {
        complete(&activity, read_call(), success()).await;
    }
    activity.prune(count(0)).await.unwrap();
    let usage = activity.usage(activity::Period::Day).await.unwrap();
    assert_eq!(usage.tools[0].calls, 10);
}

fn write_call<'a>() -> Start<'a> {
    call("files", "write_file", OperationType::Write)
}

/// A call that was refused, with arguments of this size.
async fn refuse(activity: &Activity, tool: &str, arguments: &str) {
    let start = Start {
        tool_name: Some(tool),
        arguments: Some(arguments),
        ..read_call()
    };
    activity
        .record(start, blocked(), Durability::Written)
        .await
        .unwrap();
}

async fn expect_all(activity: &Activity, ids: &[ActivityId]) {
    for id in ids {
        assert!(activity.get(*id).await.unwrap().is_some(), "{id} is gone");
    }
    let verification = activity.verify(None).await.unwrap();
    assert!(verification.holds(), "{verification:?}");
}

#[tokio::test]
async fn refusals_do_not_push_writes_out_of_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    let mut writes = Vec::new();
    for _ in 0..60 {
        writes.push(complete(&activity, write_call(), success()).await);
        refuse(&activity, "x", "{}").await;
    }
    let change = Start::new(RecordType::ConfigChange, Source::Api);
    let changed = End::new(activity::Outcome::Success, Duration::ZERO);
    let changed = activity
        .record(change, changed, Durability::Written)
        .await
        .unwrap();
    writes.push(changed);
    for round in 0..4 {
        for _ in 0..300 {
            refuse(&activity, "x", "{}").await;
        }
        activity.prune(count(200)).await.unwrap();
        assert_eq!(list(&activity, &[]).await.total, 200, "{round}");
        expect_all(&activity, &writes).await;
        // They are found by what they are, too, and once each.
        let found = list(&activity, &[("tool", "write_file")]).await;
        assert_eq!(found.total, 60, "{round}");
    }
    // After a restart the same holds.
    activity.close().await.unwrap();
    let activity = open(folder.path());
    for _ in 0..300 {
        refuse(&activity, "x", "{}").await;
    }
    activity.prune(count(130)).await.unwrap();
    expect_all(&activity, &writes).await;
    // Above the share writes go like everything else, and never below it.
    activity.prune(count(60)).await.unwrap();
    assert_eq!(list(&activity, &[]).await.total, 60);
    let left = list(&activity, &[("tool", "write_file")]).await.total;
    assert!((29..60).contains(&left), "{left}");
    expect_all(&activity, &[]).await;
}

#[tokio::test]
async fn large_refusals_do_not_push_writes_out_by_size() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    let mut writes = Vec::new();
    for _ in 0..20 {
        writes.push(complete(&activity, write_call(), success()).await);
    }
    let policy = RetentionPolicy {
        max_bytes: Some(1024 * 1024),
        ..RetentionPolicy::default()
    };
    // It is cut, and what is kept does not compress.
    let noise = |seed: u64| {
        let mut state = seed;
        let letters = (0..200_000_u32).map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            char::from(b'0' + u8::try_from((state >> 33) % 64).unwrap())
        });
        format!("[{:?}]", letters.collect::<String>())
    };
    for seed in 0..40 {
        refuse(&activity, "x", &noise(seed)).await;
    }
    let refused = list(&activity, &[("status", "blocked")]).await;
    let record = activity.get(refused.activities[0].id).await.unwrap();
    let record = record.unwrap();
    assert!(record.arguments_truncated);
    assert!(record.arguments.as_ref().unwrap().as_str().len() <= 65_536);
    activity.prune(policy).await.unwrap();
    expect_all(&activity, &writes).await;
    let left = list(&activity, &[]).await.total;
    assert!((25..60).contains(&left), "{left}");
}

#[tokio::test]
async fn a_log_that_grows_stays_within_its_limits_without_being_pruned() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    let mut writes = Vec::new();
    for _ in 0..20 {
        writes.push(complete(&activity, write_call(), success()).await);
    }
    activity.limit(count(100));
    for number in 0..1_000 {
        refuse(&activity, "x", "{}").await;
        if number % 100 == 99 {
            let total = list(&activity, &[]).await.total;
            assert!(total <= 111, "{total} after {number}");
        }
    }
    expect_all(&activity, &writes).await;
    activity.limit(RetentionPolicy {
        max_bytes: Some(256 * 1024),
        ..RetentionPolicy::default()
    });
    let body = format!("\"{}\"", "0123456789".repeat(300));
    for _ in 0..400 {
        refuse(&activity, "x", &body).await;
    }
    let total = list(&activity, &[]).await.total;
    assert!((40..110).contains(&total), "{total}");
    expect_all(&activity, &writes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retention_comes_about_under_load() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    let mut oldest = Vec::new();
    for _ in 0..100 {
        oldest.push(complete(&activity, read_call(), success()).await);
    }
    let mut load = tokio::task::JoinSet::new();
    for _ in 0..2 {
        let activity = activity.clone();
        load.spawn(async move {
            loop {
                complete(&activity, read_call(), success()).await;
                tokio::task::yield_now().await;
            }
        });
    }
    // It may never be done while calls come in, but it must get on.
    let pruning = activity.clone();
    load.spawn(async move { drop(pruning.prune(count(10)).await) });
    eventually("the oldest are removed", async || {
        activity.get(oldest[99]).await.unwrap().is_none()
    })
    .await;
    load.shutdown().await;
}

#[tokio::test]
async fn names_go_with_the_records_that_had_them() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    let long = "n".repeat(1_000);
    for number in 0..1_500 {
        let start = Start {
            // Of no tool, so that no sum keeps the name.
            tool_name: Some(&format!("{number}-{long}")),
            ..Start::new(RecordType::ServerChange, Source::Api)
        };
        activity
            .record(start, success(), Durability::Written)
            .await
            .unwrap();
    }
    let names = || {
        let database = Connection::open(folder.path().join("data/activity.db")).unwrap();
        let sql = "SELECT count(*), max(length(text)) FROM names";
        database
            .query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
    };
    assert_eq!(list(&activity, &[]).await.total, 1_500);
    assert_eq!(names(), (1_500, 256));
    activity.prune(count(5)).await.unwrap();
    assert_eq!(names(), (5, 256));
    // Names that are used again are stored again.
    complete(&activity, read_call(), success()).await;
    assert_eq!(list(&activity, &[("tool", "read_file")]).await.total, 1);
    assert!(activity.verify(None).await.unwrap().holds());
}

fn at_200_days_ahead() -> Timestamp {
    let ahead = jiff::SignedDuration::from_hours(200 * 24);
    Timestamp::now().checked_add(ahead).unwrap()
}

#[tokio::test]
async fn a_clock_that_jumps_ahead_removes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    let mut writes = Vec::new();
    for _ in 0..20 {
        writes.push(complete(&activity, write_call(), success()).await);
    }
    activity.close().await.unwrap();
    let policy = RetentionPolicy {
        max_age: Some(Duration::from_hours(90 * 24)),
        ..RetentionPolicy::default()
    };
    // Again and again: what is recorded meanwhile with a wrong time proves nothing.
    for start in 0..3 {
        let store = SqliteStore::open(&options(folder.path())).unwrap().store;
        let store = std::sync::Arc::new(store);
        let activity = Activity::with_clock(store, settings(), at_200_days_ahead);
        complete(&activity, read_call(), success()).await;
        assert_eq!(activity.prune(policy).await.unwrap().records, 0, "{start}");
        expect_all(&activity, &writes).await;
        activity.close().await.unwrap();
    }
    // Put right, what was recorded with the wrong time stays, too.
    let activity = open(folder.path());
    assert_eq!(activity.prune(policy).await.unwrap().records, 0);
    assert_eq!(list(&activity, &[]).await.total, 23);
}

#[tokio::test]
async fn a_wrong_count_does_not_keep_retention_busy_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    let mut writes = Vec::new();
    for _ in 0..1_100 {
        writes.push(complete(&activity, write_call(), success()).await);
    }
    activity.prune(RetentionPolicy::default()).await.unwrap();
    let database = Connection::open(folder.path().join("data/activity.db")).unwrap();
    let sql = "UPDATE progress SET records = 1000000";
    database.execute_batch(sql).unwrap();
    in_time(activity.prune(count(10_000))).await.unwrap();
    assert_eq!(list(&activity, &[]).await.total, 1_100);
    expect_all(&activity, &writes[..1]).await;
}

#[tokio::test]
async fn made_up_names_do_not_outlive_their_records_in_sums() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    for number in 0..2_500 {
        refuse(&activity, &format!("made up {number}"), "{}").await;
    }
    complete(&activity, read_call(), success()).await;
    let summary = |by| activity.summary(activity::Period::Day, by);
    let all = summary(activity::GroupBy::Status).await.unwrap();
    assert_eq!(all.total.records, 2_501);
    let by_tool = summary(activity::GroupBy::Tool).await.unwrap();
    assert!(by_tool.groups.len() <= 1_000, "{}", by_tool.groups.len());
    activity.prune(count(10)).await.unwrap();
    let database = Connection::open(folder.path().join("data/activity.db")).unwrap();
    for table in ["names", "hourly", "hourly_histograms"] {
        let sql = format!("SELECT count(*) FROM {table}");
        let rows: i64 = database.query_row(&sql, [], |row| row.get(0)).unwrap();
        assert!(rows <= 40, "{rows} in {table}");
    }
    let verification = activity.verify(None).await.unwrap();
    assert!(verification.holds(), "{verification:?}");
    assert_eq!(
        summary(activity::GroupBy::Status)
            .await
            .unwrap()
            .total
            .records,
        2_501
    );
}
