//! The task that keeps a watchdog process running and up to date.

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::watch;

use super::message::Message;
use super::{COMMAND, State, program_as};
use crate::group::Group;

/// The pause before a process is started in place of one that never worked doubles between these.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

struct Keeper {
    program: PathBuf,
    wanted: watch::Receiver<HashSet<Group>>,
    state: watch::Sender<State>,
}

/// No group can be added any more.
struct NoLongerNeeded;

/// Starts the task; it ends when the sender of `wanted` is dropped. If the task is dropped with its
/// runtime, the watchdog process ends the groups that are left.
pub(super) fn start(
    program: PathBuf,
    wanted: watch::Receiver<HashSet<Group>>,
) -> watch::Receiver<State> {
    let (state, receiver) = watch::channel(State::default());
    let keeper = Keeper {
        program,
        wanted,
        state,
    };
    tokio::spawn(keeper.run());
    receiver
}

// === impl Keeper ===

impl Keeper {
    async fn run(mut self) {
        let mut pause = Duration::ZERO;
        loop {
            let worked = match self.spawn() {
                Ok((child, stdin, stdout)) => {
                    self.state.send_replace(State::default());
                    match self.attend(child, stdin, stdout).await {
                        Ok(worked) => worked,
                        Err(NoLongerNeeded) => return,
                    }
                }
                Err(error) => {
                    tracing::error!(%error, "the watchdog of child processes cannot be started");
                    self.state.send_replace(State {
                        acknowledged: HashSet::new(),
                        failure: Some(Arc::new(error)),
                    });
                    false
                }
            };
            pause = if worked {
                Duration::ZERO
            } else {
                (pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE)
            };
            tokio::time::sleep(pause).await;
        }
    }

    fn spawn(&self) -> io::Result<(Child, ChildStdin, ChildStdout)> {
        let mut child = program_as(&self.program, COMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A reader of our stderr must not have to wait for the watchdog to end.
            .stderr(Stdio::null())
            // What a terminal sends to our group must not end it.
            .process_group(0)
            .spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (stdin, stdout) = pipes.ok_or_else(|| io::Error::other("it has no pipes"))?;
        Ok((child, stdin, stdout))
    }

    /// Serves one process until it ends. Returns whether it has ever acknowledged anything.
    async fn attend(
        &mut self,
        mut child: Child,
        stdin: ChildStdin,
        stdout: ChildStdout,
    ) -> Result<bool, NoLongerNeeded> {
        let mut worked = false;
        tokio::select! {
            told = tell(&mut self.wanted, &self.state, stdin) => told?,
            () = hear(&self.state, stdout, &mut worked) => {}
        }
        self.state.send_replace(State::default());
        // It is dead, or stopped making sense: two must not run at the same time.
        let _ = child.start_kill();
        let status = child.wait().await;
        tracing::warn!(
            ?status,
            "the watchdog of child processes died; starting another"
        );
        Ok(worked)
    }
}

/// Tells the process of all wanted groups, then of every change. Returns when it cannot be told.
async fn tell(
    wanted: &mut watch::Receiver<HashSet<Group>>,
    state: &watch::Sender<State>,
    mut stdin: ChildStdin,
) -> Result<(), NoLongerNeeded> {
    let mut told = HashSet::<Group>::new();
    loop {
        let current = wanted.borrow_and_update().clone();
        let gone: Vec<Group> = told.difference(&current).copied().collect();
        let new = current.difference(&told).copied().map(Message::Watch);
        let messages = gone.iter().copied().map(Message::Forget).chain(new);
        let bytes: Vec<u8> = messages.flat_map(Message::to_bytes).collect();
        if stdin.write_all(&bytes).await.is_err() {
            return Ok(());
        }
        if !gone.is_empty() {
            state.send_modify(|state| {
                state.acknowledged.retain(|group| current.contains(group));
            });
        }
        told = current;
        if wanted.changed().await.is_err() {
            return Err(NoLongerNeeded);
        }
    }
}

/// Notes what the process acknowledges. Returns when it is gone.
async fn hear(state: &watch::Sender<State>, mut stdout: ChildStdout, worked: &mut bool) {
    let mut bytes = [0; Group::BYTES];
    while stdout.read_exact(&mut bytes).await.is_ok() {
        let Some(group) = Group::from_bytes(bytes) else {
            return;
        };
        *worked = true;
        state.send_modify(|state| {
            state.acknowledged.insert(group);
        });
    }
}
