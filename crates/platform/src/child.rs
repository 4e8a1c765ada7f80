//! A child process: started in its own process group, ended as a group.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::time::Instant;

use crate::endings::Endings;
use crate::group::Group;
use crate::launcher;
use crate::watchdog::{Watchdog, WatchedGroup};

/// How long a child gets to exit after its stdin closed, before SIGTERM.
const AFTER_STDIN: Duration = Duration::from_secs(1);

/// How long its group gets between SIGTERM and SIGKILL.
const AFTER_TERM: Duration = Duration::from_secs(2);

/// How long a killed child takes at most to be reaped.
const AFTER_KILL: Duration = Duration::from_millis(500);

/// How often a group is checked that was asked to end.
const POLL: Duration = Duration::from_millis(25);

/// What to execute, and with what.
#[derive(Debug)]
pub struct ChildCommand {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// The whole environment; nothing is inherited.
    pub environment: BTreeMap<OsString, OsString>,
    pub working_dir: Option<PathBuf>,
}

/// A running child. Dropping it ends the whole group in the background, within
/// [`Endings::LONGEST`]; where there is no runtime any more, at once.
#[derive(Debug)]
pub struct ChildGroup {
    running: Option<Running>,
    endings: Endings,
}

/// The child's ends of its standard streams.
#[derive(Debug)]
pub struct Pipes {
    pub stdin: ChildStdin,
    pub stdout: ChildStdout,
    pub stderr: ChildStderr,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Spawn(io::Error),
    #[error("the watchdog of child processes cannot be started")]
    Watchdog(#[source] Arc<io::Error>),
    #[error("the watchdog of child processes did not answer within {} s", .0.as_secs())]
    Unacknowledged(Duration),
}

/// A child and its process group. Dropping it kills both.
#[derive(Debug)]
struct Running {
    child: Child,
    group: WatchedGroup,
}

// === impl Watchdog ===

impl Watchdog {
    /// Starts a child. Its program is executed only once the watchdog process knows its group.
    pub async fn start_child(
        &self,
        command: &ChildCommand,
        endings: &Endings,
    ) -> Result<(ChildGroup, Pipes), StartError> {
        let mut launcher = self.program_as(launcher::COMMAND);
        launcher
            .arg(&command.program)
            .args(&command.arguments)
            .env_clear()
            .envs(&command.environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        if let Some(directory) = &command.working_dir {
            launcher.current_dir(directory);
        }
        let mut child = launcher.spawn().map_err(StartError::Spawn)?;
        let incomplete = || StartError::Spawn(io::Error::other("the child has no pid or pipes"));
        let mut pipes = Pipes::take(&mut child).ok_or_else(incomplete)?;
        let group = child.id().and_then(Group::of_child);
        let group = self.watch(group.ok_or_else(incomplete)?);
        // Dropped on the way out of here, it kills the launcher before its gate opens.
        let running = Running { child, group };
        running.group.acknowledged().await?;
        // Fails if the launcher was killed; the exit status tells that better.
        let _ = pipes.stdin.write_all(&[launcher::GO]).await;
        let child = ChildGroup {
            running: Some(running),
            endings: endings.clone(),
        };
        Ok((child, pipes))
    }
}

// === impl ChildGroup ===

impl ChildGroup {
    /// The pid of the leader; `None` once it has been waited for.
    pub fn id(&self) -> Option<u32> {
        self.running.as_ref()?.child.id()
    }

    /// Waits for the leader to exit by itself. Cancel safe. The rest of the group is ended when
    /// this is dropped.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        match &mut self.running {
            Some(running) => running.child.wait().await,
            None => Err(io::Error::other("the child is being ended")),
        }
    }
}

impl Drop for ChildGroup {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            self.endings.spawn(running.end());
        }
    }
}

// === impl Running ===

impl Running {
    /// Waits for a child whose stdin is closed; then asks the group to end; then kills it.
    async fn end(mut self) {
        let exited = tokio::time::timeout(AFTER_STDIN, self.child.wait()).await;
        let group = self.group.id();
        if exited.is_ok() && !group.is_alive() {
            return;
        }
        group.signal(Signal::TERM);
        let deadline = Instant::now() + AFTER_TERM;
        while Instant::now() < deadline {
            // Reaped on the way: a zombie is still a member of its group.
            if matches!(self.child.try_wait(), Ok(Some(_))) && !group.is_alive() {
                return;
            }
            tokio::time::sleep(POLL).await;
        }
        group.signal(Signal::KILL);
        let _ = tokio::time::timeout(AFTER_KILL, self.child.wait()).await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.group.id().signal(Signal::KILL);
    }
}

// === impl Pipes ===

impl Pipes {
    fn take(child: &mut Child) -> Option<Self> {
        Some(Self {
            stdin: child.stdin.take()?,
            stdout: child.stdout.take()?,
            stderr: child.stderr.take()?,
        })
    }
}
