//! `mcpproxy doctor`: every problem by its code, with a daemon and without.

mod clock;
mod place;
mod service;
mod store;
mod tools;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use testkit::{DEADLINE, Home, Output, Script, Stdin, TestDaemon, Tool, wait_for};
use tokio::process::Command;

use crate::support::home;

/// A home without a daemon whose port is free.
fn quiet_home(mut config: Value) -> Home {
    let home = home();
    config["listen"] = "127.0.0.1:0".into();
    home.write_config(&config);
    set_mode(&home.config_file(), 0o600);
    set_mode(&home.path().join(".mcpproxy"), 0o700);
    home
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn place(home: &Home, name: &str, text: &str) {
    let file = home.path().join(name);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

/// One problem as `-o json` has it.
#[derive(Debug)]
struct Problem {
    code: String,
    cause: String,
    fix: String,
}

/// What doctor finds, after a look at the exit code and at each problem's completeness.
async fn problems(home: &Home, flags: &[&str], environment: &[(&str, &str)]) -> Vec<Problem> {
    let arguments = [&["doctor", "-o", "json"], flags].concat();
    read_report(&home.cli_with(arguments, Stdin::Empty, environment).await)
}

fn read_report(output: &Output) -> Vec<Problem> {
    let report = output.json();
    let checks = report["checks"].as_array().unwrap().iter();
    let problems = checks.filter(|it| it["status"] == "problem");
    let problems: Vec<Problem> = problems
        .map(|problem| {
            let word = |member: &str| {
                let word = problem[member].as_str().unwrap();
                assert!(!word.is_empty(), "{problem}");
                word.to_owned()
            };
            Problem {
                code: word("code"),
                cause: word("cause"),
                fix: word("fix"),
            }
        })
        .collect();
    output.ended_with(i32::from(!problems.is_empty()));
    assert_eq!(report["ok"], problems.is_empty());
    problems
}

async fn codes(home: &Home) -> Vec<String> {
    let problems = problems(home, &[], &[]).await.into_iter();
    problems.map(|problem| problem.code).collect()
}

/// The only problem there is, which has to be this one.
#[track_caller]
fn named<'a>(problems: &'a [Problem], code: &str) -> &'a Problem {
    match problems {
        [problem] if problem.code == code => problem,
        other => panic!("not {code} alone: {other:?}"),
    }
}

/// Runs a fix that is a command of ours, as it is printed.
async fn repair_by_ourselves(home: &Home, fix: &str) -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_mcpproxy"));
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", binary.parent().unwrap().display());
    let mut shell = program("sh");
    shell.args(["-c", fix]).current_dir(home.path());
    shell.env("PATH", path).env("HOME", home.path());
    let output = shell.env("EDITOR", "cat").output().await.unwrap();
    assert!(output.status.success(), "{fix}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Does what the fix says.
async fn repair(home: &Home, problem: &Problem) {
    let mut shell = program("sh");
    shell.args(["-c", &problem.fix]).current_dir(home.path());
    ran(shell).await;
}

#[expect(
    clippy::disallowed_methods,
    reason = "the program is killed when its handle is dropped"
)]
fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

async fn ran(mut command: Command) {
    let output = command.output().await.unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
}

#[tokio::test]
async fn a_healthy_daemon_has_no_problems() {
    let home = home();
    let upstream = home.upstream("up", &Script::new([Tool::read_only("look")]));
    let daemon = TestDaemon::with_servers(home, json!({"up": upstream.config()})).await;
    let home = &daemon.home;
    set_mode(&home.config_file(), 0o600);
    daemon.session_with(&["up:look"]).await;
    home.cli(["connect", "claude-code", "--approve", "read", "--yes"])
        .await
        .succeeded();
    assert_eq!(codes(home).await, [""; 0]);
    let table = home.cli(["doctor"]).await;
    table.succeeded();
    for word in [
        "server up",
        "answers, 1 tool",
        "client claude-code",
        "all is well",
        &daemon.url("/mcp"),
    ] {
        assert!(table.stdout.contains(word), "{word}: {}", table.stdout);
    }
}

#[tokio::test]
async fn an_empty_home_is_healthy() {
    let home = home();
    // Whoever runs the tests may use the default port.
    let output = home
        .cli(["doctor", "-o", "json", "--listen", "127.0.0.1:0"])
        .await;
    output.succeeded();
    assert!(
        !home.path().join(".mcpproxy/activity").exists(),
        "doctor made a log"
    );
}

#[tokio::test]
async fn a_config_that_is_not_valid_does_not_stop_the_other_checks() {
    let home = home();
    home.write_config_text("{\n  \"listen\": 7\n}");
    set_mode(&home.path().join(".mcpproxy"), 0o750);
    let output = home.cli(["doctor", "--listen", "127.0.0.1:0"]).await;
    output.ended_with(1);
    for word in [
        "CONFIG_INVALID",
        "line 2",
        "DATA_DIR_MODE",
        "chmod 700",
        "2 problems",
    ] {
        assert!(output.stdout.contains(word), "{word}: {}", output.stdout);
    }
}

#[tokio::test]
async fn modes_and_leftovers_are_seen() {
    let home = quiet_home(json!({"unknwon": 1}));
    place(&home, ".mcpproxy/api_key", "key");
    set_mode(&home.path().join(".mcpproxy/api_key"), 0o644);
    set_mode(&home.config_file(), 0o644);
    drop(
        std::os::unix::net::UnixListener::bind(home.path().join(".mcpproxy/mcpproxy.sock"))
            .unwrap(),
    );
    assert_eq!(
        codes(&home).await,
        [
            "CONFIG_WARNING",
            "CONFIG_MODE",
            "KEY_FILE_MODE",
            "SOCKET_STALE"
        ]
    );
}

#[tokio::test]
async fn a_port_that_somebody_else_has_is_seen() {
    let home = quiet_home(json!({}));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = home.cli(["doctor", "--listen", &address]).await;
    output.ended_with(1);
    assert!(output.stdout.contains("PORT_IN_USE"), "{}", output.stdout);
    let holder = format!("process {}", std::process::id());
    assert!(output.stdout.contains(&holder), "{}", output.stdout);
    assert!(
        output.stdout.contains("mcpproxy serve --listen 127.0.0.1:"),
        "{}",
        output.stdout
    );
}

#[tokio::test]
async fn servers_that_fail_are_told_apart() {
    let home = quiet_home(json!({"mcpServers": {
        "gone": {"command": "/nowhere/server"},
        "variable": {"command": "cat", "env": {"A": "${env:NOT_SET_ANYWHERE}"}},
        "dumb": {"command": "false"},
        "off": {"command": "/nowhere/server", "enabled": false}
    }}));
    // Nothing is started to be looked at: what is obvious is told, and that nobody was asked.
    let mut found = codes(&home).await;
    found.sort();
    assert_eq!(found, ["SERVER_COMMAND_MISSING", "SERVER_VARIABLE_MISSING"]);
    let shown = home.cli(["doctor"]).await.stdout;
    assert!(shown.contains("DAEMON_MISSING"), "{shown}");
    let found = wait_for("the servers have failed", DEADLINE, async || {
        home.cli(["upstream", "list"]).await.succeeded();
        let mut found = codes(&home).await;
        found.sort();
        (found.len() == 3).then_some(found)
    })
    .await;
    assert_eq!(found[1], "SERVER_FAILED");
}

/// The options that were given are needed again.
#[tokio::test]
async fn repairs_work_as_they_are_printed() {
    let home = home();
    let (folder, file) = (home.path().join("my data"), home.path().join("my config"));
    let config = json!({"listen": "127.0.0.1:0", "mcpServers": {
        "dumb": {"command": "sh", "args": ["-c", "echo 'out of cheese' >&2; exit 1"]},
        "gone": {"command": "/nowhere/server"},
        "remote": {"url": "http://127.0.0.1:1/mcp"},
    }});
    std::fs::write(&file, config.to_string()).unwrap();
    set_mode(&file, 0o600);
    let (folder, file) = (folder.to_str().unwrap(), file.to_str().unwrap());
    let flags = ["--data-dir", folder, "--config", file];
    let start = [&flags[..], &["restart"]].concat();
    home.cli(start).await.succeeded();
    let found = wait_for("all have failed", DEADLINE, async || {
        let found = problems(&home, &flags, &[]).await;
        let failed = found.iter().filter(|it| it.code == "SERVER_FAILED");
        let connecting = found.iter().any(|it| it.cause.starts_with("connecting"));
        (failed.count() == 2 && !connecting).then_some(found)
    })
    .await;
    let fixes: Vec<&str> = found.iter().map(|problem| &*problem.fix).collect();
    let [dumb, gone, remote] = fixes[..] else {
        panic!("{found:?}");
    };
    assert!(dumb.contains("upstream logs dumb"), "{dumb}");
    assert!(
        repair_by_ourselves(&home, dumb)
            .await
            .contains("out of cheese")
    );
    assert!(
        repair_by_ourselves(&home, remote)
            .await
            .contains("127.0.0.1:1")
    );
    repair_by_ourselves(&home, gone).await;
    let left = problems(&home, &flags, &[]).await;
    assert!(
        left.iter().all(|problem| problem.code == "SERVER_FAILED"),
        "{left:?}"
    );
    home.cli([&flags[..], &["stop"]].concat()).await.succeeded();
    // Another port, near the one that is taken, and the same data.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let found = problems(&home, &[&flags[..], &["--listen", &address]].concat(), &[]).await;
    let problem = found.iter().find(|it| it.code == "PORT_IN_USE").unwrap();
    let expected = format!("mcpproxy --config '{file}' --data-dir '{folder}' serve --listen ");
    let free = problem.fix.strip_prefix(&expected).unwrap();
    drop(std::net::TcpListener::bind(free).unwrap());
}

#[tokio::test]
async fn clients_that_are_broken_or_lead_elsewhere_are_seen() {
    let home = quiet_home(json!({}));
    place(&home, ".gemini/settings.json", "{");
    place(
        &home,
        ".cursor/mcp.json",
        r#"{"mcpServers": {"mcpproxy": {"command": "/nowhere/mcpproxy", "args": ["stdio"]}}}"#,
    );
    place(
        &home,
        ".claude.json",
        r#"{"mcpServers": {"mcpproxy": {"url": "http://127.0.0.1:8080/mcp"}}}"#,
    );
    place(
        &home,
        ".claude/settings.json",
        r#"{"permissions": {"allow": ["mcp__mcpproxy"]}}"#,
    );
    assert_eq!(
        codes(&home).await,
        [
            "CLIENT_CHANGES_UNASKED",
            "CLIENT_COMMAND_GONE",
            "CLIENT_FILE_BROKEN",
            "DAEMON_MISSING"
        ]
    );
    let address = ["doctor", "--listen", "127.0.0.1:1", "-o", "json"];
    let report = home.cli(address).await.json();
    assert!(report.to_string().contains("CLIENT_ADDRESS"), "{report}");
}

/// After a reboot, say: the client's entry leads to nobody.
#[tokio::test]
async fn a_client_without_its_daemon_is_seen() {
    let daemon = TestDaemon::start(home(), json!({})).await;
    set_mode(&daemon.home.config_file(), 0o600);
    let connect = ["connect", "claude-code", "--yes"];
    daemon.home.cli(connect).await.succeeded();
    assert_eq!(codes(&daemon.home).await, [""; 0]);
    let (home, _) = daemon.stop().await;
    let found = problems(&home, &[], &[]).await;
    let problem = named(&found, "DAEMON_MISSING");
    assert!(problem.cause.contains("claude-code"), "{problem:?}");
    assert_eq!(problem.fix, "mcpproxy serve");
    // A client that starts its own program needs no daemon.
    let connect = ["connect", "claude-code", "--stdio", "--yes"];
    home.cli(connect).await.succeeded();
    assert_eq!(codes(&home).await, [""; 0]);
}

#[tokio::test]
async fn permissions_are_read_back_per_lane() {
    let home = quiet_home(json!({}));
    home.cli(["connect", "codex", "--approve", "read", "--yes"])
        .await
        .succeeded();
    home.cli(["connect", "claude-code", "--yes"])
        .await
        .succeeded();
    let table = home.cli(["doctor", "permissions"]).await;
    table.succeeded();
    let row = |name: &str| {
        let line = table
            .stdout
            .lines()
            .find(|line| line.starts_with(name))
            .unwrap();
        line.split_whitespace()
            .skip(1)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(row("codex"), ["yes", "silent", "asks", "asks"]);
    assert_eq!(row("claude-code"), ["yes", "asks", "asks", "asks"]);
    assert_eq!(row("windsurf"), ["no", "unknown", "unknown", "unknown"]);
    assert!(
        table
            .stderr
            .contains("mcpproxy connect claude-code --approve read"),
        "{}",
        table.stderr
    );
    place(
        &home,
        ".claude/settings.json",
        r#"{"permissions": {"allow": ["mcp__mcpproxy", "mcp__mcpproxy__call_*"]}}"#,
    );
    let report = home.cli(["doctor", "permissions", "-o", "json"]).await;
    report.ended_with(1);
    let report = report.json();
    let claude = &report["clients"][0];
    assert_eq!(claude["tools"]["call_tool_destructive"], "silent");
    assert!(
        claude["notes"][0].as_str().unwrap().contains("ignored"),
        "{claude}"
    );
}
