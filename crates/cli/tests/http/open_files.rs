//! A daemon that may not open more files.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;
use testkit::{DEADLINE, Home, TestDaemon, wait_until};
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::support::api_key;
use crate::wire::{get, head, open, send, status};

/// The binary, with this many files at most.
fn with_files(folder: &Path, files: usize) -> Home {
    let script = folder.join("mcpproxy");
    let binary = env!("CARGO_BIN_EXE_mcpproxy");
    let text = format!("#!/bin/sh\nulimit -n {files}\nexec {binary} \"$@\"\n");
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).unwrap();
    Home::new(&script)
}

#[tokio::test]
async fn a_daemon_without_files_left_says_so_and_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = TestDaemon::start(with_files(folder.path(), 128), json!({})).await;
    assert!(daemon.log().contains("half the files"), "{}", daemon.log());
    let key = api_key(&daemon.home);
    let events = get("/events", &[("x-api-key", &key)]);
    let socket = daemon.home.path().join(".mcpproxy/mcpproxy.sock");
    // Watchers are busy, so none of them is closed to make room.
    let mut watchers = Vec::new();
    for _ in 0..60 {
        let mut stream = open(daemon.address()).await;
        assert_eq!(status(&mut stream, &events).await, 200);
        watchers.push(stream);
    }
    let mut over_socket = Vec::new();
    wait_until("no file is left", DEADLINE, async || {
        let mut stream = UnixStream::connect(&socket).await.unwrap();
        send(&mut stream, &events).await;
        over_socket.push(stream);
        daemon.log().contains("as many files open as it may")
    })
    .await;
    let mut waiting = open(daemon.address()).await;
    send(&mut waiting, &get("/healthz", &[])).await;
    drop(watchers);
    drop(over_socket);
    let answer = timeout(DEADLINE, head(&mut waiting)).await;
    assert!(answer.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200")));
    let times = daemon.log().matches("as many files open as it may").count();
    assert!(times <= 4, "logged {times} times");
}

#[tokio::test]
async fn the_daemon_may_open_as_many_files_as_the_system_lets_it() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("mcpproxy");
    let binary = env!("CARGO_BIN_EXE_mcpproxy");
    let text = format!("#!/bin/sh\nulimit -S -n 64\nexec {binary} \"$@\"\n");
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).unwrap();
    let daemon = TestDaemon::start(Home::new(&script), json!({})).await;
    let limits = fs::read_to_string(format!("/proc/{}/limits", daemon.pid())).unwrap();
    let files = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))
        .unwrap();
    let files: Vec<&str> = files.split_whitespace().collect();
    assert_eq!(files[0], files[1], "{limits}");
}
