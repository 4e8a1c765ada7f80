//! `activity simulate`: what other settings would have made of the calls in the log.

use serde_json::{Value, json};
use testkit::{Script, TestDaemon, Tool};

use crate::support::{call, home};

/// Calls one silent tool that deletes, and one that only reads, each on the read lane.
async fn recorded() -> TestDaemon {
    let home = home();
    let silent = Tool::defined(&json!({
        "name": "delete_all",
        "description": "Permanently deletes everything.",
        "inputSchema": {"type": "object"},
    }));
    let upstream = home.upstream("up", &Script::new([silent, Tool::read_only("look")]));
    let daemon = TestDaemon::with_servers(home, json!({"up": upstream.config()})).await;
    let session = daemon.session_with(&["up:delete_all", "up:look"]).await;
    for tool in ["up:delete_all", "up:delete_all", "up:look"] {
        session.call("call_tool_read", &call(tool, "read")).await;
    }
    // One that is refused under every setting, and one that never names a tool.
    session
        .call("call_tool_read", &call("up:look", "write"))
        .await;
    session
        .call("call_tool_read", &call("up:nothing", "read"))
        .await;
    daemon
}

async fn simulate(daemon: &TestDaemon, arguments: &[&str]) -> Value {
    let mut command = vec!["activity", "simulate", "-o", "json"];
    command.extend(arguments);
    let output = daemon.home.cli(command).await;
    output.succeeded();
    output.json()
}

#[tokio::test]
async fn a_changed_setting_shows_what_it_would_have_refused() {
    let daemon = recorded().await;
    let same = simulate(&daemon, &[]).await;
    assert_eq!(
        (&same["calls"], &same["unchanged"], &same["not_decided"]),
        (&json!(4), &json!(4), &json!(1)),
        "{same}"
    );
    assert_eq!(same["tools"], json!([]));

    let set = [
        "--set",
        "intent_declaration.unannotated=infer",
        "--since",
        "7d",
    ];
    let inferred = simulate(&daemon, &set).await;
    assert_eq!(inferred["refused"], 2, "{inferred}");
    let tool = &inferred["tools"][0];
    assert_eq!(tool["tool"], "up:delete_all");
    let change = &tool["changes"][0];
    assert_eq!(
        (&change["from"], &change["to"]),
        (&json!("allowed"), &json!("refused"))
    );
    assert_eq!(change["to_code"], "SERVER_MISMATCH");
    assert!(change["message"].as_str().unwrap().contains("by audit"));
    let examples = change["examples"].as_array().unwrap();
    assert_eq!(examples.len(), 2);
    let shown = daemon
        .api(&format!("/activity/{}", examples[0].as_str().unwrap()))
        .await;
    assert_eq!(shown["tool_name"], "delete_all");

    // The same through the table, and without a daemon.
    let (home, _) = daemon.stop().await;
    let mut command = vec!["activity", "simulate"];
    command.extend(set);
    let table = home.cli(command).await;
    table.succeeded();
    assert!(table.stdout.contains("2 of 2"), "{}", table.stdout);
    assert!(
        table.stdout.contains("refused SERVER_MISMATCH"),
        "{}",
        table.stdout
    );
}

#[tokio::test]
async fn overrides_and_laxer_rules_are_tried_out_too() {
    let daemon = recorded().await;
    let overridden = simulate(&daemon, &["--set", "tool_overrides.up:lo*=write"]).await;
    assert_eq!(overridden["refused"], 1, "{overridden}");
    assert_eq!(overridden["tools"][0]["tool"], "up:look");
    let warned = simulate(
        &daemon,
        &[
            "--set",
            "intent_declaration.unannotated=infer",
            "--set",
            "intent_declaration.strict_server_validation=false",
        ],
    )
    .await;
    assert_eq!(
        (&warned["refused"], &warned["warned"]),
        (&json!(0), &json!(2))
    );
    let only = simulate(&daemon, &["--tool", "look"]).await;
    assert_eq!(only["calls"], 2, "{only}");
}

#[tokio::test]
async fn a_setting_that_cannot_be_tried_out_says_why() {
    let daemon = recorded().await;
    for (setting, expected) in [
        ("nonsense", "path=value"),
        ("listen=x", "does not decide about calls"),
        ("intent_declaration.unannotated=guess", "trust, infer, deny"),
        ("intent_declaration.unanotated=infer", "did you mean"),
        ("tool_overrides.up:*=harmless", "read_only"),
    ] {
        let output = daemon
            .home
            .cli(["activity", "simulate", "--set", setting])
            .await;
        output.ended_with(2);
        assert!(
            output.stderr.contains(expected),
            "{setting}: {}",
            output.stderr
        );
    }
}
