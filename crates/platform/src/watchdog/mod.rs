//! One process that ends all child groups when the process that started them is gone.
//!
//! The parent tells it of groups over a pipe. The end of that pipe is the end of the parent, on every
//! Unix and however the parent died. If the watchdog process itself dies, the parent starts another
//! and tells it all groups again.

mod keeper;
mod message;
mod process;

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::watch;

use crate::child::StartError;
use crate::group::Group;

pub(crate) use process::run;

/// The first argument that makes a program the watchdog, and the name of its process.
pub(crate) const COMMAND: &str = "child-watchdog";

/// How long the watchdog may take to acknowledge a group, a restart included.
const ACKNOWLEDGEMENT: Duration = Duration::from_secs(5);

/// Starts children, and ends them when this process is gone. Its process is started with the first
/// child. Clones share it.
#[derive(Debug, Clone)]
pub struct Watchdog(Arc<Shared>);

/// A group that the watchdog is to know. Dropping it has the watchdog forget the group.
#[derive(Debug)]
pub(crate) struct WatchedGroup {
    group: Group,
    watchdog: Watchdog,
}

#[derive(Debug)]
struct Shared {
    program: PathBuf,
    /// The groups that the watchdog process is to know. The keeper brings it up to date.
    wanted: watch::Sender<HashSet<Group>>,
    /// Set by the first child, with which the keeper starts.
    state: OnceLock<watch::Receiver<State>>,
}

/// What is known of the present watchdog process.
#[derive(Debug, Default)]
struct State {
    acknowledged: HashSet<Group>,
    /// Why there is no process.
    failure: Option<Arc<io::Error>>,
}

// === impl Watchdog ===

impl Watchdog {
    /// Uses this program, whose `main` calls [`crate::run_internal_command`], as launcher and
    /// watchdog.
    pub fn of_this_program() -> Self {
        Self::of_program(this_program())
    }

    /// Uses another program whose `main` calls [`crate::run_internal_command`].
    pub fn of_program(program: PathBuf) -> Self {
        Self(Arc::new(Shared {
            program,
            wanted: watch::Sender::default(),
            state: OnceLock::new(),
        }))
    }

    /// A command that runs the program as launcher or watchdog.
    pub(crate) fn program_as(&self, internal_command: &str) -> Command {
        program_as(&self.0.program, internal_command)
    }

    /// Has the watchdog process watch over a group.
    pub(crate) fn watch(&self, group: Group) -> WatchedGroup {
        self.0.wanted.send_modify(|wanted| {
            wanted.insert(group);
        });
        WatchedGroup {
            group,
            watchdog: self.clone(),
        }
    }

    fn state(&self) -> watch::Receiver<State> {
        let Shared {
            program,
            wanted,
            state,
        } = &*self.0;
        let start = || keeper::start(program.clone(), wanted.subscribe());
        state.get_or_init(start).clone()
    }
}

// === impl WatchedGroup ===

impl WatchedGroup {
    pub(crate) fn id(&self) -> Group {
        self.group
    }

    /// Waits until the present watchdog process knows the group.
    pub(crate) async fn acknowledged(&self) -> Result<(), StartError> {
        let mut state = self.watchdog.state();
        let known = state
            .wait_for(|state| state.failure.is_some() || state.acknowledged.contains(&self.group));
        match tokio::time::timeout(ACKNOWLEDGEMENT, known).await {
            Ok(Ok(state)) => match &state.failure {
                Some(failure) => Err(StartError::Watchdog(Arc::clone(failure))),
                None => Ok(()),
            },
            Ok(Err(_)) | Err(_) => Err(StartError::Unacknowledged(ACKNOWLEDGEMENT)),
        }
    }
}

impl Drop for WatchedGroup {
    fn drop(&mut self) {
        self.watchdog.0.wanted.send_modify(|wanted| {
            wanted.remove(&self.group);
        });
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the supervisor that the ban points to"
)]
fn program_as(program: &std::path::Path, internal_command: &str) -> Command {
    let mut command = Command::new(program);
    // What `ps` shows, which may differ from the path by which the program is executed.
    if let Some(name) = std::env::args_os().next() {
        command.arg0(name);
    }
    command.arg(internal_command);
    command
}

/// Stands for the running program even if its file has been replaced or removed since: it is kept
/// open, and executed by its descriptor. `/proc/self/exe` itself would do, but names the emulator
/// where one runs this program.
#[cfg(target_os = "linux")]
fn this_program() -> PathBuf {
    use std::os::fd::IntoRawFd;

    let link = "/proc/self/exe";
    match std::fs::File::open(link) {
        Ok(program) => format!("/proc/self/fd/{}", program.into_raw_fd()).into(),
        Err(_) => link.into(),
    }
}

#[cfg(not(target_os = "linux"))]
fn this_program() -> PathBuf {
    // A program that cannot be found fails to start, which is reported then.
    std::env::current_exe().unwrap_or_default()
}
