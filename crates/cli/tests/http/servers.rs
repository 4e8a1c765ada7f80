//! What is done to a server over REST and on the command line, whatever the server does.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{DEADLINE, Record, Script, TestDaemon, Tool, process, wait_until};

use crate::support::{hangs_in_listing, home, rest};

/// An answer that did not wait for the server; most of it is for a busy machine.
const AT_ONCE: Duration = Duration::from_secs(5);

/// A daemon in front of an upstream called `up` that hangs in its listing, once it does.
/// The path is the file that is there once the listing was asked for.
async fn hanging() -> (TestDaemon, PathBuf) {
    let home = home();
    let listed = home.path().join("listed");
    let mut server = hangs_in_listing(&listed);
    server["timeout"] = json!("10s");
    let daemon = TestDaemon::with_servers(home, json!({"up": server})).await;
    asked_for_listing(&listed).await;
    (daemon, listed)
}

async fn asked_for_listing(listed: &Path) {
    wait_until("the listing is asked for", DEADLINE, async || {
        listed.exists()
    })
    .await;
}

/// A daemon in front of an upstream called `up` that only SIGKILL ends.
async fn stubborn() -> (TestDaemon, Record) {
    let home = home();
    let script = Script {
        stubborn: true,
        ..Script::new([Tool::read_only("look")])
    };
    let upstream = home.upstream("up", &script);
    let daemon = TestDaemon::with_servers(home, json!({"up": upstream.config()})).await;
    daemon.wait_for_server("up").await;
    (daemon, upstream.record())
}

async fn at_once(daemon: &TestDaemon, method: &str, path: &str) -> (u16, Value) {
    let begun = Instant::now();
    let answer = rest(daemon, method, path).await;
    assert!(
        begun.elapsed() < AT_ONCE,
        "{method} {path}: {:?}",
        begun.elapsed()
    );
    answer
}

#[tokio::test]
async fn a_server_that_hangs_is_restarted_switched_and_removed_at_once() {
    let (daemon, listed) = hanging().await;
    std::fs::remove_file(&listed).unwrap();
    let (status, answer) = at_once(&daemon, "POST", "/servers/up/restart").await;
    assert_eq!(status, 202, "{answer}");
    asked_for_listing(&listed).await;
    let (status, answer) = at_once(&daemon, "POST", "/servers/up/disable").await;
    assert_eq!(status, 202, "{answer}");
    wait_until("the server is off", DEADLINE, async || {
        daemon.api("/servers/up").await["state"] == "disabled"
    })
    .await;
    // The status says that the change is accepted, also where nothing is left to wait for.
    let (status, answer) = at_once(&daemon, "POST", "/servers/up/disable").await;
    assert_eq!(
        (status, &answer["data"]["state"]),
        (202, &json!("disabled"))
    );
    let (status, answer) = at_once(&daemon, "POST", "/servers/up/enable").await;
    assert_eq!(status, 202, "{answer}");
    assert_eq!(answer["data"]["state"], "connecting");
    let (status, answer) = at_once(&daemon, "DELETE", "/servers/up").await;
    assert_eq!(status, 202, "{answer}");
    wait_until("the server is gone", DEADLINE, async || {
        rest(&daemon, "GET", "/servers/up").await.0 == 404
    })
    .await;
}

#[tokio::test]
async fn a_server_is_stopping_until_its_process_is_gone() {
    let (daemon, record) = stubborn().await;
    let (status, answer) = at_once(&daemon, "DELETE", "/servers/up").await;
    assert_eq!(status, 202, "{answer}");
    let (status, answer) = rest(&daemon, "GET", "/servers/up").await;
    assert_eq!(
        (status, &answer["data"]["state"]),
        (200, &json!("stopping"))
    );
    wait_until("the server is gone", DEADLINE, async || {
        rest(&daemon, "GET", "/servers/up").await.0 == 404
    })
    .await;
    assert!(record.pids().into_iter().all(|pid| !process::is_alive(pid)));
}

#[tokio::test]
async fn commands_wait_for_the_outcome_unless_told_not_to() {
    let (daemon, record) = stubborn().await;
    let cli = async |arguments: &[&str]| daemon.home.cli(arguments).await;
    let restarted = cli(&["upstream", "restart", "up"]).await;
    assert_eq!(restarted.succeeded().stdout, "'up' is connected: 1 tool\n");
    let begun = Instant::now();
    let output = cli(&["upstream", "restart", "up", "--no-wait"]).await;
    assert_eq!(output.succeeded().stdout, "'up' is being connected\n");
    assert!(begun.elapsed() < AT_ONCE);
    daemon.wait_for_server("up").await;
    cli(&["upstream", "disable", "up"]).await.succeeded();
    assert!(record.pids().into_iter().all(|pid| !process::is_alive(pid)));
    let enabled = cli(&["upstream", "enable", "up"]).await;
    assert_eq!(enabled.succeeded().stdout, "'up' is connected: 1 tool\n");
    cli(&["upstream", "remove", "up"]).await.succeeded();
    assert!(record.pids().into_iter().all(|pid| !process::is_alive(pid)));
}

#[tokio::test]
async fn a_server_that_cannot_be_connected_is_the_outcome_of_the_command() {
    let daemon = TestDaemon::with_servers(home(), json!({"up": {"command": "false"}})).await;
    let output = daemon.home.cli(["upstream", "restart", "up"]).await;
    output.ended_with(1);
    assert!(
        output
            .stderr
            .contains("'up' is restarted, but not connected"),
        "{}",
        output.stderr
    );
}
