//! Many callers at once: nothing is lost, nothing is doubled, and the chain holds.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use activity::{Durability, ExportFormat, ExportRequest, Filter};
use policy::OperationType;

use crate::support::*;

const TASKS: usize = 100;
const RECORDS: usize = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_callers_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let activity = activity.clone();
            tokio::spawn(async move {
                let server = format!("server-{}", task % 7);
                let mut ids = Vec::with_capacity(RECORDS);
                for number in 0..RECORDS {
                    let operation = OperationType::ALL[number % 3];
                    let start = call(&server, "tool", operation);
                    // A durable start now and then, so that both kinds of commit are mixed.
                    let durability = if number % 50 == 0 {
                        Durability::Durable
                    } else {
                        Durability::Batched
                    };
                    let open = activity.begin(start, durability).await.unwrap();
                    ids.push(open.id());
                    open.finish(success(), Durability::Batched).await.unwrap();
                }
                ids
            })
        })
        .collect();
    let mut expected = HashSet::new();
    for task in tasks {
        expected.extend(task.await.unwrap());
    }
    assert_eq!(expected.len(), TASKS * RECORDS);
    activity.close().await.unwrap();

    let activity = open(folder.path());
    let request = ExportRequest {
        filter: Filter::default(),
        format: ExportFormat::JsonLines,
        include_bodies: false,
        limit: None,
    };
    let mut export = activity.export(request);
    let mut found = HashSet::new();
    while let Some(chunk) = export.next_chunk().await.unwrap() {
        for line in String::from_utf8(chunk).unwrap().lines() {
            let record: activity::Record = serde_json::from_str(line).unwrap();
            assert_eq!(record.status, activity::Status::Success);
            assert!(found.insert(record.id), "{} is there twice", record.id);
        }
    }
    assert_eq!(found, expected);
    let verification = activity.verify(None).await.unwrap();
    assert!(verification.holds());
    assert_eq!(verification.records, (TASKS * RECORDS) as u64);
    assert_eq!(verification.entries, (TASKS * RECORDS * 2) as u64);
}

/// How many records of 256 kB the queue takes: it is bounded in bytes, too.
const MOST_QUEUED: usize = 70;
const LARGE_RECORDS: usize = 90;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_stalls_slows_callers_down_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    // Somebody else holds the file, so that the writer stands still.
    let other = rusqlite::Connection::open(folder.path().join("data/activity.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();

    let sent = Arc::new(AtomicUsize::new(0));
    let caller = tokio::spawn({
        let (activity, sent) = (activity.clone(), Arc::clone(&sent));
        async move {
            let arguments = format!("\"{}\"", "x".repeat(256 * 1024));
            for _ in 0..LARGE_RECORDS {
                let start = activity::Start {
                    arguments: Some(&arguments),
                    ..read_call()
                };
                activity
                    .record(start, success(), Durability::Batched)
                    .await
                    .unwrap();
                sent.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    eventually("the queue has filled", async || {
        sent.load(Ordering::Relaxed) >= 60
    })
    .await;
    assert!(!caller.is_finished());
    assert!(sent.load(Ordering::Relaxed) <= MOST_QUEUED);
    other.execute_batch("ROLLBACK").unwrap();
    caller.await.unwrap();
    complete(&activity, read_call(), success()).await;
    assert_eq!(list(&activity, &[]).await.total, LARGE_RECORDS as u64 + 1);
    assert!(activity.verify(None).await.unwrap().holds());
}
