//! `mcpproxy call`: the three lanes from the command line, with a daemon and without one.

use serde_json::{Value, json};
use testkit::{Home, Record, Script, Stdin, TestDaemon, Tool};

use crate::support::home;

/// One tool for each lane; all answer with what they were called with.
fn script() -> Script {
    Script::new([
        Tool::read_only("look"),
        Tool::annotated(
            "save",
            &json!({"readOnlyHint": false, "destructiveHint": false}),
        ),
        Tool::destructive("wipe"),
        Tool::read_only("fails")
            .returns(r#"{"isError":true,"content":[{"type":"text","text":"no paper"}]}"#),
        Tool::read_only("odd").returns(r#"{"content":[],"n":1.0,"z":12345678901234567890123}"#),
        Tool::read_only("shapeless").returns(r#"{"content":"not a list"}"#),
        Tool::read_only("hostile")
            .returns(r#"{"content":[{"type":"text","text":"\u001b[31mred\u001b[0m \u202eevil"}]}"#),
    ])
}

/// What is not text: a person sees what it is, where it is and how large it is.
#[tokio::test]
async fn what_is_not_text_is_described() {
    let home = home();
    let content = json!([
        {"type": "image", "mimeType": "image/png", "data": "AAECAwQ="},
        {"type": "resource_link", "uri": "file:///a.md", "name": "a", "mimeType": "text/markdown", "size": 7},
        {"type": "resource", "resource": {"uri": "x://y", "mimeType": "text/plain", "text": "its text"}},
        {"type": "resource", "resource": {"uri": "x://z", "blob": "AAEC"}},
        {"type": "hologram"},
    ]);
    let tool = Tool::read_only("media").returns(json!({"content": content}).to_string());
    let upstream = home.upstream("up", &Script::new([tool]));
    home.write_config(&json!({"mcpServers": {"up": upstream.config()}}));
    let output = home.cli(["call", "tool-read", "up:media"]).await;
    assert_eq!(
        output.succeeded().stdout,
        "[image: image/png, 5 bytes]\n[resource_link: file:///a.md, a, text/markdown, 7 bytes]\n\
         [resource: x://y, text/plain]\nits text\n[resource: x://z, 3 bytes]\n[hologram]\n"
    );
}

#[tokio::test]
async fn errors_are_in_words_for_people() {
    let (home, _) = prepared();
    let call = ["call", "tool-read", "up:look", "--args", "title=x"];
    let output = home.cli(call).await;
    output.ended_with(2);
    assert!(!output.stderr.contains("ident"), "{}", output.stderr);
    let output = home.cli(["tools", "show", "up:qqqqqqqqqqqqqq"]).await;
    output.ended_with(6);
    assert!(!output.stderr.contains("/api/"), "{}", output.stderr);
    // An override that is gone need not match anything.
    for (change, warned) in [
        (&["set", "no:tool", "write"][..], true),
        (&["clear", "no:tool"], false),
    ] {
        let change = [&["tools", "override"], change].concat();
        let output = home.cli(change).await;
        let found = output.succeeded().stderr.contains("no tool matches");
        assert_eq!(found, warned, "{}", output.stderr);
    }
}

/// Up to `limits.request_bytes`, which is 4 MiB.
#[tokio::test]
async fn arguments_may_be_as_large_as_a_request() {
    let (daemon, _) = running().await;
    let file = daemon.home.path().join("large.json");
    let give = format!("@{}", file.display());
    for (size, code) in [(3_500_000, 0), (5_000_000, 1)] {
        let text = json!({"text": "x".repeat(size)}).to_string();
        std::fs::write(&file, text).unwrap();
        let output = daemon
            .home
            .cli(["call", "tool-read", "up:look", "--args", &give]);
        let output = output.await;
        assert_eq!(output.code, code, "{}", output.stderr);
        let refused = output.stderr.contains("limits.request_bytes");
        assert_eq!(refused, code != 0, "{}", output.stderr);
    }
}

/// A home whose config has the upstream `up`.
fn prepared() -> (Home, Record) {
    let home = home();
    let upstream = home.upstream("up", &script());
    home.write_config(&json!({"mcpServers": {"up": upstream.config()}}));
    (home, upstream.record())
}

async fn running() -> (TestDaemon, Record) {
    let home = home();
    let upstream = home.upstream("up", &script());
    let daemon = TestDaemon::with_servers(home, json!({"up": upstream.config()})).await;
    daemon.session_with(&["up:look"]).await;
    (daemon, upstream.record())
}

const LANES: [(&str, &str); 3] = [
    ("tool-read", "up:look"),
    ("tool-write", "up:save"),
    ("tool-destructive", "up:wipe"),
];

#[tokio::test]
async fn each_command_calls_on_its_lane() {
    let (daemon, record) = running().await;
    for (command, tool) in LANES {
        let output = daemon
            .home
            .cli(["call", command, tool, "--args", r#"{"n":1.0}"#])
            .await;
        output.succeeded();
        assert!(
            output.stdout.contains(r#""arguments":{"n":1.0}"#),
            "{}",
            output.stdout
        );
    }
    let names: Vec<_> = record
        .calls()
        .iter()
        .map(|call| call["name"].clone())
        .collect();
    assert_eq!(names, ["look", "save", "wipe"]);
    // The daemon's own upstream took the calls.
    assert_eq!(record.pids().len(), 1);
}

#[tokio::test]
async fn without_a_daemon_one_is_started() {
    let (home, record) = prepared();
    for (command, tool) in LANES {
        home.cli(["call", command, tool]).await.succeeded();
    }
    assert_eq!(record.calls().len(), 3);
    let output = home.cli(["call", "tool-read", "up:wipe"]).await;
    output.ended_with(5);
    assert_eq!(record.calls().len(), 3);
    assert_eq!(record.pids().len(), 1);
}

#[tokio::test]
async fn a_lane_that_is_too_lax_is_refused_by_policy() {
    let (daemon, record) = running().await;
    let output = daemon.home.cli(["call", "tool-read", "up:wipe"]).await;
    output.ended_with(5);
    assert_eq!(output.stdout, "");
    let expected = "Tool 'up:wipe' is marked destructive by server, use call_tool_destructive";
    assert!(output.stderr.contains(expected), "{}", output.stderr);
    assert!(record.calls().is_empty());
}

#[tokio::test]
async fn reason_and_sensitivity_are_checked() {
    let (daemon, record) = running().await;
    let call = ["call", "tool-read", "up:look"];
    let flags = ["--reason", "a test", "--sensitivity", "private"];
    daemon.home.cli(call.iter().chain(&flags)).await.succeeded();
    let long = "é".repeat(1001);
    let output = daemon
        .home
        .cli(call.iter().chain(&["--reason", &long]))
        .await;
    output.ended_with(5);
    assert!(
        output.stderr.contains("1000 characters"),
        "{}",
        output.stderr
    );
    let output = daemon
        .home
        .cli(call.iter().chain(&["--sensitivity", "secret"]))
        .await;
    output.ended_with(2);
    assert!(output.stderr.contains("secret"), "{}", output.stderr);
    assert_eq!(record.calls().len(), 1);
}

#[tokio::test]
async fn arguments_come_from_the_line_stdin_or_a_file() {
    let (daemon, record) = running().await;
    let home = &daemon.home;
    std::fs::write(home.path().join("arguments.json"), r#"{"from":"file"}"#).unwrap();
    home.cli([
        "call",
        "tool-read",
        "up:look",
        "--args",
        r#"{"from":"line"}"#,
    ])
    .await
    .succeeded();
    home.cli(["call", "tool-read", "up:look", "--args", "@arguments.json"])
        .await
        .succeeded();
    let stdin = Stdin::Text(r#"{"from":"stdin"}"#);
    home.cli_with(["call", "tool-read", "up:look", "--args", "-"], stdin, &[])
        .await
        .succeeded();
    let aliases = [
        "call",
        "tool-read",
        "--tool-name",
        "up:look",
        "--json_args",
        r#"{"from":"alias"}"#,
    ];
    home.cli(aliases).await.succeeded();
    let aliases = [
        "call",
        "tool-read",
        "--tool-name=up:look",
        r#"--json_args={"from":"alias"}"#,
    ];
    home.cli(aliases).await.succeeded();
    let sources: Vec<_> = record
        .calls()
        .iter()
        .map(|call| call["arguments"]["from"].clone())
        .collect();
    assert_eq!(sources, ["line", "file", "stdin", "alias", "alias"]);
}

#[tokio::test]
async fn bad_usage_ends_with_2_and_names_the_fault() {
    let (daemon, record) = running().await;
    let cases: [(&[&str], &str); 6] = [
        (&["call", "tool-read", "up:look", "--args", "{oops"], "JSON"),
        (&["call", "tool-read", "up:look", "--args", "[1]"], "object"),
        (
            &["call", "tool-read", "up:look", "--args", "@missing.json"],
            "missing.json",
        ),
        (&["call", "tool-read", "look"], "server:tool"),
        (&["call", "tool-read"], "SERVER:TOOL"),
        (&["call", "tool-delete", "up:look"], "tool-delete"),
    ];
    for (arguments, word) in cases {
        let output = daemon.home.cli(arguments).await;
        output.ended_with(2);
        assert!(
            output.stderr.contains(word),
            "{arguments:?}: {}",
            output.stderr
        );
        assert_eq!(output.stdout, "");
    }
    assert!(record.calls().is_empty());
}

#[tokio::test]
async fn what_is_not_there_ends_with_6_and_a_suggestion() {
    let (daemon, _record) = running().await;
    for (tool, word) in [("up:loook", "up:look"), ("upp:look", "up")] {
        let output = daemon.home.cli(["call", "tool-read", tool]).await;
        output.ended_with(6);
        assert!(output.stderr.contains(word), "{}", output.stderr);
    }
}

#[tokio::test]
async fn errors_are_what_why_and_what_to_do() {
    let (home, _record) = prepared();
    let output = home.cli(["call", "tool-read", "upp:look"]).await;
    let lines: Vec<&str> = output.stderr.lines().collect();
    assert!((1..=3).contains(&lines.len()), "{}", output.stderr);
    assert!(lines[0].starts_with("error: "), "{}", output.stderr);
}

#[tokio::test]
async fn a_tool_that_failed_ends_with_1() {
    let (daemon, _record) = running().await;
    let output = daemon.home.cli(["call", "tool-read", "up:fails"]).await;
    output.ended_with(1);
    assert!(output.stdout.contains("no paper") || output.stderr.contains("no paper"));
}

#[tokio::test]
async fn json_is_the_result_as_the_upstream_wrote_it() {
    let (daemon, _record) = running().await;
    let output = daemon
        .home
        .cli(["call", "tool-read", "up:odd", "-o", "json"])
        .await;
    output.succeeded();
    assert_eq!(
        output.stdout,
        "{\"content\":[],\"n\":1.0,\"z\":12345678901234567890123}\n"
    );
    let output = daemon
        .home
        .cli(["call", "tool-read", "up:shapeless", "-o", "json"])
        .await;
    assert_eq!(output.stdout, "{\"content\":\"not a list\"}\n");
    let from_environment = [("MCPPROXY_OUTPUT", "json")];
    let output = daemon
        .home
        .cli_with(
            ["call", "tool-read", "up:odd"],
            Stdin::Empty,
            &from_environment,
        )
        .await;
    assert_eq!(output.json()["n"], 1.0);
    let output = daemon
        .home
        .cli(["call", "tool-read", "up:odd", "-o", "xml"])
        .await;
    output.ended_with(2);
}

#[tokio::test]
async fn text_of_an_upstream_cannot_control_the_terminal() {
    let (daemon, _record) = running().await;
    let output = daemon.home.cli(["call", "tool-read", "up:hostile"]).await;
    output.succeeded();
    let hostile = |character: char| character == '\u{1b}' || character == '\u{202e}';
    assert!(!output.stdout.contains(hostile), "{:?}", output.stdout);
    assert!(output.stdout.contains("red") && output.stdout.contains("evil"));
    // As data it is still what it was.
    let output = daemon
        .home
        .cli(["call", "tool-read", "up:hostile", "-o", "json"])
        .await;
    let result: Value = output.json();
    assert!(
        result["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains('\u{1b}')
    );
}

#[tokio::test]
async fn variables_of_the_environment_are_filled_in() {
    let home = home();
    let upstream = home.upstream("up", &script());
    let mut entry = upstream.config();
    let program = std::mem::replace(&mut entry["command"], json!("${env:KIT_PROGRAM}"));
    home.write_config(&json!({"mcpServers": {"up": entry}}));
    let call = ["call", "tool-read", "up:look"];
    let environment = [("KIT_PROGRAM", program.as_str().unwrap())];
    let output = home.cli(call).await;
    output.ended_with(1);
    assert!(output.stderr.contains("KIT_PROGRAM"), "{}", output.stderr);
    // The environment is that of the command that starts the daemon, and stays.
    home.cli(["stop"]).await.succeeded();
    home.cli_with(call, Stdin::Empty, &environment)
        .await
        .succeeded();
    home.cli(call).await.succeeded();
}
