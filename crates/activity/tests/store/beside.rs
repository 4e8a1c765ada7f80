//! Following a log that another process writes: what it stores is seen, and what can only be seen
//! by opening anew is told.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use activity::sqlite::SqliteStore;
use activity::{Activity, Durability, Event, Follow, FollowError, Phase, Status, StoreError};

use crate::support::*;

async fn is_stale(follow: &mut Follow) {
    let failure = in_time(follow.next()).await.unwrap_err();
    assert!(
        matches!(failure, FollowError::Store(StoreError::Stale)),
        "{failure}"
    );
}

async fn next(follow: &mut Follow) -> Event {
    in_time(follow.next()).await.unwrap()
}

#[tokio::test]
async fn what_another_process_writes_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let writer = open(folder.path());
    complete(&writer, read_call(), success()).await;
    let place = writer.head().await.unwrap().sequence;
    let reader = open_to_read(folder.path()).0;
    let mut follow = reader.follow(Some(place));
    let mut from_the_start = reader.follow(Some(0));
    // More than is fetched at once.
    for _ in 0..300 {
        let id = complete(&writer, read_call(), success()).await;
        writer.head().await.unwrap();
        let (started, completed) = (next(&mut follow).await, next(&mut follow).await);
        assert_eq!((started.record.id, started.phase), (id, Phase::Started));
        assert_eq!(
            (completed.record.id, completed.phase),
            (id, Phase::Completed)
        );
        assert_eq!(completed.record.status, Status::Success);
    }
    for sequence in 1..=602 {
        assert_eq!(next(&mut from_the_start).await.sequence, sequence);
    }
}

#[tokio::test]
async fn from_now_on_means_nothing_that_was_before() {
    let folder = tempfile::tempdir().unwrap();
    let writer = open(folder.path());
    complete(&writer, read_call(), success()).await;
    let place = writer.head().await.unwrap().sequence;
    let mut follow = open_to_read(folder.path()).0.follow(None);
    // Nobody knows which of these is the first after its first look.
    let writing = async {
        loop {
            complete(&writer, read_call(), success()).await;
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        event = next(&mut follow) => assert!(event.sequence > place, "{event:?}"),
        () = writing => {}
    }
}

#[tokio::test]
async fn a_log_that_comes_into_being_has_to_be_opened() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::nothing_in(&folder.path().join("data")).unwrap();
    let nothing = Activity::new(Arc::new(store), settings());
    let mut follow = nothing.follow(Some(0));
    let writer = open(folder.path());
    is_stale(&mut follow).await;
    let id = complete(&writer, read_call(), success()).await;
    let mut follow = open_to_read(folder.path()).0.follow(Some(0));
    assert_eq!(next(&mut follow).await.record.id, id);
}

#[tokio::test]
async fn a_log_in_the_place_of_another_has_to_be_opened() {
    let folder = tempfile::tempdir().unwrap();
    let writer = open(folder.path());
    complete(&writer, read_call(), success()).await;
    let place = writer.head().await.unwrap().sequence;
    let mut follow = open_to_read(folder.path()).0.follow(Some(place));
    writer.close().await.unwrap();
    drop(writer);
    fs::rename(folder.path().join("data"), folder.path().join("aside")).unwrap();
    let writer = open(folder.path());
    is_stale(&mut follow).await;
    // Its numbers are not those of the other.
    let mut follow = open_to_read(folder.path()).0.follow(Some(place));
    let failure = in_time(follow.next()).await.unwrap_err();
    assert!(matches!(failure, FollowError::PlaceLost), "{failure}");
    let id = complete(&writer, read_call(), success()).await;
    assert_eq!(next(&mut follow).await.record.id, id);
}

#[tokio::test]
async fn what_a_process_leaves_in_its_journal_has_to_be_stored_by_opening() {
    let folder = tempfile::tempdir().unwrap();
    let writer = open(folder.path());
    // Somebody holds the writer up, so that nothing but the journal has what follows.
    let blocker = rusqlite::Connection::open(folder.path().join("data/activity.db")).unwrap();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let id = complete(&writer, read_call(), success()).await;
    let crashed = tempfile::tempdir().unwrap();
    copy_files(folder.path(), crashed.path());
    blocker.execute_batch("COMMIT").unwrap();

    let put_journal = |from: &Path, to: &Path| {
        for file in JOURNAL {
            fs::rename(from.join(file), to.join(file)).unwrap();
        }
    };
    let data = crashed.path().join("data");
    put_journal(&data, crashed.path());
    let mut follow = open_to_read(crashed.path()).0.follow(Some(0));
    put_journal(crashed.path(), &data);
    is_stale(&mut follow).await;
    let mut follow = open_to_read(crashed.path()).0.follow(Some(0));
    let event = next(&mut follow).await;
    assert_eq!((event.record.id, event.phase), (id, Phase::Started));
}

#[tokio::test]
async fn a_journal_whose_process_lives_is_left_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let writer = open(folder.path());
    let blocker = rusqlite::Connection::open(folder.path().join("data/activity.db")).unwrap();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let open_call = writer
        .begin(read_call(), Durability::Written)
        .await
        .unwrap();
    let mut follow = open_to_read(folder.path()).0.follow(Some(0));
    blocker.execute_batch("COMMIT").unwrap();
    assert_eq!(next(&mut follow).await.record.id, open_call.id());
    open_call
        .finish(success(), Durability::Written)
        .await
        .unwrap();
    assert_eq!(next(&mut follow).await.phase, Phase::Completed);
}
