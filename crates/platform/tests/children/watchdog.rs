//! The watchdog: what it ends, and what it must not touch.

use std::process::Stdio;

use tempfile::TempDir;
use testkit::process::is_alive;
use testkit::{wait_for, wait_until};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Child;

use crate::support::{FIXTURE, GONE, OBEDIENT, Parent, STUBBORN, command};

#[tokio::test]
async fn a_restarted_watchdog_knows_the_live_groups() {
    let folder = TempDir::new().unwrap();
    let mut parent = Parent::start();
    parent.run_and_wait(folder.path(), STUBBORN).await;
    for _ in 0..3 {
        let old = parent.kill_watchdog().await;
        wait_for("there is another watchdog", GONE, async || {
            parent.watchdog().filter(|new| *new != old)
        })
        .await;
        // It is told all groups at once, so it knows the first when it has acknowledged this one.
        parent.run_and_wait(folder.path(), OBEDIENT).await;
    }
    parent.kill().await;
}

/// A process group that no parent watches over.
struct Stranger(Child);

impl Stranger {
    fn start() -> Self {
        let child = command("sleep").arg("600").process_group(0).spawn();
        Self(child.unwrap())
    }

    fn pid(&self) -> u32 {
        self.0.id().unwrap()
    }

    fn start_time(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
        let fields = stat.split_once("(sleep) ").unwrap().1;
        fields.split(' ').nth(19).unwrap().parse().unwrap()
    }

    fn message(&self, kind: u8, start_time: u64) -> Vec<u8> {
        let mut bytes = vec![kind];
        bytes.extend(self.pid().to_le_bytes());
        bytes.extend(start_time.to_le_bytes());
        bytes
    }
}

/// Runs a watchdog that is told this, and whose parent then is gone. Returns what it acknowledged.
async fn watchdog_told(messages: &[u8]) -> Vec<u8> {
    let mut watchdog = command(FIXTURE)
        .arg("child-watchdog")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = watchdog.stdin.take().unwrap();
    stdin.write_all(messages).await.unwrap();
    drop(stdin);
    let mut acknowledged = Vec::new();
    let mut stdout = watchdog.stdout.take().unwrap();
    stdout.read_to_end(&mut acknowledged).await.unwrap();
    watchdog.wait().await.unwrap();
    acknowledged
}

#[tokio::test]
async fn a_group_is_acknowledged_and_ended() {
    let mut stranger = Stranger::start();
    let watch = stranger.message(b'+', stranger.start_time());
    assert_eq!(watchdog_told(&watch).await, watch[1..]);
    stranger.0.wait().await.unwrap();
}

#[tokio::test]
async fn a_recycled_pid_is_not_killed() {
    let stranger = Stranger::start();
    let watch = stranger.message(b'+', stranger.start_time() - 1);
    assert_eq!(watchdog_told(&watch).await, watch[1..]);
    assert!(is_alive(stranger.pid()));
}

#[tokio::test]
async fn a_group_that_ended_is_forgotten() {
    let (first, mut second) = (Stranger::start(), Stranger::start());
    let messages = [
        first.message(b'+', first.start_time()),
        second.message(b'+', second.start_time()),
        first.message(b'-', first.start_time()),
    ];
    watchdog_told(&messages.concat()).await;
    second.0.wait().await.unwrap();
    assert!(is_alive(first.pid()));
}

/// SIGINT from a terminal goes to the whole foreground group.
#[tokio::test]
async fn the_watchdog_is_not_in_the_group_of_its_parent() {
    let folder = TempDir::new().unwrap();
    let mut parent = Parent::start();
    parent.run_and_wait(folder.path(), STUBBORN).await;
    let watchdog = parent.watchdog().unwrap();
    let group = rustix::process::Pid::from_raw(watchdog.cast_signed());
    assert_eq!(rustix::process::getpgid(group).unwrap(), group.unwrap());
    parent.kill().await;
    wait_until("the watchdog ends", GONE, async || !is_alive(watchdog)).await;
}
