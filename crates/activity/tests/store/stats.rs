//! Sums over periods, over hours that have passed and hours that are under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use activity::sqlite::SqliteStore;
use activity::{
    Activity, Counts, Durability, End, GroupBy, Outcome, Period, RecordType, Source, Start,
};
use jiff::Timestamp;
use policy::OperationType;

use crate::support::*;

/// The time of the tests in this file; each test runs in a process or uses its own hours.
static NOW: AtomicI64 = AtomicI64::new(0);

fn clock() -> Timestamp {
    Timestamp::from_millisecond(NOW.load(Ordering::Relaxed)).unwrap()
}

fn set(time: &str) {
    let time: Timestamp = time.parse().unwrap();
    NOW.store(time.as_millisecond(), Ordering::Relaxed);
}

fn at_own_time(folder: &std::path::Path) -> Activity {
    let store = SqliteStore::open(&options(folder)).unwrap().store;
    Activity::with_clock(Arc::new(store), settings(), clock)
}

fn keys(groups: &[activity::Group]) -> Vec<(&str, u64)> {
    let key = |group: &activity::Group| group.counts.records;
    groups
        .iter()
        .map(|group| (group.key.as_deref().unwrap_or("-"), key(group)))
        .collect()
}

#[tokio::test]
async fn sums_reach_exactly_as_far_back_as_the_period() {
    let folder = tempfile::tempdir().unwrap();
    let activity = at_own_time(folder.path());
    let record = async |time: &str, server: &str, end: End<'_>| {
        set(time);
        let start = call(server, "tool", OperationType::Read);
        activity
            .record(start, end, Durability::Written)
            .await
            .unwrap();
    };
    record("2026-03-01T00:00:00Z", "old", success()).await;
    record("2026-03-30T10:15:00Z", "before", success()).await;
    record("2026-03-30T10:45:00Z", "files", success()).await;
    record("2026-03-30T23:00:00Z", "files", failure()).await;
    let slowly = End {
        duration: Duration::from_millis(50),
        ..blocked()
    };
    record("2026-03-31T10:10:00Z", "github", slowly).await;
    set("2026-03-31T10:30:00Z");
    let change = Start::new(RecordType::ConfigChange, Source::Cli);
    let end = End::new(Outcome::Success, Duration::ZERO);
    activity
        .record(change, end, Durability::Written)
        .await
        .unwrap();

    let day = activity
        .summary(Period::Day, GroupBy::Server)
        .await
        .unwrap();
    assert_eq!(keys(&day.groups), [("files", 2), ("github", 1)]);
    assert_eq!(
        day.total,
        Counts {
            records: 3,
            success: 1,
            error: 1,
            blocked: 1,
            // Without what was refused.
            duration_ms: 912,
            request_bytes: 360,
            response_bytes: 44,
            ..Counts::default()
        }
    );
    assert_eq!(day.since.to_string(), "2026-03-30T10:30:00Z");

    let totals = async |period| {
        activity
            .summary(period, GroupBy::Status)
            .await
            .unwrap()
            .total
            .records
    };
    assert_eq!(totals(Period::Hour).await, 1);
    assert_eq!(totals(Period::Week).await, 4);
    assert_eq!(totals(Period::Month).await, 4);
    set("2026-03-30T23:59:00Z");
    assert_eq!(totals(Period::Month).await, 5);

    set("2026-03-31T10:30:00Z");
    let by = async |group_by| {
        activity
            .summary(Period::Day, group_by)
            .await
            .unwrap()
            .groups
    };
    assert_eq!(
        keys(&by(GroupBy::Tool).await),
        [("files:tool", 2), ("github:tool", 1)]
    );
    assert_eq!(keys(&by(GroupBy::IntentType).await), [("read", 3)]);
    assert_eq!(keys(&by(GroupBy::Client).await), [("claude-code", 3)]);
    assert_eq!(
        keys(&by(GroupBy::Hour).await),
        [
            ("2026-03-30T10:00:00Z", 1),
            ("2026-03-30T23:00:00Z", 1),
            ("2026-03-31T10:00:00Z", 1)
        ]
    );
    let mut statuses = keys(&by(GroupBy::Status).await).len();
    statuses += by(GroupBy::Status)
        .await
        .iter()
        .filter(|group| group.key.is_none())
        .count();
    assert_eq!(statuses, 3);
}

#[tokio::test]
async fn usage_has_calls_errors_and_the_slow_end() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    for milliseconds in 1..=100 {
        let duration = Duration::from_millis(milliseconds);
        let end = End {
            duration,
            ..success()
        };
        activity
            .record(read_call(), end, Durability::Batched)
            .await
            .unwrap();
    }
    for _ in 0..3 {
        complete(
            &activity,
            call("github", "create_issue", OperationType::Write),
            failure(),
        )
        .await;
    }
    activity
        .record(read_call(), blocked(), Durability::Written)
        .await
        .unwrap();
    let usage = activity.usage(Period::Day).await.unwrap();
    let files = &usage.tools[0];
    assert_eq!(files.server_name.as_deref(), Some("files"));
    assert_eq!((files.calls, files.errors), (100, 0));
    assert!(
        (95..=103).contains(&files.p95_duration_ms),
        "{}",
        files.p95_duration_ms
    );
    assert_eq!(
        (files.request_bytes, files.response_bytes),
        (100 * 120, 4_400),
        "what was refused is in no number"
    );
    let github = &usage.tools[1];
    assert_eq!((github.calls, github.errors), (3, 3));
}
