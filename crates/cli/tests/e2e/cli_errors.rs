//! Errors as data: one JSON object on stderr where a command was asked for JSON.

use serde_json::{Value, json};
use testkit::Output;

use crate::support::home;

#[track_caller]
fn error_of(output: &Output, exit: i32) -> Value {
    output.ended_with(exit);
    assert_eq!(output.stdout, "");
    assert_eq!(output.stderr.trim().lines().count(), 1, "{}", output.stderr);
    let error: Value = serde_json::from_str(&output.stderr)
        .unwrap_or_else(|error| panic!("{error} in {}", output.stderr));
    assert_eq!(error["exit_code"], exit, "{error}");
    error["error"].clone()
}

#[tokio::test]
async fn every_kind_of_failure_is_json_where_json_is_asked_for() {
    let home = home();
    home.write_config(&json!({"mcpServers": {}}));
    for (line, exit, code) in [
        ("status -o json", 3, "DAEMON_UNREACHABLE"),
        ("connect emacs -o json", 6, "NOT_FOUND"),
        ("connect cursor -o jsonl", 2, "USAGE"),
        ("tools show x:y -o json", 6, "NOT_FOUND"),
        ("call tool-read x:y -o json", 6, "UNKNOWN_SERVER"),
        ("activity show nothing -o json", 2, "BAD_REQUEST"),
        ("-o json tools --nonsense", 2, "USAGE"),
        ("nonsense -ojson", 2, "USAGE"),
        ("activity list --limit x -o json", 2, "USAGE"),
    ] {
        let output = home.cli(line.split(' ')).await;
        let error = error_of(&output, exit);
        assert_eq!(error["code"], code, "{line}: {error}");
        assert!(
            !error["message"].as_str().unwrap().is_empty(),
            "{line}: {error}"
        );
        for member in ["why", "hint"] {
            assert!(error.get(member).is_some(), "{line}: {error}");
        }
    }
    home.write_config_text("{");
    let output = home.cli(["config", "check", "-o", "json"]).await;
    assert_eq!(error_of(&output, 4)["code"], "CONFIG_INVALID");
}

#[tokio::test]
async fn people_get_words_and_help_is_no_error() {
    let home = home();
    for line in ["status", "status -o yaml", "nonsense"] {
        let output = home.cli(line.split(' ')).await;
        assert!(
            output.stderr.starts_with("error: "),
            "{line}: {}",
            output.stderr
        );
    }
    let help = home.cli(["tools", "--help", "-o", "json"]).await;
    assert!(
        help.succeeded().stdout.contains("Usage:"),
        "{}",
        help.stdout
    );
}
