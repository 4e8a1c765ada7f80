//! One daemon per data directory: started by whoever needs it, shared by all, replaced by a newer
//! one, and gone when it is told to.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use testkit::{
    DEADLINE, Home, Record, Script, Session, TestDaemon, Tool, http_client, process, wait_for,
    wait_until,
};
use tokio::net::UnixListener;

use crate::stdio::Client;
use crate::support::{call, home, read};

/// A home with one upstream in its config and no daemon.
fn prepared(more: &Value) -> (Home, Record) {
    prepared_in(home(), more)
}

fn prepared_in(home: Home, more: &Value) -> (Home, Record) {
    let tools = [Tool::read_only("look"), Tool::echo("make_note")];
    let upstream = home.upstream("up", &Script::new(tools));
    let mut config = json!({"listen": free_address(), "mcpServers": {"up": upstream.config()}});
    let more = more.as_object().unwrap().clone();
    config.as_object_mut().unwrap().extend(more);
    home.write_config(&config);
    (home, upstream.record())
}

fn free_address() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

/// What the daemon says of itself; `None` if there is none.
async fn status(home: &Home) -> Option<Value> {
    let output = home.cli(["status", "-o", "json"]).await;
    (output.code == 0).then(|| output.json())
}

async fn pid(home: &Home) -> u32 {
    let status = status(home).await.expect("a daemon runs");
    u32::try_from(status["pid"].as_u64().unwrap()).unwrap()
}

#[tokio::test]
async fn a_command_starts_it_and_the_next_ones_share_it() {
    let (home, record) = prepared(&json!({}));
    home.cli(["call", "tool-read", "up:look"]).await.succeeded();
    let first = status(&home).await.unwrap();
    assert_eq!(first["started_by"]["kind"], "command", "{first}");
    assert_eq!(first["started_by"]["command"], "call", "{first}");
    let list = home.cli(["tools", "list"]).await;
    assert!(list.succeeded().stdout.contains("up:look"), "{list:?}");
    let mut client = Client::start(&home).await;
    client.wait_for("up:look").await;
    assert_eq!(status(&home).await.unwrap()["pid"], first["pid"]);
    assert_eq!(record.pids().len(), 1, "one process for everybody");
    // It belongs to no terminal: its session is its own.
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", first["pid"])).unwrap();
    let session = stat.rsplit(')').next().unwrap().split_whitespace().nth(3);
    assert_eq!(session, first["pid"].to_string().as_str().into());
    let shown = home.cli(["status"]).await;
    let by = "in the background by `mcpproxy call`";
    assert!(shown.stdout.contains(by), "{shown:?}");
    // It has a log, which can be read when it has gone.
    home.cli(["stop"]).await.succeeded();
    let logs = home.cli(["logs"]).await;
    assert!(logs.stdout.contains("the daemon is ready"), "{logs:?}");
}

#[tokio::test]
async fn many_that_start_it_at_once_end_with_one() {
    let (home, record) = prepared(&json!({}));
    let call = || home.cli(["call", "tool-read", "up:look"]);
    let calls = futures(std::iter::repeat_with(call).take(6));
    let clients = futures((0..2).map(|_| async {
        let mut client = Client::start(&home).await;
        client.wait_for("up:look").await;
    }));
    let (outputs, _) = tokio::join!(calls, clients);
    for output in outputs {
        output.succeeded();
    }
    assert_eq!(record.pids().len(), 1);
    let daemons = process::all().filter(|pid| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        process::runs_in(*pid, home.path()) && contains(&command, b"--started-by")
    });
    assert_eq!(daemons.count(), 1);
}

/// All at once, each to its end.
async fn futures<F: Future>(all: impl Iterator<Item = F>) -> Vec<F::Output> {
    futures_util::future::join_all(all).await
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[tokio::test]
async fn serve_takes_over_from_it_and_keeps_its_clients() {
    let (home, _) = prepared(&json!({}));
    let mut client = Client::start(&home).await;
    client.wait_for("up:look").await;
    let before = pid(&home).await;
    let mut serve = home.command().arg("serve").spawn().unwrap();
    let after = wait_for("serve took over", DEADLINE, async || {
        let status = status(&home).await?;
        (status["started_by"]["kind"] == "terminal").then(|| status["pid"].clone())
    })
    .await;
    assert_eq!(after, serve.id().unwrap());
    assert!(!process::is_alive(before));
    assert_ne!(client.call("up:look").await["isError"], true);
    // One that somebody asked for does not make room.
    let second = home.cli(["serve"]).await;
    assert!(second.ended_with(1).stderr.contains("another mcpproxy"));
    serve.kill().await.unwrap();
}

#[tokio::test]
async fn after_a_stop_a_client_starts_it_again_only_when_it_asks_for_something() {
    let (home, record) = prepared(&json!({}));
    let mut client = Client::start(&home).await;
    client.wait_for("up:look").await;
    let stopped = home.cli(["stop"]).await;
    assert!(stopped.succeeded().stdout.contains("has ended"));
    let again = home.cli(["stop"]).await;
    assert_eq!(again.succeeded().stdout, "no daemon is running\n");
    wait_until("the upstream is gone", DEADLINE, async || {
        !process::is_alive(record.pids()[0])
    })
    .await;
    // The client tries to get its stream back, and starts nothing for that.
    let socket = home.path().join(".mcpproxy/mcpproxy.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let attempt = tokio::time::timeout(DEADLINE, listener.accept()).await;
    drop((attempt.unwrap().unwrap(), listener));
    std::fs::remove_file(&socket).unwrap();
    assert!(status(&home).await.is_none());
    assert_ne!(client.call("up:look").await["isError"], true);
    let status = status(&home).await.unwrap();
    assert_eq!(status["started_by"]["command"], "stdio", "{status}");
}

#[tokio::test]
async fn an_unused_one_ends_if_that_is_wanted() {
    let (home, _) = prepared(&json!({"exit_when_idle": "1s"}));
    let mut client = Client::start(&home).await;
    client.wait_for("up:look").await;
    let daemon = pid(&home).await;
    drop(client);
    wait_until("the daemon is gone", DEADLINE, async || {
        !process::is_alive(daemon)
    })
    .await;
    let logs = home.cli(["logs"]).await;
    assert!(logs.stdout.contains("no client has connected"), "{logs:?}");
}

#[tokio::test]
async fn a_port_that_is_taken_keeps_nobody_from_calling() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (home, _) = prepared(&json!({ "listen": address }));
    home.cli(["call", "tool-read", "up:look"]).await.succeeded();
    let shown = home.cli(["status"]).await;
    assert!(shown.stdout.contains(&format!("{address} was taken")));
    // Somebody who asks for it has to have it.
    let serve = home.cli(["serve"]).await;
    assert!(serve.ended_with(1).stderr.contains("cannot listen"));
}

#[tokio::test]
async fn why_it_cannot_start_is_told_to_whoever_needs_it() {
    let (home, _) = prepared(&json!({}));
    // A directory where the log is to be.
    std::fs::create_dir_all(home.path().join(".mcpproxy/daemon.log")).unwrap();
    let refused = home.cli(["tools", "list"]).await;
    refused.ended_with(1);
    assert!(refused.stderr.contains("daemon"), "{refused:?}");
    std::fs::remove_dir(home.path().join(".mcpproxy/daemon.log")).unwrap();
    std::fs::create_dir_all(home.path().join(".mcpproxy/activity")).unwrap();
    std::fs::write(home.path().join(".mcpproxy/pins"), "not a directory").unwrap();
    let refused = home.cli(["tools", "list"]).await;
    let told = &refused.ended_with(1).stderr;
    assert!(told.contains("the daemon cannot start"), "{told}");
    assert!(told.contains("why:") && told.contains("do:"), "{told}");
}

/// The same program with a higher version, at another place.
fn newer(of: &Path, at: &Path) -> PathBuf {
    let version = env!("CARGO_PKG_VERSION").as_bytes();
    let mut newer = version.to_vec();
    let last = newer.last_mut().unwrap();
    assert!(last.is_ascii_digit() && *last < b'9');
    *last += 1;
    let mut program = std::fs::read(of).unwrap();
    let mut place = 0;
    while let Some(found) = memchr::memmem::find(&program[place..], version) {
        program[place + found..][..newer.len()].copy_from_slice(&newer);
        place += found + newer.len();
    }
    std::fs::write(at, program).unwrap();
    std::fs::set_permissions(at, std::fs::metadata(of).unwrap().permissions()).unwrap();
    at.to_owned()
}

/// A home whose program is a copy that can be replaced.
fn upgradable() -> (Home, Record, PathBuf) {
    let built = Path::new(env!("CARGO_BIN_EXE_mcpproxy"));
    // Beside the programs of the upstreams.
    let folder = tempfile::Builder::new()
        .prefix("up")
        .tempdir_in(built.parent().unwrap());
    let program = folder.unwrap().keep().join("mcpproxy");
    std::fs::copy(built, &program).unwrap();
    let (home, record) = prepared_in(Home::with_program(built, &program), &json!({}));
    (home, record, program)
}

fn upgrade(program: &Path) {
    let next = newer(program, &program.with_extension("next"));
    std::fs::rename(next, program).unwrap();
}

#[tokio::test]
async fn an_upgrade_is_not_noticed_by_whoever_is_connected() {
    let (home, record, program) = upgradable();
    let mut one = Client::start(&home).await;
    one.wait_for("up:look").await;
    let mut two = Client::start(&home).await;
    two.wait_for("up:look").await;
    let before = status(&home).await.unwrap();
    let url = format!("http://{}/mcp", before["listen"].as_str().unwrap());
    let made = record.calls().len();

    let done = Arc::new(AtomicBool::new(false));
    let stdio = |mut client: Client| {
        let done = Arc::clone(&done);
        async move {
            let mut calls = 0;
            while !done.load(Ordering::Relaxed) {
                let result = client.call("up:look").await;
                assert_ne!(result["isError"], true, "{result}");
                calls += 1;
            }
            calls
        }
    };
    let http = {
        let done = Arc::clone(&done);
        async move {
            let mut calls = 0;
            while !done.load(Ordering::Relaxed) {
                calls += usize::from(modern_call(&url).await);
            }
            calls
        }
    };
    let commands = async {
        let look = ["call", "tool-read", "up:look"];
        for _ in 0..3 {
            home.cli(look).await.succeeded();
        }
        upgrade(&program);
        for _ in 0..3 {
            home.cli(look).await.succeeded();
        }
        done.store(true, Ordering::Relaxed);
        6
    };
    let (one, two, http, commands) = tokio::join!(stdio(one), stdio(two), http, commands);
    let after = status(&home).await.unwrap();
    assert_ne!(after["version"], before["version"]);
    assert_ne!(after["pid"], before["pid"]);
    assert_eq!(after["started_by"]["kind"], "command");
    // Every call that was answered reached the upstream once, and is in the log.
    let answered = one + two + http + commands;
    assert_eq!(record.calls().len() - made, answered);
    let summary = home.cli(["activity", "verify"]).await;
    summary.succeeded();
    std::fs::remove_dir_all(program.parent().unwrap()).unwrap();
}

/// One call of a client that speaks the modern era; `false` if the daemon was not there to take it.
async fn modern_call(url: &str) -> bool {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    });
    let params =
        json!({"name": "call_tool_read", "arguments": call("up:look", "read"), "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let sent = http_client()
        .post(url)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "call_tool_read")
        .body(body.to_string())
        .send()
        .await;
    let answer = match sent {
        Ok(answer) if answer.status() == 503 => return false,
        Ok(answer) => answer,
        Err(error) => {
            assert!(error.is_connect(), "{error:?}");
            return false;
        }
    };
    assert!(answer.status().is_success(), "{}", answer.status());
    let text = answer.text().await.unwrap();
    assert!(!text.contains("\"isError\":true"), "{text}");
    true
}

#[tokio::test]
async fn an_older_command_leaves_a_newer_daemon_alone() {
    let (home, _, program) = upgradable();
    let older = program.with_extension("older");
    std::fs::copy(&program, &older).unwrap();
    upgrade(&program);
    home.cli(["tools", "list"]).await.succeeded();
    let daemon = pid(&home).await;
    let listed = home.command_of(&older).args(["tools", "list"]).output();
    let listed = listed.await.unwrap();
    assert!(listed.status.success(), "{listed:?}");
    assert_eq!(pid(&home).await, daemon);
    std::fs::remove_dir_all(program.parent().unwrap()).unwrap();
}

#[tokio::test]
async fn commands_that_only_read_start_nothing() {
    let (home, _) = prepared(&json!({}));
    for arguments in [
        &["activity", "list"][..],
        &["activity", "verify"],
        &["config", "show"],
        &["doctor"],
        &["connect", "--list"],
    ] {
        home.cli(arguments).await;
    }
    assert!(status(&home).await.is_none());
    assert!(!home.path().join(".mcpproxy/mcpproxy.lock").exists());
}

#[tokio::test]
async fn a_restart_is_one_even_for_a_daemon_in_a_terminal() {
    let (home, _) = prepared(&json!({}));
    let config: Value =
        serde_json::from_slice(&std::fs::read(home.config_file()).unwrap()).unwrap();
    let daemon = TestDaemon::start(home, config).await;
    let session = daemon.session_with(&["up:look"]).await;
    read(&session, "up:look").await;
    let restarted = daemon.home.cli(["restart"]).await;
    assert!(restarted.succeeded().stdout.contains("in place of"));
    assert!(restarted.stderr.contains("in the background now"));
    let session = Session::open(&daemon.url("/mcp")).await;
    daemon.wait_for_tool(&session, "up:look").await;
}
