//! The process dies at any moment: what was acknowledged is there, and what ran is interrupted.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use activity::sqlite::SqliteStore;
use activity::{Activity, ActivityId, Durability, GroupBy, Period, Status};
use policy::OperationType;

use crate::support::*;

/// Where the child writes; without it the child's test does nothing.
const CHILD: &str = "ACTIVITY_TEST_CHILD";

#[tokio::test]
async fn what_was_open_when_the_process_died_is_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    let done = complete(&activity, read_call(), success()).await;
    let start = call("files", "write_file", OperationType::Write);
    let running = activity.begin(start, Durability::Durable).await.unwrap();

    let crashed = tempfile::tempdir().unwrap();
    copy_files(folder.path(), crashed.path());
    let opened = SqliteStore::open(&options(crashed.path())).unwrap();
    assert_eq!(opened.interrupted, 1);
    let after = Activity::new(Arc::new(opened.store), settings());
    assert_eq!(
        after.get(done).await.unwrap().unwrap().status,
        Status::Success
    );
    let record = after.get(running.id()).await.unwrap().unwrap();
    assert_eq!(record.status, Status::Interrupted);
    assert_eq!(
        record.error_message.as_deref(),
        Some("mcpproxy stopped before this ended")
    );
    assert_eq!(record.duration_ms, None, "nobody knows how long it took");
    assert!(after.verify(None).await.unwrap().holds());
    // What is derived catches up, the interrupted record included.
    assert_eq!(list(&after, &[("q", "write")]).await.total, 1);
    running
        .finish(success(), Durability::Written)
        .await
        .unwrap();
}

#[tokio::test]
async fn what_is_only_in_the_journal_is_read_without_a_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    // A reader holds the writer up, so that nothing but the journal has what follows.
    let blocker = rusqlite::Connection::open(folder.path().join("data/activity.db")).unwrap();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(complete(&activity, read_call(), success()).await);
    }
    let begun = activity.begin(read_call(), Durability::Batched).await;
    let last = complete(&activity, read_call(), success()).await;

    let crashed = tempfile::tempdir().unwrap();
    copy_files(folder.path(), crashed.path());
    let mut heads = Vec::new();
    for _ in 0..2 {
        let (after, waiting) = open_to_read(crashed.path());
        assert_eq!(waiting, 0);
        for id in ids.iter().chain([&last]) {
            let record = after.get(*id).await.unwrap().unwrap();
            assert_eq!(record.status, Status::Success);
            let text = record.response.unwrap();
            assert_eq!(Some(text.as_str()), success().response);
        }
        // Who only reads ends nothing: that is for the next start.
        let begun = after.get(begun.as_ref().unwrap().id()).await.unwrap();
        assert_eq!(begun.unwrap().status, Status::Pending);
        let day = after.summary(Period::Day, GroupBy::Server).await.unwrap();
        assert_eq!(day.total.records, 4);
        let verification = after.verify(None).await.unwrap();
        assert!(verification.holds(), "{verification:?}");
        assert_eq!((verification.records, verification.entries), (5, 9));
        heads.push(verification.head);
    }
    assert_eq!(heads[0], heads[1]);
    let opened = SqliteStore::open(&options(crashed.path())).unwrap();
    assert_eq!(opened.interrupted, 1);
    blocker.execute_batch("COMMIT").unwrap();
}

/// Not a test of its own: the process that is killed.
#[test]
fn child_that_is_killed() {
    let Some(folder) = std::env::var_os(CHILD) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let activity = open(Path::new(&folder));
        let mut tasks = tokio::task::JoinSet::new();
        for task in 0..8 {
            tasks.spawn(call_forever(activity.clone(), task % 2 == 0));
        }
        tasks.join_all().await;
    });
}

async fn call_forever(activity: Activity, writes: bool) {
    let (operation, durability) = if writes {
        (OperationType::Write, Durability::Durable)
    } else {
        (OperationType::Read, Durability::Batched)
    };
    loop {
        let start = call("files", "tool", operation);
        let open = activity.begin(start, durability).await.unwrap();
        let id = open.id();
        if writes {
            acknowledge("started", id);
        }
        open.finish(success(), Durability::Written).await.unwrap();
        acknowledge("finished", id);
    }
}

/// One write, so that a line is whole or not there.
fn acknowledge(what: &str, id: ActivityId) {
    std::io::stderr()
        .write_all(format!("\n{what} {id}\n").as_bytes())
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_under_load_it_keeps_every_acknowledged_record() {
    let folder = tempfile::tempdir().unwrap();
    let rounds: u64 = std::env::var("ACTIVITY_KILLS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(12);
    let mut records = 0;
    for round in 0..rounds {
        let acknowledged = run_and_kill(folder.path(), (round * 37) % 160).await;
        let activity = open(folder.path());
        for (finished, id) in acknowledged {
            let record = activity.get(id).await.unwrap();
            let record = record.unwrap_or_else(|| panic!("{id} is lost in round {round}"));
            assert!(
                !finished || record.status == Status::Success,
                "{id}: {}",
                record.status
            );
            assert_ne!(record.status, Status::Pending);
        }
        let verification = activity.verify(None).await.unwrap();
        assert!(verification.holds(), "{verification:?}");
        assert!(verification.records >= records);
        records = verification.records;
        activity.close().await.unwrap();
    }
    assert!(records > 0);
}

/// Runs the child, kills it, and returns what it had acknowledged.
async fn run_and_kill(folder: &Path, milliseconds: u64) -> Vec<(bool, ActivityId)> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the process that is to die is this test again"
    )]
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::child_that_is_killed", "--nocapture"])
        .env(CHILD, folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stderr.take().unwrap());
    let (begun, has_begun) = tokio::sync::oneshot::channel();
    let reader = std::thread::spawn(move || {
        let mut begun = Some(begun);
        let lines = output.lines().map_while(Result::ok);
        lines
            .filter_map(|line| {
                let (what, id) = line.split_once(' ')?;
                let id = id.parse().ok()?;
                begun.take().map(|begun| begun.send(()));
                Some((what == "finished", id))
            })
            .collect::<Vec<_>>()
    });
    let in_time = tokio::time::timeout(Duration::from_mins(1), has_begun).await;
    assert!(in_time.is_ok(), "the child never got to write");
    // From here on the instant of death is arbitrary on purpose.
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap()
}
