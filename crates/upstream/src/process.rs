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

/// How long a child gets to leave after its stdin closed, and again after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(2);

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

/// A running child. Dropping it ends the whole group at once; [`ChildGroup::stop`] asks first.
#[derive(Debug)]
pub(crate) struct ChildGroup {
    child: Child,
    group: Option<Pid>,
}

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
        Ok((ChildGroup { child, group }, pipes))
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
        self.child.id()
    }

    /// Waits for the child to end by itself and tells how.
    pub(crate) async fn wait(&mut self) -> io::Result<std::process::ExitStatus> {
        self.child.wait().await
    }

    /// Waits for a child whose stdin is closed; then asks the group to end; then ends it.
    pub(crate) async fn stop(mut self) {
        if tokio::time::timeout(PATIENCE, self.child.wait())
            .await
            .is_err()
        {
            self.signal(Signal::TERM);
            let _ = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        }
        // The drop sends SIGKILL to whatever of the group is left.
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // A group that is gone already is what we want.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for ChildGroup {
    fn drop(&mut self) {
        // The group id stays ours while any member lives, so this reaches nobody else's process
        // unless the group is empty, which the test rules out.
        if self
            .group
            .is_some_and(|group| test_kill_process_group(group).is_ok())
        {
            self.signal(Signal::KILL);
        }
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
