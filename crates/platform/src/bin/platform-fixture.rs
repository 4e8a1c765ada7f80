//! For tests: a program that can be launcher and watchdog, and otherwise is a parent of children.
//!
//! `platform-fixture MARKER` starts a child for every line of its stdin, `sh -c LINE` with `MARKER` in
//! its environment, keeps all of them, and ends with its stdin. A child's stdout is discarded.

use std::collections::BTreeMap;
use std::process::ExitCode;

use platform::{ChildCommand, ChildGroup, Endings, Pipes, Watchdog};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::task::JoinSet;

fn main() -> ExitCode {
    if let Some(code) = platform::run_internal_command() {
        return code;
    }
    let Some(marker) = std::env::args().nth(1) else {
        return ExitCode::FAILURE;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => runtime.block_on(supervise(&marker)),
        Err(_) => ExitCode::FAILURE,
    }
}

async fn supervise(marker: &str) -> ExitCode {
    let watchdog = Watchdog::of_this_program();
    let endings = Endings::default();
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    // The children are started side by side, as a daemon starts its upstreams.
    let mut children = JoinSet::new();
    while let Ok(Some(line)) = lines.next_line().await {
        children.spawn(keep(watchdog.clone(), shell(line, marker), endings.clone()));
    }
    drop(children);
    endings.wait().await;
    ExitCode::SUCCESS
}

/// Holds on to a child and its pipes, so that only the end of this process closes them.
async fn keep(watchdog: Watchdog, command: ChildCommand, endings: Endings) {
    let started: Option<(ChildGroup, Pipes)> = watchdog.start_child(&command, &endings).await.ok();
    std::future::pending::<()>().await;
    drop(started);
}

fn shell(script: String, marker: &str) -> ChildCommand {
    let path = std::env::var_os("PATH").unwrap_or_default();
    ChildCommand {
        program: "/bin/sh".into(),
        arguments: vec!["-c".to_owned(), script],
        environment: BTreeMap::from([("PATH".into(), path), ("MARKER".into(), marker.into())]),
        working_dir: None,
    }
}
