//! A person's home: a temporary directory, a config in it, and the binary run from there.

use std::ffi::OsStr;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::conformance::Eras;
use crate::harness::process;
use crate::upstream::script::Script;
use crate::upstream::stdio::StdioUpstream;
use crate::upstream::{conformance_program, upstream_program};

/// How long one command may take.
const DEADLINE: Duration = Duration::from_mins(1);

/// A home directory that is removed at the end of the test.
#[derive(Debug)]
pub struct Home {
    folder: TempDir,
    /// Beside it are the programs of the upstreams.
    binary: PathBuf,
    program: PathBuf,
}

/// What a command left behind.
#[derive(Debug)]
pub struct Output {
    pub stdout: String,
    pub stderr: String,
    pub code: i32,
}

/// What a command reads from its stdin.
#[derive(Debug, Clone, Copy)]
pub enum Stdin<'a> {
    Empty,
    Text(&'a str),
}

impl Home {
    /// An empty home for the program at `binary`.
    pub fn new(binary: &Path) -> Self {
        Self::with_program(binary, binary)
    }

    /// An empty home for a copy of the program at `binary`, beside which upstreams are found.
    pub fn with_program(binary: &Path, program: &Path) -> Self {
        Self {
            program: program.to_owned(),
            // Short, because the path of a Unix socket must be.
            folder: tempfile::Builder::new()
                .prefix("mcp")
                .tempdir()
                .expect("a temporary directory"),
            binary: binary.to_owned(),
        }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Where the config is looked for when no flag says otherwise.
    pub fn config_file(&self) -> PathBuf {
        self.path().join(".mcpproxy/mcp_config.json")
    }

    pub fn write_config(&self, config: &Value) {
        self.write_config_text(&config.to_string());
    }

    /// Replaces the config as editors do: a new file that takes the place of the old.
    pub fn write_config_text(&self, text: &str) {
        let file = self.config_file();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(file.parent().expect("a folder"))
            .expect("a folder");
        let new = file.with_extension("new");
        std::fs::write(&new, text).expect("the config can be written");
        std::fs::rename(new, file).expect("the config can be replaced");
    }

    /// Puts a scripted upstream into this home.
    pub fn upstream(&self, name: &str, script: &Script) -> StdioUpstream {
        StdioUpstream::place(upstream_program(&self.binary), self.path(), name, script)
    }

    /// The entry for `mcpServers` of a conformance fixture over stdio.
    pub fn conformance_upstream(&self, eras: Eras) -> Value {
        let program = conformance_program(&self.binary);
        json!({"command": program, "args": ["--transport", "stdio", "--era", eras.as_str()]})
    }

    /// Runs the binary with these arguments.
    pub async fn cli<I: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = I>) -> Output {
        self.cli_with(arguments, Stdin::Empty, &[]).await
    }

    /// Like [`Home::cli`], with something on stdin and more in the environment.
    pub async fn cli_with<I: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = I>,
        stdin: Stdin<'_>,
        environment: &[(&str, &str)],
    ) -> Output {
        let mut command = self.command();
        command.args(arguments).envs(environment.iter().copied());
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary can be run");
        let mut pipe = child.stdin.take().expect("stdin is piped");
        if let Stdin::Text(text) = stdin {
            // A command that does not read its stdin closes it, which is its right.
            let _ = pipe.write_all(text.as_bytes()).await;
        }
        drop(pipe);
        let output = tokio::time::timeout(DEADLINE, child.wait_with_output())
            .await
            .expect("the command ends in time")
            .expect("the command can be waited for");
        Output {
            stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
            code: output.status.code().unwrap_or(-1),
        }
    }

    /// The binary in this home, with nothing of the surrounding environment but the search path.
    pub fn command(&self) -> Command {
        self.command_of(&self.program)
    }

    /// Another program in this home.
    #[expect(
        clippy::disallowed_methods,
        reason = "the program under test is killed when its handle is dropped"
    )]
    pub fn command_of(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", self.path())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .current_dir(self.path())
            .kill_on_drop(true);
        command
    }
}

impl Drop for Home {
    /// Commands start daemons in the background, and none may outlive its home.
    fn drop(&mut self) {
        for lock in locks_in(self.path(), 3) {
            let pid = std::fs::read_to_string(lock).ok();
            let Some(pid) = pid.and_then(|pid| pid.trim().parse().ok()) else {
                continue;
            };
            if process::runs_in(pid, self.path()) {
                process::kill(pid);
            }
        }
    }
}

/// The lock files of data directories at most so deep below a folder.
fn locks_in(folder: &Path, depth: usize) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found = Vec::new();
    for entry in entries {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && depth > 0 {
            found.extend(locks_in(&entry.path(), depth - 1));
        } else if entry.file_name() == "mcpproxy.lock" {
            found.push(entry.path());
        }
    }
    found
}

impl Output {
    /// The output of a command that has to succeed.
    #[track_caller]
    pub fn succeeded(&self) -> &Self {
        self.ended_with(0)
    }

    /// The output of a command that has to end with this code.
    #[track_caller]
    pub fn ended_with(&self, code: i32) -> &Self {
        let Self { stdout, stderr, .. } = self;
        assert_eq!(self.code, code, "stdout: {stdout}\nstderr: {stderr}");
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error} in {}", self.stdout))
    }
}
