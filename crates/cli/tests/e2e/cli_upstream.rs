//! `mcpproxy upstream`: the servers, with a daemon and without one.

use serde_json::{Value, json};
use testkit::{DEADLINE, Home, Script, TestDaemon, Tool, wait_until};

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

#[tokio::test]
async fn no_servers_are_not_an_error() {
    let home = home();
    home.write_config(&json!({}));
    let output = home.cli(["upstream", "list"]).await;
    assert_eq!(output.succeeded().stdout, "");
    assert!(output.stderr.contains("upstream add"), "{}", output.stderr);
}
