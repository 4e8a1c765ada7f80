//! `mcpproxy tools`: looking at tools from the command line, with a daemon and without one.

use std::process::Stdio;

use serde_json::json;
use testkit::{Home, Script, Stdin, TestDaemon, Tool};

use crate::support::home;

const HOSTILE: &str = "Reads\u{1b}[2J the \u{202e}log\u{7}";

fn script() -> Script {
    let hostile = Tool::defined(&json!({
        "name": "read_log",
        "description": HOSTILE,
        "inputSchema": {"type": "object", "properties": {"lines": {"type": "integer"}}},
        "annotations": {"readOnlyHint": true},
    }));
    Script::new([
        hostile,
        Tool::destructive("purge_log"),
        Tool::echo("rotate_log"),
    ])
}

fn prepared() -> Home {
    let home = home();
    let upstream = home.upstream("up", &script());
    home.write_config(&json!({"mcpServers": {"up": upstream.config()}}));
    home
}

async fn running() -> TestDaemon {
    let home = home();
    let upstream = home.upstream("up", &script());
    let daemon = TestDaemon::with_servers(home, json!({"up": upstream.config()})).await;
    daemon.session_with(&["up:read_log"]).await;
    daemon
}

/// Commands whose JSON has to be the same with a daemon and without one.
const QUESTIONS: [&[&str]; 4] = [
    &["tools", "list", "-o", "json"],
    &["tools", "list", "--lane", "destructive", "-o", "json"],
    &["tools", "search", "read", "a", "log", "-o", "json"],
    &["tools", "show", "up:purge_log", "-o", "json"],
];

#[tokio::test]
async fn a_description_that_begins_with_a_newline_is_shown() {
    let home = home();
    let tool = json!({"name": "scrape", "description": "\n\n  Scrape a page.\nMore.",
        "inputSchema": {"type": "object"}});
    let upstream = home.upstream("up", &Script::new([Tool::defined(&tool)]));
    home.write_config(&json!({"mcpServers": {"up": upstream.config()}}));
    let output = home.cli(["tools", "list"]).await;
    let stdout = &output.succeeded().stdout;
    assert!(stdout.contains("  Scrape a page.\n"), "{stdout}");
}

#[tokio::test]
async fn a_result_that_cannot_be_written_is_a_failure() {
    let home = home();
    let upstream = home.upstream("up", &Script::new([Tool::read_only("look")]));
    home.write_config(&json!({"mcpServers": {"up": upstream.config()}}));
    let full = std::fs::File::options().write(true).open("/dev/full");
    let mut command = home.command();
    command.args(["tools", "list"]).stdin(Stdio::null());
    command.stdout(full.unwrap()).stderr(Stdio::piped());
    let output = command.spawn().unwrap().wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("error: the result cannot be written"),
        "{stderr}"
    );
    assert!(stderr.contains("No space left"), "{stderr}");
}

#[tokio::test]
async fn answers_are_the_same_with_and_without_a_daemon() {
    let daemon = running().await;
    let mut answers = Vec::new();
    for question in QUESTIONS {
        let output = daemon.home.cli(question).await;
        output.succeeded();
        answers.push(output.json());
    }
    let (home, _) = daemon.stop().await;
    for (question, answer) in QUESTIONS.iter().zip(answers) {
        let output = home.cli(*question).await;
        output.succeeded();
        assert_eq!(output.json(), answer, "{question:?}");
    }
}

#[tokio::test]
async fn a_list_shows_lanes_as_letter_and_word() {
    let daemon = running().await;
    let output = daemon.home.cli(["tools", "list"]).await;
    output.succeeded();
    for (tool, lane) in [
        ("up:read_log", "R read"),
        ("up:purge_log", "D destructive"),
        ("up:rotate_log", "W write"),
    ] {
        let line = output
            .stdout
            .lines()
            .find(|line| line.contains(tool))
            .unwrap();
        assert!(line.contains(lane), "{line}");
    }
    let list = daemon
        .home
        .cli(["tools", "list", "-o", "json"])
        .await
        .json();
    assert_eq!(list["total"], 3);
    assert_eq!(list["tools"][0]["call_with"], "call_tool_destructive");
}

#[tokio::test]
async fn every_format_is_what_it_says() {
    let daemon = running().await;
    let jsonl = daemon.home.cli(["tools", "list", "-o", "jsonl"]).await;
    let lines: Vec<serde_json::Value> = jsonl
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[0]["name"].is_string());
    let yaml = daemon.home.cli(["tools", "list", "-o", "yaml"]).await;
    assert!(yaml.stdout.starts_with("tools:"), "{}", yaml.stdout);
    assert!(yaml.stdout.contains("up:read_log"), "{}", yaml.stdout);
}

#[tokio::test]
async fn nothing_hostile_reaches_the_terminal() {
    let daemon = running().await;
    let commands: [&[&str]; 3] = [
        &["tools", "list"],
        &["tools", "search", "log"],
        &["tools", "show", "up:read_log"],
    ];
    for command in commands {
        for environment in [&[][..], &[("NO_COLOR", "1")][..]] {
            let output = daemon
                .home
                .cli_with(command, Stdin::Empty, environment)
                .await;
            output.succeeded();
            let hostile = ['\u{1b}', '\u{202e}', '\u{7}'];
            assert!(
                !output.stdout.contains(hostile),
                "{command:?}: {:?}",
                output.stdout
            );
            assert!(
                output.stdout.contains("Reads"),
                "{command:?}: {:?}",
                output.stdout
            );
        }
    }
}

#[tokio::test]
async fn a_search_ranks_as_agents_see_it() {
    let daemon = running().await;
    let session = daemon.session().await;
    let names = session.names(&json!({"query": "purge the log"})).await;
    let output = daemon
        .home
        .cli(["tools", "search", "purge the log", "-o", "json"])
        .await;
    let found = output.json();
    let tools = found["tools"].as_array().unwrap();
    let ranked: Vec<_> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(ranked, names);
}

#[tokio::test]
async fn what_is_not_there_gets_a_suggestion() {
    let home = prepared();
    let output = home.cli(["tools", "show", "up:raed_log"]).await;
    output.ended_with(6);
    assert!(output.stderr.contains("up:read_log"), "{}", output.stderr);
    let output = home.cli(["tools", "list", "--server", "nowhere"]).await;
    output.ended_with(6);
    let output = home.cli(["tools", "list", "--lane", "sideways"]).await;
    output.ended_with(2);
    let output = home
        .cli(["tools", "search", "nothing like it whatsoever"])
        .await;
    output.succeeded();
    assert_eq!(output.stdout, "");
}

#[tokio::test]
async fn a_server_that_is_down_is_mentioned() {
    let home = prepared();
    let upstream = home.upstream("up", &script());
    let absent = json!({"command": "no-such-program-anywhere"});
    home.write_config(&json!({"mcpServers": {"up": upstream.config(), "absent": absent}}));
    let output = home.cli(["tools", "list"]).await;
    output.succeeded();
    assert!(output.stdout.contains("up:read_log"), "{}", output.stdout);
    assert!(
        output.stderr.contains("no-such-program-anywhere"),
        "{}",
        output.stderr
    );
}
