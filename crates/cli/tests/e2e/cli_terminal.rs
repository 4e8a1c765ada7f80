//! The commands on a pseudo-terminal: colour, width, questions and progress, and none of them
//! where nobody looks.

use std::time::Duration;

use pty_process::{Command, Size};
use serde_json::{Value, json};
use testkit::{Home, Script, Tool};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::home;

const DEADLINE: Duration = Duration::from_mins(1);
const COLUMNS: u16 = 70;

/// What a command shows on a terminal, after `answer` was typed.
pub(crate) async fn on_terminal(
    home: &Home,
    arguments: &[&str],
    environment: &[(&str, &str)],
    answer: &str,
) -> (String, i32) {
    on_terminal_of(COLUMNS, home, arguments, environment, answer).await
}

/// The same on one of this width; one that does not know its own says 0.
pub(crate) async fn on_terminal_of(
    columns: u16,
    home: &Home,
    arguments: &[&str],
    environment: &[(&str, &str)],
    answer: &str,
) -> (String, i32) {
    let (mut terminal, other_side) = pty_process::open().unwrap();
    terminal.resize(Size::new(24, columns)).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_mcpproxy"))
        .args(arguments)
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("TERM", "xterm")
        .envs(environment.iter().copied())
        .current_dir(home.path())
        .kill_on_drop(true)
        .spawn(other_side)
        .unwrap();
    terminal.write_all(answer.as_bytes()).await.unwrap();
    let mut shown = Vec::new();
    let mut buffer = [0; 4096];
    // A terminal whose other side is closed answers with an error on Linux.
    let read = async {
        while let Ok(count @ 1..) = terminal.read(&mut buffer).await {
            shown.extend_from_slice(&buffer[..count]);
        }
        child.wait().await.unwrap()
    };
    let status = tokio::time::timeout(DEADLINE, read).await.unwrap();
    (String::from_utf8(shown).unwrap(), status.code().unwrap())
}

fn home_with_tools() -> Home {
    let home = home();
    let long = "Looks at every file of the project and tells in many words what is in each of them";
    let tool = |name: &str, annotations: Value| {
        Tool::defined(&json!({
            "name": name, "description": long, "inputSchema": {"type": "object"}, "annotations": annotations
        }))
    };
    let script = Script::new([
        tool("look", json!({"readOnlyHint": true})),
        tool(
            "change",
            json!({"readOnlyHint": false, "destructiveHint": false}),
        ),
        tool("destroy", json!({"destructiveHint": true})),
    ]);
    let upstream = home.upstream("up", &script);
    home.write_config(&json!({"mcpServers": {"up": upstream.config()}}));
    home
}

/// The text without colour.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    plain + rest
}

#[tokio::test]
async fn a_table_is_coloured_and_as_wide_as_the_terminal() {
    let home = home_with_tools();
    let (shown, code) = on_terminal(&home, &["tools", "list"], &[], "").await;
    assert_eq!(code, 0, "{shown}");
    // Colours 10, 11 and 9 of the terminal: green, yellow, red.
    for color in ["10", "11", "9"] {
        assert!(
            shown.contains(&format!("\u{1b}[38;5;{color}m")),
            "{shown:?}"
        );
    }
    for line in plain(&shown).lines() {
        assert!(line.chars().count() <= usize::from(COLUMNS), "{line:?}");
    }
}

#[tokio::test]
async fn colour_can_be_switched_off_and_a_pipe_has_none() {
    let home = home_with_tools();
    for environment in [
        [("NO_COLOR", "1")],
        [("NO_COLOR", "false")],
        [("TERM", "dumb")],
    ] {
        let (shown, code) = on_terminal(&home, &["tools", "list"], &environment, "").await;
        assert_eq!(code, 0, "{shown}");
        assert!(!shown.contains('\u{1b}'), "{shown:?}");
    }
    let (shown, _) = on_terminal(&home, &["tools", "list"], &[("NO_COLOR", "")], "").await;
    assert!(
        shown.contains('\u{1b}'),
        "an empty NO_COLOR counts as none: {shown:?}"
    );
    let piped = home.cli(["tools", "list"]).await;
    assert!(
        !piped.succeeded().stdout.contains('\u{1b}'),
        "{}",
        piped.stdout
    );
    let widest = piped.stdout.lines().map(str::len).max().unwrap();
    assert!(
        widest > usize::from(COLUMNS),
        "a pipe has no width: {}",
        piped.stdout
    );
}

#[tokio::test]
async fn a_person_is_asked_and_a_no_changes_nothing() {
    let home = home();
    let file = home.path().join(".cursor/mcp.json");
    for answer in ["n\n", "\n", "what\n"] {
        let (shown, code) = on_terminal(&home, &["connect", "cursor"], &[], answer).await;
        assert_eq!(code, 0, "{shown}");
        assert!(shown.contains("Change this file? [y/N]"), "{shown}");
        assert!(shown.contains("\u{1b}[32m+"), "{shown:?}");
        assert!(shown.contains("nothing was changed"), "{shown}");
        assert!(!file.exists());
    }
    let (shown, code) = on_terminal(&home, &["connect", "cursor"], &[], "y\n").await;
    assert_eq!(code, 0, "{shown}");
    assert!(file.exists(), "{shown}");
}

#[tokio::test]
async fn progress_is_for_terminals() {
    let home = home_with_tools();
    home.cli(["call", "tool-read", "up:look"]).await.succeeded();
    let export = ["activity", "export", "--output", "calls.json"];
    let (shown, code) = on_terminal(&home, &export, &[], "").await;
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("[####"), "{shown:?}");
    let quiet = ["activity", "export", "--output", "calls2.json", "--quiet"];
    let (shown, code) = on_terminal(&home, &quiet, &[], "").await;
    assert_eq!((code, shown.contains("[##")), (0, false), "{shown:?}");
    let piped = ["activity", "export", "--output", "calls3.json"];
    let piped = home.cli(piped).await;
    assert!(
        !piped.succeeded().stderr.contains("[##"),
        "{}",
        piped.stderr
    );
}

#[tokio::test]
async fn ids_are_whole_and_rows_are_lines_however_narrow_the_terminal() {
    let home = home_with_tools();
    for (lane, tool) in [
        ("tool-read", "up:look"),
        ("tool-write", "up:change"),
        ("tool-destructive", "up:destroy"),
        ("tool-read", "up:destroy"),
        (
            "tool-read",
            "a-server-with-a-long-name:and_a_tool_with_a_longer_one",
        ),
    ] {
        home.cli(["call", lane, tool]).await;
    }
    let listed = home.cli(["activity", "list", "-o", "json"]).await.json();
    let records = listed["activities"].as_array().unwrap();
    let ids: Vec<_> = records
        .iter()
        .map(|record| record["id"].as_str().unwrap())
        .collect();
    for columns in [40, 80, 130, 200] {
        let list = ["activity", "list", "--quiet"];
        let (shown, code) = on_terminal_of(columns, &home, &list, &[], "").await;
        assert_eq!(code, 0, "{shown}");
        let shown = plain(&shown);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines.len(), 1 + ids.len(), "{shown}");
        for (line, id) in lines[1..].iter().zip(&ids) {
            assert!(line.starts_with(id), "{line}");
        }
        for line in &lines {
            assert!(line.chars().count() <= usize::from(columns), "{line:?}");
        }
        assert_eq!(lines[0].contains("DURATION"), columns >= 130, "{shown}");
        assert!(lines[0].contains("TOOL"), "{shown}");
    }
}
