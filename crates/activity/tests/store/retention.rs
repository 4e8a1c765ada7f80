//! Forgetting: the oldest go, the rest still verifies, and the disk gets its space back.

use std::time::Duration;

use activity::{Durability, End, NotedHead, RetentionPolicy, Status};

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
