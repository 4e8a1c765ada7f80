//! The command line of a stdio upstream: which program it names, and what environment it gets.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use platform::{ChildCommand, ChildGroup, Endings, Pipes, StartError, Watchdog};

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

#[derive(Debug, thiserror::Error)]
pub(crate) enum SpawnError {
    #[error("command `{command}` was not found")]
    NotFound { command: String },
    #[error("`{}` is not executable", path.display())]
    NotExecutable { path: PathBuf },
    #[error("cannot start `{command}`")]
    Start { command: String, source: StartError },
}

// === impl CommandLine ===

impl CommandLine {
    pub(crate) async fn start(
        self,
        watchdog: &Watchdog,
        endings: &Endings,
    ) -> Result<(ChildGroup, Pipes), SpawnError> {
        let environment = self.full_environment();
        let program = find_program(&self.command, &environment)?;
        let child = ChildCommand {
            program,
            arguments: self.arguments,
            environment,
            working_dir: self.working_dir,
        };
        let started = watchdog.start_child(&child, endings).await;
        started.map_err(|source| SpawnError::Start {
            command: self.command,
            source,
        })
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
