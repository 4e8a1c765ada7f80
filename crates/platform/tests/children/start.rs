//! Starting a child: not without a watchdog, and not longer than its leader.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use platform::{ChildCommand, Endings, StartError, Watchdog};
use tempfile::TempDir;
use testkit::wait_until;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::support::{FIXTURE, GONE, STUBBORN, marked, marker};

fn shell(script: &str, marker: &str) -> ChildCommand {
    let path = std::env::var_os("PATH").unwrap();
    ChildCommand {
        program: "/bin/sh".into(),
        arguments: vec!["-c".to_owned(), script.to_owned()],
        environment: BTreeMap::from([("PATH".into(), path), ("MARKER".into(), marker.into())]),
        working_dir: None,
    }
}

/// A program that is the fixture as a launcher, and something else as a watchdog.
fn with_watchdog(folder: &Path, script: &str) -> Watchdog {
    let program = folder.join("program");
    let text = format!(
        "#!/bin/sh\ncase $1 in child-watchdog) {script};; *) exec {FIXTURE} \"$@\";; esac\n"
    );
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    Watchdog::of_program(program)
}

async fn does_not_run(watchdog_script: &str) {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("ran");
    let watchdog = with_watchdog(folder.path(), watchdog_script);
    let marker = marker();
    let command = shell(&format!("echo > {}", file.display()), &marker);
    let started = watchdog.start_child(&command, &Endings::default()).await;
    assert!(matches!(started, Err(StartError::Unacknowledged(_))));
    wait_until("the launcher is gone", GONE, async || {
        marked(&marker).is_empty()
    })
    .await;
    assert!(!file.exists());
}

#[tokio::test]
async fn no_command_runs_that_the_watchdog_does_not_acknowledge() {
    tokio::join!(
        does_not_run("exit 1"),
        does_not_run("exec cat > /dev/null"),
        // It acknowledges another group than the one it was told of.
        does_not_run("printf '222233333333'; exec cat > /dev/null"),
    );
}

#[tokio::test]
async fn a_group_does_not_outlive_its_leader() {
    let watchdog = Watchdog::of_program(FIXTURE.into());
    let (endings, marker) = (Endings::default(), marker());
    let command = shell(&format!("({STUBBORN}) & echo up; exit 7"), &marker);
    let (mut child, pipes) = watchdog.start_child(&command, &endings).await.unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(pipes.stdout);
    stdout.read_line(&mut line).await.unwrap();
    assert_eq!(child.wait().await.unwrap().code(), Some(7));
    assert!(!marked(&marker).is_empty());
    drop(child);
    endings.wait().await;
    wait_until("the group is gone", GONE, async || {
        marked(&marker).is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_program_that_is_not_there_is_an_error_of_the_start() {
    let watchdog = Watchdog::of_program("/does/not/exist".into());
    let started = watchdog
        .start_child(&shell("", ""), &Endings::default())
        .await;
    assert!(matches!(started, Err(StartError::Spawn(_))));
}
