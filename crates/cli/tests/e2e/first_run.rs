//! The first minute: no config, one command, something to try.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use testkit::{Home, Session, wait_for};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;

use crate::support::{home, read, text_of};

/// Starts `serve` without a config, and reads what it prints until it says what to try.
async fn first_run(home: &Home) -> (Child, String) {
    let mut command = home.command();
    let mut child = command
        .args(["serve", "--listen", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut printed = String::new();
    let read = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            printed.push_str(&line);
            printed.push('\n');
            if line.contains("demo:") {
                break;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), read)
        .await
        .unwrap();
    (child, printed)
}

/// A path that is not UTF-8 cannot be written into the config.
#[tokio::test]
async fn the_demo_keeps_its_notes_in_a_home_that_is_not_utf8() {
    use std::os::unix::ffi::OsStrExt;

    let home = home();
    let folder = home.path().join(std::ffi::OsStr::from_bytes(b"h\xff"));
    std::fs::create_dir(&folder).unwrap();
    let mut command = home.command();
    let _child = command
        .env("HOME", &folder)
        .args(["serve", "--listen", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let store = folder.join(".mcpproxy/demo-notes.db");
    let found = async || store.exists().then_some(());
    wait_for("the notes are in HOME", Duration::from_secs(20), found).await;
    let beside = home
        .path()
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let strays: Vec<_> = beside
        .filter(|name| name.to_string_lossy() == "h\u{fffd}")
        .collect();
    assert_eq!(strays, [folder.file_name().unwrap()]);
}

#[tokio::test]
async fn serve_without_a_config_writes_one_and_says_what_to_do() {
    let home = home();
    let (_child, printed) = first_run(&home).await;
    let config_file = home.config_file();
    assert!(printed.contains(config_file.to_str().unwrap()), "{printed}");
    assert!(printed.contains("http://127.0.0.1:"), "{printed}");
    assert!(printed.contains("/mcp"), "{printed}");
    assert!(
        printed.contains("mcpServers") || printed.contains("mcp add"),
        "{printed}"
    );
    let config: Value =
        serde_json::from_str(&std::fs::read_to_string(config_file).unwrap()).unwrap();
    assert_eq!(config["mcpServers"]["demo"]["args"][0], "demo-server");
    home.cli(["config", "check"]).await.succeeded();
}

#[tokio::test]
async fn the_command_to_try_next_works() {
    let home = home();
    let (_child, printed) = first_run(&home).await;
    let command = printed
        .lines()
        .find(|line| line.contains("mcpproxy call"))
        .unwrap();
    let arguments: Vec<&str> = command.split_whitespace().skip(1).collect();
    let stdout = wait_for("the command works", testkit::DEADLINE, async || {
        let output = home.cli(&arguments).await;
        (output.code == 0).then_some(output.stdout)
    })
    .await;
    assert!(!stdout.trim().is_empty());
}

#[tokio::test]
async fn the_demo_has_tools_in_every_lane_that_really_work() {
    let home = home();
    let (_child, printed) = first_run(&home).await;
    let url = printed
        .split_whitespace()
        .find(|word| word.starts_with("http://127.0.0.1:"))
        .unwrap();
    let session = Session::open(url).await;
    wait_for("the demo is connected", testkit::DEADLINE, async || {
        let list = home.cli(["tools", "list", "-o", "json"]).await;
        let list: Value = serde_json::from_str(&list.stdout).ok()?;
        (list["total"].as_u64()? >= 12).then_some(())
    })
    .await;
    let list = home
        .cli(["tools", "list", "--server", "demo", "-o", "json"])
        .await
        .json();
    for tier in ["read_only", "write", "destructive"] {
        let tools = list["tools"].as_array().unwrap();
        assert!(
            tools.iter().any(|tool| tool["effective_tier"] == tier),
            "{tier}"
        );
    }
    let title = serde_json::json!({"title": "From a test", "body": "kept"}).to_string();
    let create = ["call", "tool-write", "demo:create_note", "--args", &title];
    home.cli(create).await.succeeded();
    let notes = text_of(&read(&session, "demo:list_notes").await);
    assert!(notes.contains("From a test"), "{notes}");
}

#[tokio::test]
async fn a_second_start_keeps_the_config() {
    let home = home();
    let (mut child, _) = first_run(&home).await;
    let first = std::fs::read_to_string(home.config_file()).unwrap();
    child.kill().await.unwrap();
    let mut command = home.command();
    let _child = command
        .args(["serve", "--listen", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("the second daemon answers", testkit::DEADLINE, async || {
        (home.cli(["status"]).await.code == 0).then_some(())
    })
    .await;
    assert_eq!(std::fs::read_to_string(home.config_file()).unwrap(), first);
}
