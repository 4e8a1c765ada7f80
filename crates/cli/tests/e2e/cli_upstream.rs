//! `mcpproxy upstream`: the servers, with a daemon and without one.

use std::process::Stdio;

use serde_json::{Value, json};
use testkit::{DEADLINE, Home, Output, Script, Stdin, StdioUpstream, TestDaemon, Tool, wait_until};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::support::home;

/// A home with one server that has a tool for each lane, and one that cannot be started.
fn servers(home: &Home) -> Value {
    let tools = [
        Tool::read_only("look"),
        Tool::annotated(
            "save",
            &json!({"readOnlyHint": false, "destructiveHint": false}),
        ),
        Tool::destructive("wipe"),
    ];
    json!({
        "up": home.upstream("up", &Script::new(tools)).config(),
        "gone": {"command": "no-such-program-anywhere"},
        "off": {"command": "not-started", "enabled": false},
    })
}

#[tokio::test]
async fn the_list_shows_states_lanes_and_what_to_do() {
    let home = home();
    let config = json!({"mcpServers": servers(&home)});
    let daemon = TestDaemon::start(home, config).await;
    daemon.session_with(&["up:look"]).await;
    wait_until("the other server failed", DEADLINE, async || {
        daemon.api("/servers/gone").await["state"] == "failed"
    })
    .await;
    assert_list(&daemon.home).await;
    let (home, _) = daemon.stop().await;
    // The next list starts a daemon, and its servers need a moment.
    wait_until("all servers have come to rest", DEADLINE, async || {
        let listed = home.cli(["upstream", "list"]).await;
        !listed.succeeded().stdout.contains("connecting")
    })
    .await;
    assert_list(&home).await;
}

async fn assert_list(home: &Home) {
    let output = home.cli(["upstream", "list"]).await;
    output.succeeded();
    let line = |name: &str| -> Vec<&str> {
        let mut lines = output.stdout.lines();
        let line = lines.find(|line| line.split_whitespace().next() == Some(name));
        line.unwrap_or_else(|| panic!("{name} in {}", output.stdout))
            .split_whitespace()
            .collect()
    };
    assert_eq!(line("up"), ["up", "ready", "3", "1", "1", "1"]);
    assert_eq!(line("gone")[1], "failed");
    assert_eq!(line("off")[1], "disabled");
    assert!(
        output
            .stderr
            .contains("do: install `no-such-program-anywhere`"),
        "{}",
        output.stderr
    );
    let data = home
        .cli(["upstream", "ls", "-o", "json"])
        .await
        .succeeded()
        .json();
    assert_eq!(data["servers"].as_array().unwrap().len(), 3, "{data}");
}

/// A server that answers every request with this status.
async fn answering(status: u16) -> String {
    let status = http::StatusCode::from_u16(status).unwrap();
    let router = axum::Router::new().fallback(async move || status);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(axum::serve(listener, router).into_future());
    url
}

#[tokio::test]
async fn a_server_that_wants_credentials_says_how_to_give_them() {
    for (status, words) in [(401, "Unauthorized"), (403, "Forbidden")] {
        let url = answering(status).await;
        let home = home();
        home.write_config(&json!({}));
        let added = home.cli(["upstream", "add", "remote", "--url", &url]).await;
        added.ended_with(1);
        let command = format!(
            "mcpproxy upstream add remote --url {url} --header 'Authorization=Bearer ${{env:TOKEN}}'"
        );
        for part in ["login or", &command, words] {
            assert!(added.stderr.contains(part), "{part}: {added:?}");
        }
        assert!(!added.stderr.contains("OAuth"), "{added:?}");
        home.write_config(&json!({"mcpServers": {"remote": {"url": url}}}));
        wait_until("the list says what to do", DEADLINE, async || {
            let listed = home.cli(["upstream", "list"]).await;
            let parts = ["login or", "mcpServers.remote.headers.Authorization"];
            parts.iter().all(|part| listed.stderr.contains(part))
        })
        .await;
    }
}

#[tokio::test]
async fn no_servers_are_not_an_error() {
    let home = home();
    home.write_config(&json!({}));
    let output = home.cli(["upstream", "list"]).await;
    assert_eq!(output.succeeded().stdout, "");
    assert!(output.stderr.contains("upstream add"), "{}", output.stderr);
}

/// What `upstream add` is given to start a scripted server.
fn command_of(upstream: &StdioUpstream) -> Vec<String> {
    let config = upstream.config();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let arguments = config["args"].as_array().unwrap().iter().map(text);
    std::iter::once(text(&config["command"]))
        .chain(arguments)
        .collect()
}

async fn add(home: &Home, options: &[&str], command: &[String]) -> Output {
    let mut arguments = vec!["upstream".to_owned(), "add".to_owned()];
    arguments.extend(options.iter().map(|option| (*option).to_owned()));
    arguments.push("--".to_owned());
    arguments.extend_from_slice(command);
    home.cli(arguments).await
}

fn saved(home: &Home) -> Value {
    serde_json::from_slice(&std::fs::read(home.config_file()).unwrap()).unwrap()
}

#[tokio::test]
async fn a_server_is_added_after_a_look_at_it() {
    let home = home();
    let tools = [Tool::read_only("look"), Tool::destructive("wipe")];
    let first = home.upstream("first", &Script::new(tools.clone()));
    let second = home.upstream("second", &Script::new(tools));
    // Nobody has run anything here before.
    let options = ["first", "--env", "TOKEN=${env:SECRET}", "--timeout", "30s"];
    let output = home
        .cli_with(
            ["upstream", "add"]
                .into_iter()
                .map(str::to_owned)
                .chain(options.map(str::to_owned))
                .chain(["--".to_owned()])
                .chain(command_of(&first)),
            Stdin::Empty,
            &[("SECRET", "value")],
        )
        .await;
    output.succeeded();
    assert!(output.stdout.contains("first:look"), "{}", output.stdout);
    assert!(output.stdout.contains("D destructive"), "{}", output.stdout);
    assert!(
        output.stdout.contains("'first' is added"),
        "{}",
        output.stdout
    );
    let entry = &saved(&home)["mcpServers"]["first"];
    assert_eq!(entry["env"]["TOKEN"], "${env:SECRET}", "{entry}");
    assert_eq!(entry["timeout"], 30, "{entry}");
    // With a daemon, it can be used at once.
    let daemon = TestDaemon::start(home, json!({})).await;
    let output = add(
        &daemon.home,
        &["second", "-o", "json"],
        &command_of(&second),
    )
    .await;
    let data = output.succeeded().json();
    assert_eq!(data["server"]["name"], "second", "{data}");
    assert_eq!(data["tools"].as_array().unwrap().len(), 2, "{data}");
    daemon.session_with(&["second:look"]).await;
    let again = add(&daemon.home, &["second"], &command_of(&second)).await;
    again.ended_with(1);
    assert!(again.stderr.contains("already"), "{}", again.stderr);
    assert!(!again.stderr.contains("--no-check"), "{}", again.stderr);
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_not_added() {
    let home = home();
    let original = "{\n    \"x-own\": [1.0,   2],\n    \"mcpServers\": []\n}\n";
    home.write_config_text(original);
    let program = ["no-such-program-anywhere".to_owned()];
    let output = add(&home, &["bad"], &program).await;
    output.ended_with(1);
    assert!(
        output.stderr.contains("'bad' is not added"),
        "{}",
        output.stderr
    );
    assert!(output.stderr.contains("--no-check"), "{}", output.stderr);
    assert_eq!(
        std::fs::read_to_string(home.config_file()).unwrap(),
        original
    );
    add(&home, &["bad", "--no-check"], &program)
        .await
        .succeeded();
    let text = std::fs::read_to_string(home.config_file()).unwrap();
    assert!(text.contains("\"x-own\": [1.0,   2]"), "{text}");
    assert_eq!(saved(&home)["mcpServers"][0]["name"], "bad", "{text}");
}

#[tokio::test]
async fn the_command_line_of_add_is_checked() {
    let home = home();
    home.write_config(&json!({}));
    for arguments in [
        &["upstream", "add"][..],
        &["upstream", "add", "x"],
        &[
            "upstream",
            "add",
            "x",
            "--url",
            "http://127.0.0.1:9/",
            "--",
            "sh",
        ],
        &[
            "upstream",
            "add",
            "x",
            "--url",
            "http://127.0.0.1:9/",
            "--env",
            "A=b",
        ],
        &["upstream", "add", "x", "--header", "A=b", "--", "sh"],
        &["upstream", "add", "x", "--env", "A", "--", "sh"],
        &["upstream", "add", "a b", "--no-check", "--", "sh"],
        &["upstream", "add", "x", "--no-check", "--url", "ftp://h/"],
        &[
            "upstream",
            "add",
            "x",
            "--no-check",
            "--timeout",
            "soon",
            "--",
            "sh",
        ],
        &["upstream", "logs", "x", "-n", "0"],
    ] {
        let output = home.cli(arguments).await;
        assert_eq!(output.code, 2, "{arguments:?}: {}", output.stderr);
        assert!(
            output.stderr.starts_with("error: "),
            "{arguments:?}: {}",
            output.stderr
        );
    }
}

#[tokio::test]
async fn servers_are_switched_and_removed_whoever_started_the_daemon() {
    let home = home();
    let config = json!({"mcpServers": servers(&home)});
    home.write_config(&config);
    switch_and_remove(&home).await;
    let restart = home.cli(["upstream", "restart", "up"]).await;
    restart.succeeded();
    let daemon = TestDaemon::start(home, config).await;
    daemon.session_with(&["up:look"]).await;
    switch_and_remove(&daemon.home).await;
    daemon
        .home
        .cli(["upstream", "restart", "up"])
        .await
        .succeeded();
    assert!(
        daemon.api("/servers").await["servers"]
            .as_array()
            .unwrap()
            .len()
            == 2
    );
}

async fn switch_and_remove(home: &Home) {
    let enabled = |home: &Home| saved(home)["mcpServers"]["up"]["enabled"].clone();
    let output = home.cli(["upstream", "disable", "up"]).await;
    assert_eq!(output.succeeded().stdout, "'up' is off\n");
    assert_eq!(enabled(home), false);
    let output = home.cli(["upstream", "enable", "up", "-o", "json"]).await;
    assert_eq!(
        output.succeeded().json()["enabled"],
        true,
        "{}",
        output.stdout
    );
    assert_ne!(enabled(home), false);
    for arguments in [
        ["upstream", "enable", "gnoe"],
        ["upstream", "disable", "gnoe"],
        ["upstream", "remove", "gnoe"],
        ["upstream", "logs", "gnoe"],
    ] {
        let output = home.cli(arguments).await;
        output.ended_with(6);
        assert!(
            output.stderr.contains("did you mean 'gone'?"),
            "{}",
            output.stderr
        );
    }
    let output = home.cli(["upstream", "rm", "gone"]).await;
    assert_eq!(output.succeeded().stdout, "'gone' is removed\n");
    assert_eq!(saved(home)["mcpServers"].get("gone"), None);
}

#[tokio::test]
async fn logs_are_shown_followed_and_kept() {
    let home = home();
    let up = home.upstream("up", &Script::new([Tool::read_only("look")]));
    let words: Vec<String> = command_of(&up)
        .iter()
        .map(|word| format!("'{word}'"))
        .collect();
    let script = format!(
        "echo 'starting \u{1b}[31mred' >&2; exec {}",
        words.join(" ")
    );
    let config = json!({"mcpServers": {"up": {"command": "sh", "args": ["-c", script]}}});
    let daemon = TestDaemon::start(home, config).await;
    daemon.session_with(&["up:look"]).await;
    let shown = "starting \\u{1b}[31mred\n";
    let output = daemon.home.cli(["upstream", "logs", "up"]).await;
    assert_eq!(output.succeeded().stdout, shown);
    let mut follow = daemon.home.command();
    follow
        .args(["upstream", "logs", "up", "--follow"])
        .stdout(Stdio::piped());
    let mut follow = follow.spawn().unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    let mut next = async || {
        let line = tokio::time::timeout(DEADLINE, lines.next_line()).await;
        line.expect("a line in time").unwrap().expect("a line")
    };
    assert_eq!(next().await, shown.trim_end());
    let restart = async || {
        let output = daemon.home.cli(["upstream", "restart", "up"]).await;
        output.succeeded();
    };
    restart().await;
    assert_eq!(next().await, shown.trim_end(), "of its second life");
    // Whoever has read enough goes away, and the next line ends it.
    drop(lines);
    restart().await;
    let status = tokio::time::timeout(DEADLINE, follow.wait()).await;
    assert_eq!(status.expect("it ends").unwrap().code(), Some(0));
    let (home, _) = daemon.stop().await;
    let output = home.cli(["upstream", "logs", "up", "-n", "1"]).await;
    assert_eq!(output.succeeded().stdout, shown, "without a daemon");
}
