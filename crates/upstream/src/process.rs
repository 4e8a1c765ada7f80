//! The child process of a stdio upstream: started in its own process group, ended as a group.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

/// How long a child gets to leave after its stdin closed, before SIGTERM.
const AFTER_STDIN: Duration = Duration::from_secs(1);

/// How long its group gets between SIGTERM and SIGKILL.
const AFTER_TERM: Duration = Duration::from_secs(2);

/// How long a killed child takes at most to be reaped.
const AFTER_KILL: Duration = Duration::from_millis(500);

/// How often a group is looked at that was asked to end.
const POLL: Duration = Duration::from_millis(25);

/// What of the daemon's own environment a child sees. Everything else may hold a secret that is
/// none of its business; what a server needs beyond this, its `env` says.
const INHERITED: &[&str] = &[
    "HOME",
    "PATH",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TERM",
    "TZ",
    "TMPDIR",
    "PWD",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "DBUS_SESSION_BUS_ADDRESS",
    "SSH_AUTH_SOCK",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "NVM_DIR",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];
const INHERITED_PREFIXES: &[&str] = &["LC_", "XDG_"];

/// How to start a child, with every reference already resolved.
#[derive(Debug)]
pub(crate) struct CommandLine {
    pub command: String,
    pub arguments: Vec<String>,
    pub environment: BTreeMap<String, String>,
    pub working_dir: Option<PathBuf>,
}

/// The program that stands between the daemon and its children; see [`crate::guardian`].
#[derive(Debug, Clone)]
pub struct Guardian {
    /// A program that, called as `PROGRAM guard --daemon PID -- COMMAND…`, runs
    /// [`crate::guardian::run`].
    pub program: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SpawnError {
    #[error("command `{command}` was not found")]
    NotFound { command: String },
    #[error("`{}` is not executable", path.display())]
    NotExecutable { path: PathBuf },
    #[error("cannot start `{command}`")]
    Spawn { command: String, source: io::Error },
}

/// A running child. Dropping it ends the whole group in the background, within
/// [`Endings::LONGEST`]; where there is no runtime any more, at once.
#[derive(Debug)]
pub(crate) struct ChildGroup {
    running: Option<Running>,
    endings: Endings,
}

/// A child and its process group. Dropping it kills what is left of both.
#[derive(Debug)]
struct Running {
    child: Child,
    group: Option<Pid>,
}

/// What is being ended in the background: children, and connections that are closed politely.
#[derive(Debug, Clone)]
pub(crate) struct Endings(TaskTracker);

pub(crate) struct Pipes {
    pub stdin: ChildStdin,
    pub stdout: ChildStdout,
    pub stderr: ChildStderr,
}

// === impl CommandLine ===

impl CommandLine {
    /// Starts the command, under the guardian where there is one.
    ///
    /// Call it from a thread that lives as long as the daemon: the kernel's parent-death signal
    /// follows the thread that started the child, not the process.
    pub(crate) fn spawn(
        &self,
        guardian: Option<&Guardian>,
        endings: &Endings,
    ) -> Result<(ChildGroup, Pipes), SpawnError> {
        let environment = self.full_environment();
        let program = find_program(&self.command, &environment)?;
        let mut command = match guardian {
            Some(guardian) => {
                let mut command = new_command(&guardian.program);
                command.arg("guard").arg("--daemon");
                command.arg(std::process::id().to_string());
                command.arg("--").arg(&program);
                command
            }
            None => new_command(&program),
        };
        command
            .args(&self.arguments)
            .env_clear()
            .envs(environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        if let Some(directory) = &self.working_dir {
            command.current_dir(directory);
        }
        let failed = |source| SpawnError::Spawn {
            command: self.command.clone(),
            source,
        };
        let mut child = command.spawn().map_err(failed)?;
        let pipes = Pipes::take(&mut child)
            .ok_or_else(|| failed(io::Error::other("the child has no pipes")))?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let group = ChildGroup {
            running: Some(Running { child, group }),
            endings: endings.clone(),
        };
        Ok((group, pipes))
    }

    fn full_environment(&self) -> BTreeMap<OsString, OsString> {
        let inherited = std::env::vars_os().filter(|(name, _)| {
            name.to_str().is_some_and(|name| {
                INHERITED.contains(&name)
                    || INHERITED_PREFIXES
                        .iter()
                        .any(|prefix| name.starts_with(prefix))
            })
        });
        let own = self
            .environment
            .iter()
            .map(|(name, value)| (name.into(), value.into()));
        inherited.chain(own).collect()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the supervisor the ban points to"
)]
fn new_command(program: &Path) -> Command {
    Command::new(program)
}

/// Looks the program up as the system would, but before the start, so that a missing one is told
/// apart from one that started and failed.
fn find_program(
    command: &str,
    environment: &BTreeMap<OsString, OsString>,
) -> Result<PathBuf, SpawnError> {
    let not_found = || SpawnError::NotFound {
        command: command.to_owned(),
    };
    if command.contains('/') {
        let path = PathBuf::from(command);
        return match std::fs::metadata(&path) {
            Ok(metadata) if is_executable(&metadata) => Ok(path),
            Ok(_) => Err(SpawnError::NotExecutable { path }),
            Err(_) => Err(not_found()),
        };
    }
    let search = environment
        .get(&OsString::from("PATH"))
        .ok_or_else(not_found)?;
    std::env::split_paths(search)
        .map(|directory| directory.join(command))
        .find(|path| std::fs::metadata(path).is_ok_and(|metadata| is_executable(&metadata)))
        .ok_or_else(not_found)
}

fn is_executable(metadata: &std::fs::Metadata) -> bool {
    metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
}

// === impl ChildGroup ===

impl ChildGroup {
    pub(crate) fn id(&self) -> Option<u32> {
        self.running.as_ref()?.child.id()
    }

    /// Waits for the child to end by itself and tells how. Cancel safe.
    pub(crate) async fn wait(&mut self) -> io::Result<std::process::ExitStatus> {
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
        let left = tokio::time::timeout(AFTER_STDIN, self.child.wait()).await;
        if left.is_ok() && !self.group_is_alive() {
            return;
        }
        self.signal(Signal::TERM);
        let deadline = Instant::now() + AFTER_TERM;
        while Instant::now() < deadline {
            // Reaped on the way: a child that is dead but not waited for is still in its group.
            if matches!(self.child.try_wait(), Ok(Some(_))) && !self.group_is_alive() {
                return;
            }
            tokio::time::sleep(POLL).await;
        }
        self.signal(Signal::KILL);
        let _ = tokio::time::timeout(AFTER_KILL, self.child.wait()).await;
    }

    /// The group id stays ours while any member lives, so a signal to it reaches no other process
    /// unless the group is empty, which this rules out.
    fn group_is_alive(&self) -> bool {
        self.group
            .is_some_and(|group| test_kill_process_group(group).is_ok())
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group.filter(|_| self.group_is_alive()) {
            // A group that ended in this moment is what we want.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

// === impl Endings ===

impl Endings {
    /// Within this time a child is gone, whatever it does.
    pub(crate) const LONGEST: Duration = Duration::from_millis(3_600);

    pub(crate) fn new() -> Self {
        let tracker = TaskTracker::new();
        // Waiting is over whenever nothing is left; more may come later.
        tracker.close();
        Self(tracker)
    }

    /// Runs `ending` in the background; drops it where there is no runtime any more.
    pub(crate) fn spawn(&self, ending: impl Future<Output = ()> + Send + 'static) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            self.0.spawn_on(ending, &runtime);
        }
    }

    /// Waits until nothing is left, or as long as an ending may take.
    pub(crate) async fn wait(&self) {
        let _ = tokio::time::timeout(Self::LONGEST, self.0.wait()).await;
    }
}

impl Pipes {
    fn take(child: &mut Child) -> Option<Self> {
        Some(Self {
            stdin: child.stdin.take()?,
            stdout: child.stdout.take()?,
            stderr: child.stderr.take()?,
        })
    }
}
