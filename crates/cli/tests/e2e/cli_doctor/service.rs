//! A daemon that does not answer as it should, on its socket or on its port.

use std::os::unix::fs::PermissionsExt;

use axum::Router;
use axum::routing::get;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testkit::{Home, TestDaemon};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, UnixListener};

use super::{codes, named, problems, quiet_home, repair, set_mode};
use crate::support::home;

fn listen_on_socket(home: &Home) -> UnixListener {
    let path = home.path().join(".mcpproxy/mcpproxy.sock");
    let listener = UnixListener::bind(&path).unwrap();
    set_mode(&path, 0o600);
    listener
}

/// The answers of a daemon that says it listens there.
fn answers(listen: &str) -> Router {
    let data = |data: Value| {
        let answer = json!({"success": true, "data": data, "request_id": "1"}).to_string();
        get(async move || answer)
    };
    Router::new()
        .route(
            "/api/v1/status",
            data(json!({"listen": listen, "pid": 1, "version": "0"})),
        )
        .route(
            "/api/v1/activity/verify",
            data(json!({"valid": true, "records": 0})),
        )
        .route("/api/v1/activity", data(json!({"activities": []})))
        .route("/healthz", get(async || "ok"))
}

fn servers() -> Router {
    let answer = json!({"success": true, "data": {"servers": []}, "request_id": "1"}).to_string();
    Router::new().route("/api/v1/servers", get(async move || answer))
}

/// What replaces a process that listens on the socket and does not answer.
fn replace() -> String {
    format!("kill -9 {}; mcpproxy serve", std::process::id())
}

#[tokio::test]
async fn a_socket_that_others_can_open_is_seen() {
    let daemon = TestDaemon::start(home(), json!({})).await;
    let home = &daemon.home;
    set_mode(&home.config_file(), 0o600);
    let socket = home.path().join(".mcpproxy/mcpproxy.sock");
    set_mode(&socket, 0o666);
    let found = problems(home, &[], &[]).await;
    repair(home, named(&found, "SOCKET_MODE")).await;
    assert_eq!(codes(home).await, [""; 0]);
    let mode = std::fs::metadata(socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn a_daemon_that_hangs_is_seen_and_hangs_nobody() {
    let servers = json!({"up": {"command": "cat"}});
    let daemon = TestDaemon::with_servers(home(), servers).await;
    set_mode(&daemon.home.config_file(), 0o600);
    let pid = i32::try_from(daemon.pid()).ok().and_then(Pid::from_raw);
    kill_process(pid.unwrap(), Signal::STOP).unwrap();
    let found = problems(&daemon.home, &[], &[]).await;
    let problem = named(&found, "DAEMON_UNRESPONSIVE");
    let expected = format!("kill -9 {}; mcpproxy serve", daemon.pid());
    assert_eq!(problem.fix, expected);
    let connect = ["connect", "claude-code", "--dry-run"];
    let preview = daemon.home.cli(connect).await;
    assert!(preview.succeeded().stdout.contains(daemon.address()));
    for command in [["tools", "list"], ["upstream", "list"]] {
        let waited = daemon.home.cli(command).await;
        waited.ended_with(3);
        assert!(waited.stderr.contains("does not answer"), "{waited:?}");
        assert!(waited.stderr.contains("mcpproxy doctor"), "{waited:?}");
    }
    // The fix is what comes next, without the shell.
    let daemon = TestDaemon::start(daemon.killed().await, json!({})).await;
    set_mode(&daemon.home.config_file(), 0o600);
    assert_eq!(codes(&daemon.home).await, [""; 0]);
}

/// The daemon goes on with the last good config, and everything else is looked at through it.
#[tokio::test]
async fn a_config_that_became_invalid_is_all_that_is_wrong() {
    let servers = json!({"up": {"command": "cat", "enabled": false}});
    let daemon = TestDaemon::with_servers(home(), servers).await;
    daemon.home.write_config_text("{\"mcpServers\": {}, oops}");
    let output = daemon.home.cli(["doctor", "-o", "json"]).await;
    output.ended_with(1);
    assert!(output.stderr.contains("last good config"), "{output:?}");
    let report = output.json();
    assert_eq!(report["problems"], 1, "{report}");
    let checks = report["checks"].as_array().unwrap();
    let status = |check: &str| &checks.iter().find(|it| it["check"] == check).unwrap()["status"];
    assert_eq!(status("config"), "problem");
    for check in ["port", "activity_log", "server"] {
        assert_eq!(status(check), "ok", "{report}");
    }
}

#[tokio::test]
async fn somebody_else_on_the_socket_is_no_daemon() {
    let home = quiet_home(json!({}));
    let listener = listen_on_socket(&home);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"220 who is there?\r\n").await;
        }
    });
    let found = problems(&home, &[], &[]).await;
    assert_eq!(named(&found, "DAEMON_UNRESPONSIVE").fix, replace());
}

#[tokio::test]
async fn a_port_that_does_not_answer_is_seen() {
    let home = quiet_home(json!({}));
    // One that nobody listens on, and one where connections are taken and nothing is said.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent_address = silent.local_addr().unwrap().to_string();
    for address in ["127.0.0.1:1", &silent_address] {
        let listener = listen_on_socket(&home);
        let daemon = axum::serve(listener, answers(address).merge(servers()));
        let daemon = tokio::spawn(daemon.into_future());
        let found = problems(&home, &[], &[]).await;
        let problem = named(&found, "PORT_UNREACHABLE");
        assert_eq!(problem.fix, format!("curl -v http://{address}/healthz"));
        daemon.abort();
        std::fs::remove_file(home.path().join(".mcpproxy/mcpproxy.sock")).unwrap();
    }
}

#[tokio::test]
async fn a_daemon_that_does_not_tell_about_its_servers_is_seen() {
    let home = quiet_home(json!({}));
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let router = answers(&port.local_addr().unwrap().to_string());
    let _on_port = tokio::spawn(axum::serve(port, router.clone()).into_future());
    let on_socket = axum::serve(listen_on_socket(&home), router);
    let _on_socket = tokio::spawn(on_socket.into_future());
    let found = problems(&home, &[], &[]).await;
    assert_eq!(named(&found, "SERVERS_UNKNOWN").fix, "mcpproxy restart");
}
