//! The launcher executes nothing before its gate opens, and leaves no trace afterwards.

use std::process::{ExitStatus, Stdio};

use tempfile::TempDir;
use tokio::io::AsyncWriteExt;

use crate::support::{FIXTURE, command};

struct Outcome {
    status: ExitStatus,
    stdout: String,
    stderr: String,
}

/// Runs a command line through the launcher, with this on the pipe that is its gate and its stdin.
async fn launch(command_line: &[&str], stdin: &[u8]) -> Outcome {
    let mut launcher = command(FIXTURE)
        .arg("child-launcher")
        .args(command_line)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = launcher.stdin.take().unwrap();
    pipe.write_all(stdin).await.unwrap();
    drop(pipe);
    let output = launcher.wait_with_output().await.unwrap();
    Outcome {
        status: output.status,
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[tokio::test]
async fn a_gate_that_does_not_open_executes_nothing() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("ran");
    for stdin in [b"".as_slice(), b"{\"jsonrpc\":\"2.0\"}\n"] {
        let outcome = launch(&["touch", file.to_str().unwrap()], stdin).await;
        assert_eq!(outcome.status.code(), Some(1));
        assert!(!file.exists());
    }
    let outcome = launch(&["touch", file.to_str().unwrap()], b"\n").await;
    assert!(outcome.status.success() && file.exists());
}

#[tokio::test]
async fn all_that_follows_the_gate_is_left_for_the_command() {
    let outcome = launch(&["cat"], b"\n{}\n[]\n").await;
    assert_eq!(outcome.stdout, "{}\n[]\n");
}

/// Compares with the command started directly: the test runner may leave descriptors open.
#[tokio::test]
async fn the_command_inherits_no_descriptor_and_no_signal_setting_of_the_launcher() {
    let descriptors = ["ls", "/proc/self/fd"].as_slice();
    let signals = ["grep", "-E", "SigBlk|SigIgn", "/proc/self/status"].as_slice();
    for command_line in [descriptors, signals] {
        let mut plain = command(command_line[0]);
        plain.args(&command_line[1..]).stdin(Stdio::piped());
        let plain = String::from_utf8(plain.output().await.unwrap().stdout).unwrap();
        assert!(plain.lines().count() > 1, "{plain}");
        assert_eq!(launch(command_line, b"\n").await.stdout, plain);
    }
}

#[tokio::test]
async fn a_command_that_cannot_be_executed_says_why() {
    let outcome = launch(&["/does/not/exist"], b"\n").await;
    assert_eq!(outcome.status.code(), Some(127));
    let expected = "cannot run /does/not/exist: No such file or directory";
    assert!(outcome.stderr.starts_with(expected), "{}", outcome.stderr);
}
