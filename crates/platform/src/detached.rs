//! A process that outlives the one that starts it.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;

use tokio::process::{Child, Command};

/// What to execute, with the environment of this process.
#[derive(Debug)]
pub struct DetachedCommand {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    pub working_dir: PathBuf,
    /// Where the process writes its errors.
    pub stderr: File,
}

impl DetachedCommand {
    /// Starts the process. It has no terminal for input, and its stdout is the returned child's, for
    /// a word about how its start went. It outlives this
    /// process: it calls [`leave_session`] first.
    #[expect(
        clippy::disallowed_methods,
        reason = "the process is meant to go on when this one has ended"
    )]
    pub fn start(self) -> io::Result<Child> {
        Command::new(self.program)
            .args(self.arguments)
            .current_dir(self.working_dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(self.stderr)
            .spawn()
    }
}

/// Makes this process the leader of a session of its own, so that the end of the terminal, or of the
/// process group, it was started in does not concern it.
pub fn leave_session() -> io::Result<()> {
    rustix::process::setsid()?;
    Ok(())
}

/// The path of the program that runs, as it can be started again, also after it was replaced.
pub fn program_path() -> io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    // Linux marks the path of a file that was replaced.
    let replaced = path
        .to_str()
        .and_then(|path| path.strip_suffix(" (deleted)"));
    Ok(replaced.map_or(path.clone(), PathBuf::from))
}
