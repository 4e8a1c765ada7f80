//! The README, run as written: every command in it works, and shows what the README shows.

use std::path::Path;
use std::process::Stdio;

use testkit::{DEADLINE, Home, wait_for};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::support::home;

const README: &str = include_str!("../../../../README.md");

/// What the README says about building, which has happened when this runs.
const BUILDING: [&str; 3] = ["cargo install", "cargo build", "./scripts/test"];

/// The address in the README, which is taken where it is free. Here it is another.
const ADDRESS: &str = "127.0.0.1:8080";

/// A line that is typed, and the lines that are shown after it.
struct Step {
    line: String,
    shown: Vec<String>,
}

/// The blocks of this language.
fn blocks(language: &str) -> Vec<Vec<&'static str>> {
    let mut blocks = Vec::new();
    let mut lines = README.lines();
    while let Some(line) = lines.next() {
        if line == format!("```{language}") {
            blocks.push(lines.by_ref().take_while(|line| *line != "```").collect());
        }
    }
    blocks
}

fn steps() -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in blocks("console").into_iter().flatten() {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(line), _) => steps.push(Step {
                line: line.to_owned(),
                shown: Vec::new(),
            }),
            (None, Some(step)) => step.shown.push(line.to_owned()),
            (None, None) => panic!("a block starts with {line:?} and not with a command"),
        }
    }
    steps
}

#[expect(
    clippy::disallowed_methods,
    reason = "the README is written for a shell"
)]
fn shell(home: &Home, line: &str) -> Command {
    let binaries = Path::new(env!("CARGO_BIN_EXE_mcpproxy")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("sh");
    command
        .args(["-c", line])
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", format!("{}:{path}", binaries.display()))
        .current_dir(home.path())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

/// Starts the daemon on a free port, and waits until the demo server is there.
async fn serve(home: &Home) -> (Child, String) {
    let mut command = shell(home, "exec mcpproxy serve");
    command.env("MCPPROXY_LISTEN", "127.0.0.1:0");
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut shown = String::new();
    let read = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            shown.push_str(&format!("{line}\n"));
            if line.contains("config:") {
                break;
            }
        }
    };
    tokio::time::timeout(DEADLINE, read).await.unwrap();
    wait_for("the demo answers", DEADLINE, async || {
        let list = home
            .cli(["tools", "list", "--server", "demo", "-o", "json"])
            .await;
        (list.code == 0 && list.json()["total"].as_u64() > Some(0)).then_some(())
    })
    .await;
    (child, shown)
}

/// Neither the width of a column nor the value of a number is what the README is about.
fn plain(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut plain = String::new();
    for letter in words.join(" ").chars() {
        match letter {
            '0'..='9' if plain.ends_with('0') => {}
            '0'..='9' => plain.push('0'),
            other => plain.push(other),
        }
    }
    plain
}

/// The daemon's address is the README's, and the home directory is `~`.
fn normal(text: &str, home: &Home, address: &str) -> String {
    let text = text.replace(home.path().to_str().unwrap(), "~");
    let text = if address.is_empty() {
        text
    } else {
        text.replace(address, ADDRESS)
    };
    plain(&text)
}

/// Whether a line of the README is in the output; `…` stands for anything.
fn is_shown(line: &str, output: &[String]) -> bool {
    let line = plain(line);
    let parts: Vec<&str> = line.split('…').map(str::trim).collect();
    output.iter().any(|shown| {
        let mut rest = shown.as_str();
        parts.iter().all(|part| match rest.split_once(part) {
            Some((_, after)) => {
                rest = after;
                true
            }
            None => false,
        })
    })
}

#[tokio::test]
async fn every_command_works_and_shows_what_it_says() {
    let home = home();
    let mut daemon: Option<Child> = None;
    let mut address = String::new();
    let steps = steps();
    assert!(steps.len() > 8, "the README has a tour");
    for Step { line, shown } in &steps {
        if BUILDING.iter().any(|building| line.starts_with(building)) {
            continue;
        }
        let output = if line == "mcpproxy serve" {
            let (child, output) = serve(&home).await;
            let url = output
                .split_whitespace()
                .find(|word| word.starts_with("http://"));
            let url = url.unwrap().trim_start_matches("http://");
            address = url.trim_end_matches("/mcp").to_owned();
            daemon = Some(child);
            output
        } else {
            let output = tokio::time::timeout(DEADLINE, shell(&home, line).output());
            let output = output.await.unwrap().unwrap();
            let text = [output.stdout, output.stderr].concat();
            let text = String::from_utf8(text).unwrap();
            let refused = shown.iter().any(|line| line.starts_with("error:"));
            assert_eq!(output.status.success(), !refused, "{line}\n{text}");
            text
        };
        let lines: Vec<String> = output
            .lines()
            .map(|line| normal(line, &home, &address))
            .collect();
        for expected in shown {
            assert!(
                is_shown(expected, &lines),
                "{line}\nshows not {expected:?} but\n{output}"
            );
        }
    }
    assert!(daemon.is_some(), "the README starts the daemon");
}

#[tokio::test]
async fn every_config_in_it_is_valid() {
    let configs = blocks("json");
    assert!(!configs.is_empty());
    for config in configs {
        let home = home();
        home.write_config_text(&config.join("\n"));
        let check = home.cli(["config", "check"]).await;
        assert_eq!(check.succeeded().stderr, "", "{config:?}");
    }
}
