//! A parent process that can be killed, and a look at what is left of its children.

use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use testkit::process::{all, is_alive, kill, watchdog_of};
use testkit::{wait_for, wait_until};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, Command};

pub(crate) const FIXTURE: &str = env!("CARGO_BIN_EXE_platform-fixture");

/// The grace of the watchdog is 2 s; the rest is for a busy machine.
pub(crate) const GONE: Duration = Duration::from_secs(20);

/// A process with a grandchild; both ignore SIGTERM and the end of their stdin.
pub(crate) const STUBBORN: &str = "trap '' TERM; sleep 600 & sleep 600";

/// The same, ended by SIGTERM.
pub(crate) const OBEDIENT: &str = "sleep 600 & sleep 600";

/// The same, ended by the end of stdin.
pub(crate) const READING: &str = "{ cat <&3 & } 3<&0; cat";

/// A process that starts children, all of which can be told by their environment.
#[derive(Debug)]
pub(crate) struct Parent {
    child: Child,
    stdin: ChildStdin,
    marker: String,
}

impl Parent {
    pub(crate) fn start() -> Self {
        let marker = marker();
        let mut child = command(FIXTURE)
            .arg(&marker)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        Self {
            child,
            stdin,
            marker,
        }
    }

    /// Has the parent start a child. Returns before it runs.
    pub(crate) async fn run(&mut self, script: &str) {
        let line = format!("{script}\n");
        self.stdin.write_all(line.as_bytes()).await.unwrap();
    }

    /// Has the parent start a child, and waits until its program runs.
    pub(crate) async fn run_and_wait(&mut self, folder: &Path, script: &str) {
        let file = folder.join(marker());
        self.run(&format!("echo > {}; {script}", file.display()))
            .await;
        wait_until("the child runs", GONE, async || file.exists()).await;
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }

    /// The present watchdog.
    pub(crate) fn watchdog(&self) -> Option<u32> {
        watchdog_of(self.pid())
    }

    pub(crate) async fn kill_watchdog(&self) -> u32 {
        let watchdog = wait_for("there is a watchdog", GONE, async || self.watchdog()).await;
        kill(watchdog);
        watchdog
    }

    /// SIGKILL, and waits until no process is left that it started.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
        self.nothing_is_left().await;
    }

    async fn nothing_is_left(&self) {
        let what = format!("children of {} are gone", self.marker);
        wait_until(&what, GONE, async || marked(&self.marker).is_empty()).await;
    }
}

/// The processes with this marker in their environment.
pub(crate) fn marked(marker: &str) -> Vec<u32> {
    let variable = format!("MARKER={marker}");
    let found = all().filter(|pid| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        variables.any(|other| other == variable.as_bytes()) && is_alive(*pid)
    });
    found.collect()
}

/// A word that no other test has.
pub(crate) fn marker() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{number}", std::process::id())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the tests are about processes that are killed"
)]
pub(crate) fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.kill_on_drop(true);
    command
}
