//! `mcpproxy config`: where it is, what is in force, what is wrong with it.

use serde_json::json;
use testkit::Stdin;

use crate::support::home;

#[tokio::test]
async fn the_path_is_the_home_unless_told_otherwise() {
    let home = home();
    let output = home.cli(["config", "path"]).await;
    output.succeeded();
    assert_eq!(output.stdout.trim(), home.config_file().to_str().unwrap());
    let output = home
        .cli(["config", "path", "--config", "/elsewhere/config.json"])
        .await;
    assert_eq!(output.stdout.trim(), "/elsewhere/config.json");
    let environment = [("MCPPROXY_CONFIG", "/from/environment.json")];
    let output = home
        .cli_with(["config", "path"], Stdin::Empty, &environment)
        .await;
    assert_eq!(output.stdout.trim(), "/from/environment.json");
}

#[tokio::test]
async fn the_current_directory_is_never_searched() {
    let home = home();
    std::fs::write(home.path().join("mcp_config.json"), "not even JSON").unwrap();
    let output = home.cli(["config", "path"]).await;
    assert_eq!(output.stdout.trim(), home.config_file().to_str().unwrap());
}

#[tokio::test]
async fn both_forms_of_servers_are_the_same_and_secrets_are_masked() {
    let home = home();
    let entry = json!({"command": "server", "env": {"TOKEN": "very secret"}});
    home.write_config(&json!({"mcpServers": {"one": entry}}));
    let object = home.cli(["config", "show", "-o", "json"]).await;
    object.succeeded();
    let list = json!([{"name": "one", "command": "server", "env": {"TOKEN": "very secret"}}]);
    home.write_config(&json!({ "mcpServers": list }));
    let list = home.cli(["config", "show", "-o", "json"]).await;
    assert_eq!(list.json(), object.json());
    assert!(!object.stdout.contains("very secret"), "{}", object.stdout);
    assert_eq!(object.json()["intent_declaration"]["mode"], "two_key");
}

#[tokio::test]
async fn faults_are_told_with_their_place() {
    let home = home();
    let cases = [
        ("{\n  \"listen\": 5\n}", "line 2"),
        ("{\n  \"mcpServers\": {,\n}", "line 2"),
        (
            "{\"intent_declaration\": {\"mode\": \"three_key\"}}",
            "intent_declaration.mode",
        ),
        ("{\"mcpServers\": {\"one\": {}}}", "mcpServers.one"),
        (
            "{\"mcpServers\": {\"one\": {\"command\": \"x\", \"timeout\": true}}}",
            "timeout",
        ),
    ];
    for (text, word) in cases {
        home.write_config_text(text);
        let output = home.cli(["config", "check"]).await;
        output.ended_with(4);
        assert!(output.stderr.contains(word), "{text}: {}", output.stderr);
        assert_eq!(output.stdout, "");
        home.cli(["serve"]).await.ended_with(4);
    }
}

#[tokio::test]
async fn an_unknown_key_is_a_warning_with_a_suggestion() {
    let home = home();
    home.write_config_text("{\"mcpServer\": {}, \"tool_override\": {}}");
    let output = home.cli(["config", "check"]).await;
    output.succeeded();
    assert!(output.stderr.contains("mcpServers"), "{}", output.stderr);
    assert!(
        output.stderr.contains("tool_overrides"),
        "{}",
        output.stderr
    );
}

#[tokio::test]
async fn the_schema_is_a_json_schema() {
    let output = home().cli(["config", "schema"]).await;
    output.succeeded();
    let schema = output.json();
    assert!(
        schema["$schema"]
            .as_str()
            .unwrap()
            .contains("json-schema.org")
    );
    assert!(schema["properties"]["mcpServers"].is_object());
}

#[tokio::test]
async fn a_missing_file_is_a_config_error() {
    let home = home();
    home.cli(["config", "check"]).await.ended_with(4);
}

#[tokio::test]
async fn status_without_a_daemon_ends_with_3() {
    let output = home().cli(["status"]).await;
    output.ended_with(3);
    assert!(
        output.stderr.contains("mcpproxy serve"),
        "{}",
        output.stderr
    );
}
