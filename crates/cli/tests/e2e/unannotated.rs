//! Tools without hints: named until the operator decides about them.

use serde_json::{Value, json};
use testkit::{DEADLINE, Home, Script, TestDaemon, Tool, wait_until};

use crate::cli_terminal::on_terminal;
use crate::support::home;

const SETTING: &str = "intent_declaration.unannotated";

/// Seven tools without hints that look as if they change something, one that does not, one with hints.
fn script() -> Script {
    let tool = |name: &str, description: &str| json!({"name": name, "description": description, "inputSchema": {"type": "object"}});
    let mut tools = vec![
        tool("drop_table", "Drops a table and all its rows for good."),
        tool("list_tables", "Lists the tables."),
    ];
    for number in 1..7 {
        tools.push(tool(
            &format!("create_table_{number}"),
            "Creates a new table.",
        ));
    }
    let mut hinted = tool("delete_row", "Deletes a row.");
    hinted["annotations"] = json!({"destructiveHint": true});
    tools.push(hinted);
    Script::new(tools.iter().map(Tool::defined))
}

async fn daemon() -> TestDaemon {
    let home = home();
    let upstream = home.upstream("db", &script());
    let daemon = TestDaemon::with_servers(home, json!({"db": upstream.config()})).await;
    daemon.session_with(&["db:drop_table"]).await;
    daemon
}

fn written(home: &Home) -> Value {
    let text = std::fs::read_to_string(home.config_file()).unwrap();
    let config: Value = serde_json::from_str(&text).unwrap();
    config["intent_declaration"]["unannotated"].clone()
}

async fn is_told(home: &Home) -> [bool; 2] {
    let doctor = home.cli(["doctor"]).await;
    let status = home.cli(["status"]).await;
    [
        doctor.stdout.contains("UNANNOTATED_UNDECIDED"),
        status.succeeded().stdout.contains("without hints look"),
    ]
}

#[tokio::test]
async fn connecting_names_them_and_a_script_decides() {
    let daemon = daemon().await;
    let home = &daemon.home;
    let connect = ["connect", "claude-code", "--approve", "read", "--yes"];
    let output = home.cli(connect).await;
    output.succeeded();
    for word in [
        "7 tools without hints",
        "db:drop_table",
        "and 2 more",
        SETTING,
    ] {
        assert!(output.stderr.contains(word), "{word}: {}", output.stderr);
    }
    assert!(!output.stderr.contains("list_tables"), "{}", output.stderr);
    // `--yes` agrees to the client's files and decides nothing else.
    assert_eq!(written(home), Value::Null);
    assert_eq!(is_told(home).await, [true, true]);
    let allowed = home.cli(["call", "tool-read", "db:drop_table"]).await;
    assert!(
        !allowed.stderr.contains("SERVER_MISMATCH"),
        "{}",
        allowed.stderr
    );
    let decide = connect.into_iter().chain(["--unannotated", "infer"]);
    home.cli(decide).await.succeeded();
    assert_eq!(written(home), "infer");
    wait_until("the daemon follows", DEADLINE, async || {
        home.cli(["call", "tool-read", "db:drop_table"]).await.code == 5
    })
    .await;
    assert_eq!(is_told(home).await, [false, false]);
}

#[tokio::test]
async fn trust_in_so_many_words_is_a_decision_too() {
    let daemon = daemon().await;
    let home = &daemon.home;
    home.cli(["config", "set", SETTING, "trust"])
        .await
        .succeeded();
    assert_eq!(written(home), "trust");
    wait_until("the daemon follows", DEADLINE, async || {
        is_told(home).await == [false, false]
    })
    .await;
    let output = home
        .cli(["connect", "claude-code", "--approve", "read", "--yes"])
        .await;
    assert!(
        !output.succeeded().stderr.contains("without hints"),
        "{}",
        output.stderr
    );
}

#[tokio::test]
async fn audit_takes_one_that_looks_destructive_for_an_error_until_it_is_decided() {
    let daemon = daemon().await;
    let home = &daemon.home;
    let audit = home.cli(["audit", "-o", "json"]).await;
    audit.ended_with(20);
    let report = audit.json();
    let tools = report["tools"].as_array().unwrap();
    let errors = tools.iter().filter(|tool| {
        let findings = tool["findings"].as_array().unwrap();
        findings
            .iter()
            .any(|finding| finding["severity"] == "error")
    });
    let errors: Vec<&str> = errors.filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(errors, ["db:drop_table"]);
    home.cli(["config", "set", SETTING, "infer"])
        .await
        .succeeded();
    wait_until("the daemon follows", DEADLINE, async || {
        home.cli(["audit"]).await.code == 0
    })
    .await;
}

#[tokio::test]
async fn a_setting_that_cannot_be_is_refused_and_the_file_stays() {
    let home = home();
    home.write_config(&json!({"mcpServers": {}}));
    let before = std::fs::read_to_string(home.config_file()).unwrap();
    for (path, value, exit, word) in [
        (SETTING, "guess", 4, "trust, infer, deny"),
        ("intent_declaration.unanotated", "infer", 2, "no setting"),
        ("listen", "7", 4, "would not be valid"),
        ("mcpServers.a.enabled", "false", 2, "mcpproxy upstream"),
    ] {
        let output = home.cli(["config", "set", path, value]).await;
        output.ended_with(exit);
        assert!(output.stderr.contains(word), "{path}: {}", output.stderr);
    }
    assert_eq!(std::fs::read_to_string(home.config_file()).unwrap(), before);
    home.cli(["config", "set", "tool_response_limit", "5000"])
        .await
        .succeeded();
    let text = std::fs::read_to_string(home.config_file()).unwrap();
    assert!(text.contains("\"tool_response_limit\": 5000"), "{text}");
}

#[tokio::test]
async fn a_person_who_presses_return_has_the_lanes_inferred() {
    let daemon = daemon().await;
    let arguments = ["connect", "claude-code", "--approve", "read"];
    let (shown, code) = on_terminal(&daemon.home, &arguments, &[], "n\nn\n").await;
    assert_eq!(code, 0, "{shown}");
    assert_eq!(written(&daemon.home), Value::Null, "{shown}");
    let (shown, code) = on_terminal(&daemon.home, &arguments, &[], "y\n\n").await;
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("[Y/n]"), "{shown}");
    assert_eq!(written(&daemon.home), "infer", "{shown}");
}
