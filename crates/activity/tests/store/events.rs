//! Watching: live events in order, the missed ones after coming back, and being told of a loss.

use std::time::Duration;

use activity::{Durability, FollowError, Phase, RecordType, RetentionPolicy, Start, Status};
use policy::OperationType;

use crate::support::*;

#[tokio::test]
async fn starts_and_ends_are_told_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    let mut follow = activity.follow(None);
    let id = complete(&activity, read_call(), success()).await;
    let refusal = Start {
        record_type: RecordType::PolicyDecision,
        ..call("a", "b", OperationType::Read)
    };
    activity
        .record(refusal, blocked(), Durability::Written)
        .await
        .unwrap();

    let started = follow.next().await.unwrap();
    assert_eq!((started.sequence, started.phase), (1, Phase::Started));
    assert_eq!(started.name(), "activity.tool_call.started");
    assert_eq!(
        (started.record.id, started.record.status),
        (id, Status::Pending)
    );
    assert!(started.record.arguments.is_some());

    let completed = follow.next().await.unwrap();
    assert_eq!((completed.sequence, completed.phase), (2, Phase::Completed));
    assert_eq!(completed.name(), "activity.tool_call.completed");
    assert_eq!(completed.record.status, Status::Success);
    assert_eq!(completed.record.response, None);

    let decision = follow.next().await.unwrap();
    assert_eq!(
        (decision.sequence, decision.name()),
        (3, "activity.policy_decision")
    );
    assert!(filter(&[("status", "blocked")]).matches(&decision.record));
}

#[tokio::test]
async fn whoever_comes_back_gets_what_it_missed_and_then_what_is_live() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    let mut live = activity.follow(None);
    for _ in 0..400 {
        activity
            .record(read_call(), success(), Durability::Batched)
            .await
            .unwrap();
    }
    complete(&activity, read_call(), success()).await;
    let mut events = Vec::new();
    for _ in 0..402 {
        events.push(live.next().await.unwrap());
    }
    // The same again from the store, also after a restart.
    activity.close().await.unwrap();
    let activity = open(folder.path());
    let mut follow = activity.follow(Some(10));
    for expected in &events[10..] {
        assert_eq!(follow.next().await.unwrap(), *expected);
    }
    let silent = tokio::time::timeout(Duration::from_millis(50), follow.next()).await;
    assert!(silent.is_err(), "nothing more has happened: {silent:?}");
    complete(&activity, read_call(), success()).await;
    assert_eq!(follow.next().await.unwrap().sequence, 403);
}

#[tokio::test]
async fn a_slow_watcher_is_told_that_it_lost_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    let mut follow = activity.follow(None);
    for _ in 0..2_000 {
        activity
            .record(read_call(), success(), Durability::Batched)
            .await
            .unwrap();
    }
    // A question has everything stored first, and with that everybody has been told.
    activity.head().await.unwrap();
    assert!(matches!(follow.next().await, Err(FollowError::PlaceLost)));
    // Following goes on; the writer may still be ahead by more than the watcher can hold.
    let next = loop {
        match follow.next().await {
            Err(FollowError::PlaceLost) => {}
            other => break other.unwrap(),
        }
    };
    assert!(next.sequence > 1, "{}", next.sequence);
}

#[tokio::test]
async fn a_place_that_is_forgotten_or_was_never_there_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    for _ in 0..20 {
        complete(&activity, read_call(), success()).await;
    }
    let policy = RetentionPolicy {
        max_count: Some(5),
        ..RetentionPolicy::default()
    };
    activity.prune(policy).await.unwrap();
    for place in [0, 3, 10_000] {
        let mut follow = activity.follow(Some(place));
        assert!(
            matches!(follow.next().await, Err(FollowError::PlaceLost)),
            "{place}"
        );
        // After the bad news it goes on with what is live.
        let id = complete(&activity, read_call(), success()).await;
        assert_eq!(follow.next().await.unwrap().record.id, id);
    }
}
