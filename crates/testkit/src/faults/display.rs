//! T16 and T17: text of servers and agents on terminals and in spreadsheets.

use serde_json::json;

use super::case::{Case, Report, case};
use super::hostile::{reads, start, tool};
use super::proxy::Lane;
use super::setup::Setup;
use crate::{Outcome, Script, Tool};

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "T16",
            "tool names with escape sequences in every command",
            escapes,
        ),
        case(
            "T17",
            "formulas in names, arguments and errors exported as CSV",
            formulas,
        ),
    ]
}

/// Characters that act on a terminal or are not seen.
fn raw_controls(text: &str) -> Option<char> {
    text.chars().find(|character| {
        let invisible = matches!(*character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}');
        invisible || (character.is_control() && !matches!(character, '\n' | '\t'))
    })
}

async fn escapes() -> Report {
    let bad =
        "\u{1b}[2J\u{1b}]8;;http://evil\u{7}\u{1b}]52;c;ZXZpbA==\u{7}\u{202e}\u{200b}\u{9b}31m";
    let mut error = tool("fails", bad, &reads());
    error.behaviour.outcome = Outcome::Error {
        code: -32000,
        message: bad.to_owned(),
    };
    let mut script = Script::new([
        tool("look", bad, &reads()),
        error,
        tool(&format!("named{bad}"), bad, &reads()),
    ]);
    script.start.stderr = vec![bad.to_owned()];
    let mut setup = Setup::new();
    setup.stdio("up", &script, json!({}));
    let mut proxy = setup.start().await;
    proxy.ready("up").await;
    let _ = proxy.read("up:fails").await;
    let _ = proxy.read(&format!("up:named{bad}")).await;
    let _ = proxy
        .call(Lane::Read, &format!("nope{bad}:{bad}"), json!({"x": bad}))
        .await;
    let commands: [&[&str]; 16] = [
        &["tools", "list"],
        &["tools", "search", "look"],
        &["tools", "show", "up:look"],
        &["tools", "list", "-o", "yaml"],
        &["upstream", "list"],
        &["upstream", "logs", "up"],
        &["upstream", "diff", "up"],
        &["activity", "list"],
        &["activity", "list", "-o", "yaml"],
        &["activity", "summary", "--by", "tool"],
        &["audit"],
        &["audit", "--format", "markdown"],
        &["doctor"],
        &["status"],
        &["call", "tool-read", "up:fails"],
        &["config", "show"],
    ];
    for command in commands {
        let output = proxy.daemon.home.cli(command).await;
        for text in [&output.stdout, &output.stderr] {
            assert_eq!(
                raw_controls(text),
                None,
                "{command:?} prints it raw: {text:.300?}"
            );
        }
    }
    for record in proxy.log("server=up").await {
        let id = record["id"].as_str().expect("an id");
        let output = proxy.daemon.home.cli(["activity", "show", id]).await;
        assert_eq!(
            raw_controls(&output.stdout),
            None,
            "activity show: {:?}",
            output.stdout
        );
    }
    let log = proxy.daemon.log();
    assert_eq!(raw_controls(&log), None, "the daemon's own output");
    proxy.note(format!("{} commands clean", commands.len()));
    proxy.finish().await
}

async fn formulas() -> Report {
    let bad = [
        "=HYPERLINK(\"http://evil\",\"x\")",
        "+1+1",
        "-1-1",
        "@SUM(1)",
        "\t=1",
        "\r=1",
        "=1\n=2",
    ];
    let (mut proxy, _) = start(vec![Tool::read_only("look")], json!({})).await;
    for text in bad {
        let _ = proxy
            .call(Lane::Read, &format!("up:{text}"), json!({text: text}))
            .await;
        let _ = proxy.call(Lane::Read, text, json!({})).await;
        let arguments = json!({"name": "up:look", "args": {},
            "intent": {"operation_type": "read", "reason": text}});
        let _ = proxy.agent.call("call_tool_read", &arguments).await;
    }
    let output = proxy
        .daemon
        .home
        .cli(["activity", "export", "--format", "csv", "--include-bodies"])
        .await;
    let cells = csv_cells(&output.stdout);
    assert!(
        cells.iter().any(|cell| cell.contains("HYPERLINK")),
        "nothing was exported"
    );
    let formula = cells
        .iter()
        .find(|cell| cell.starts_with(['=', '+', '-', '@', '\t', '\r']));
    assert_eq!(formula, None, "a formula");
    proxy.note(format!("{} cells, no formula", cells.len()));
    proxy.finish().await
}

fn csv_cells(text: &str) -> Vec<String> {
    let (mut cells, mut cell, mut quoted) = (Vec::new(), String::new(), false);
    for character in text.chars() {
        match character {
            '"' => quoted = !quoted,
            '\r' if !quoted => (),
            ',' | '\n' if !quoted => cells.push(std::mem::take(&mut cell)),
            other => cell.push(other),
        }
    }
    cells
}
