//! Text that would act on a terminal, printed by every command: it is shown and does nothing.

use serde_json::{Value, json};
use testkit::{Script, Stdin, TestDaemon, Tool};

use crate::cli_terminal::{on_terminal, on_terminal_of};
use crate::support::home;

/// Clears the screen, links elsewhere, writes the clipboard, turns the line around, hides.
const HOSTILE: &str = "ev\u{1b}[2Jil\u{1b}]8;;http://x/\u{7}link\u{1b}]8;;\u{7}\u{1b}]52;c;aGk=\u{7}\u{9b}31m\u{202e}r\u{200b}\u{e0041}x";

fn is_harmless(text: &str) -> bool {
    !text.chars().any(|character| {
        (character.is_control() && !matches!(character, '\n' | '\t'))
            || matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
            || matches!(character, '\u{e0000}'..='\u{e0fff}')
    })
}

/// A daemon whose upstream, config and neighbours are full of it.
async fn hostile_daemon() -> TestDaemon {
    let home = home();
    let tool = Tool::defined(&json!({
        "name": "look", "title": HOSTILE, "description": HOSTILE,
        "inputSchema": {"type": "object", "properties": {HOSTILE: {"description": HOSTILE}}},
        "annotations": {"readOnlyHint": true, "title": HOSTILE}
    }));
    let failing = json!({"content": [{"type": "text", "text": HOSTILE}], "isError": true});
    let fails = Tool::read_only("fail").returns(failing.to_string());
    let upstream = home.upstream("up", &Script::new([tool, fails]));
    let config = json!({
        "mcpServers": {"up": upstream.config(), "bad": {"command": format!("/nowhere/{HOSTILE}")}},
        HOSTILE: 1
    });
    let folder = home.path().join(".cursor");
    std::fs::create_dir_all(&folder).unwrap();
    let theirs = json!({"mcpServers": {HOSTILE: {"command": HOSTILE, "args": [HOSTILE]}, "no": {"url": HOSTILE}}});
    std::fs::write(folder.join("mcp.json"), format!("{theirs:#}\n")).unwrap();
    let folder = home.path().join(".gemini");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(
        folder.join("settings.json"),
        format!("{{\"{HOSTILE}\" \u{1b}"),
    )
    .unwrap();
    let daemon = TestDaemon::start(home, config).await;
    daemon.session_with(&["up:look"]).await;
    daemon
}

#[tokio::test]
async fn no_command_lets_text_act_on_the_terminal() {
    let daemon = hostile_daemon().await;
    let home = &daemon.home;
    let mut seen = 0;
    for command in [
        &["call", "tool-read", "up:look"][..],
        &["call", "tool-read", "up:fail"],
        &["call", "tool-read", "up:look", "--reason", HOSTILE],
        &["call", "tool-read", HOSTILE],
        &["tools", "list"],
        &["tools", "search", "evil look"],
        &["tools", "show", "up:look"],
        &["tools", "show", HOSTILE],
        &["tools", "override", "list"],
        &["audit", "--fail-on", "none"],
        &["activity", "list"],
        &["activity", "summary", "--by", "tool"],
        &["activity", "show", HOSTILE],
        &["upstream", "list"],
        &["upstream", "import", "--dry-run"],
        &["upstream", "import", "--server", HOSTILE, "--dry-run"],
        &["connect"],
        &["connect", "cursor", "--dry-run"],
        &["connect", "gemini", "--dry-run"],
        &["connect", HOSTILE],
        &["doctor"],
        &["doctor", "permissions"],
        &["config", "check"],
        &["config", "show"],
    ] {
        for format in ["table", "json", "yaml"] {
            // Into a pipe, a result goes byte for byte.
            if (command[0], format) == ("call", "json") {
                continue;
            }
            let environment = [("MCPPROXY_OUTPUT", format)];
            let output = home.cli_with(command, Stdin::Empty, &environment).await;
            let text = format!("{}{}", output.stdout, output.stderr);
            assert!(is_harmless(&text), "{command:?} -o {format}: {text:?}");
            seen += usize::from(text.contains("ev\\u"));
        }
    }
    assert!(
        seen > 20,
        "the text is shown somewhere, and not left out everywhere: {seen}"
    );
}

#[tokio::test]
async fn a_result_as_data_is_harmless_on_a_terminal() {
    let daemon = hostile_daemon().await;
    let call = ["call", "tool-read", "up:fail", "-o", "json"];
    let (shown, code) = on_terminal(&daemon.home, &call, &[], "").await;
    assert_eq!(code, 1, "{shown}");
    assert!(is_harmless(&shown.replace("\r\n", "\n")), "{shown:?}");
    let result: Value = serde_json::from_str(&shown.replace("\r\n", "")).unwrap();
    assert_eq!(result["content"][0]["text"], HOSTILE);
}

#[tokio::test]
async fn an_export_is_harmless_on_a_terminal_and_whole_in_a_pipe() {
    let daemon = hostile_daemon().await;
    let home = &daemon.home;
    let reason = ["call", "tool-read", "up:look", "--reason", HOSTILE];
    home.cli(reason).await.succeeded();
    for format in ["json", "jsonl", "csv"] {
        let export = ["activity", "export", "--tool", "look", "--format", format];
        let (shown, code) = on_terminal(home, &export, &[], "").await;
        assert_eq!(code, 0, "{shown}");
        let shown = shown.replace("\r\n", "\n");
        assert!(is_harmless(&shown), "{format}: {shown:?}");
        assert!(shown.contains("ev\\u"), "{format}: {shown:?}");
        if format != "csv" {
            let reasons = reasons(&shown, format);
            assert_eq!(reasons, [HOSTILE], "an escape is the character");
        }
        let piped = home.cli(export).await;
        let piped = &piped.succeeded().stdout;
        assert!(piped.contains('\u{202e}'), "{format}: {piped:?}");
        let to_file = [&export[..], &["--output", "calls"]].concat();
        let (_, code) = on_terminal(home, &to_file, &[], "").await;
        assert_eq!(code, 0);
        let written = std::fs::read_to_string(home.path().join("calls")).unwrap();
        assert_eq!(&written, piped, "a file is no terminal");
    }
}

/// Why the exported calls were made.
fn reasons(export: &str, format: &str) -> Vec<String> {
    let records: Vec<Value> = match format {
        "json" => serde_json::from_str(export).unwrap(),
        _ => export
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect(),
    };
    let reasons = records
        .iter()
        .map(|record| &record["metadata"]["intent"]["reason"]);
    reasons
        .map(|reason| reason.as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_terminal_that_does_not_know_its_width_is_one() {
    let daemon = hostile_daemon().await;
    let call = ["call", "tool-read", "up:fail", "-o", "json"];
    let (shown, _) = on_terminal_of(0, &daemon.home, &call, &[], "").await;
    assert!(shown.contains("ev\\u001b"), "{shown:?}");
    assert!(is_harmless(&shown.replace("\r\n", "\n")), "{shown:?}");
}

#[tokio::test]
async fn reports_of_audits_are_harmless_on_a_terminal() {
    let daemon = hostile_daemon().await;
    for format in ["markdown", "sarif", "junit"] {
        let audit = ["audit", "--format", format];
        let (shown, _) = on_terminal(&daemon.home, &audit, &[], "").await;
        let shown = shown.replace("\r\n", "\n");
        assert!(shown.contains("look"), "{format}: {shown:?}");
        assert!(is_harmless(&shown), "{format}: {shown:?}");
    }
}

#[tokio::test]
async fn data_is_whole_all_the_same() {
    let daemon = hostile_daemon().await;
    let home = &daemon.home;
    let list = home
        .cli(["tools", "list", "--server", "up", "-o", "json"])
        .await;
    let list: Value = list.succeeded().json();
    let tools = list["tools"].as_array().unwrap();
    assert!(
        tools.iter().any(|tool| tool["description"] == HOSTILE),
        "{list}"
    );
}
