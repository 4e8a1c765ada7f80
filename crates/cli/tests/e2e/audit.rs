//! `mcpproxy audit` and `tools override`: what tools do, judged by the auditor and by the operator.

use serde_json::{Value, json};
use testkit::{Home, Script, TestDaemon, Tool};

use crate::support::home;

fn tool(name: &str, description: &str, annotations: &Value) -> Tool {
    Tool::defined(&json!({
        "name": name,
        "description": description,
        "inputSchema": {"type": "object"},
        "annotations": annotations,
    }))
}

/// One honest tool, one that lies and one that says nothing.
fn script() -> Script {
    Script::new([
        tool(
            "list_files",
            "List the files of a folder.",
            &json!({"readOnlyHint": true}),
        ),
        tool(
            "delete_file",
            "Permanently delete a file.",
            &json!({"readOnlyHint": true}),
        ),
        tool(
            "purge_cache",
            "Permanently delete all cached data.",
            &json!({}),
        ),
    ])
}

fn prepared() -> Home {
    let home = home();
    let upstream = home.upstream("up", &script());
    home.write_config(&json!({"mcpServers": {"up": upstream.config()}}));
    home
}

fn find<'a>(report: &'a Value, name: &str) -> &'a Value {
    let tools = report["tools"].as_array().unwrap();
    tools.iter().find(|tool| tool["name"] == name).unwrap()
}

fn codes(tool: &Value) -> Vec<&str> {
    let findings = tool["findings"].as_array().unwrap();
    findings
        .iter()
        .map(|finding| finding["code"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn a_read_only_hint_on_a_tool_that_deletes_is_found_and_ends_with_20() {
    let home = prepared();
    let output = home.cli(["audit", "-o", "json"]).await;
    output.ended_with(20);
    let report = output.json();
    assert_eq!(find(&report, "up:list_files")["audited_tier"], "read_only");
    let liar = find(&report, "up:delete_file");
    assert_eq!(liar["declared_tier"], "read_only");
    assert_eq!(liar["audited_tier"], "destructive");
    assert!(
        codes(liar).contains(&"READ_ONLY_HINT_ON_MUTATING_TOOL"),
        "{liar}"
    );
    assert_eq!(liar["clients"]["claude-code"]["default"], "auto_approved");
    let silent = find(&report, "up:purge_cache");
    assert_eq!(silent["declared_tier"], Value::Null);
    assert!(codes(silent).contains(&"MISSING_HINTS"), "{silent}");
    home.cli(["audit", "--fail-on", "none"]).await.succeeded();
}

#[tokio::test]
async fn a_saved_list_is_audited_under_the_name_of_its_file() {
    let home = home();
    let file = home.path().join("saved.json");
    let list = json!({"result": {"tools": [{"name": "drop_table", "inputSchema": {}}]}});
    std::fs::write(&file, list.to_string()).unwrap();
    let output = home
        .cli(["audit", "--tools", file.to_str().unwrap(), "-o", "json"])
        .await;
    assert_eq!(
        find(&output.json(), "saved:drop_table")["audited_tier"],
        "destructive"
    );

    std::fs::write(&file, "not JSON").unwrap();
    let output = home.cli(["audit", "--tools", file.to_str().unwrap()]).await;
    output.ended_with(2);
    assert!(
        output.stderr.contains("is not a list of tools"),
        "{}",
        output.stderr
    );
}

#[tokio::test]
async fn other_formats_are_what_they_say() {
    let home = prepared();
    let markdown = home
        .cli(["audit", "--fail-on", "none", "--format", "markdown"])
        .await;
    assert!(
        markdown.stdout.contains("| up:delete_file |") || markdown.stdout.contains("delete_file")
    );
    let sarif = home
        .cli(["audit", "--fail-on", "none", "--format", "sarif"])
        .await
        .json();
    assert_eq!(sarif["version"], "2.1.0");
    assert!(!sarif["runs"][0]["results"].as_array().unwrap().is_empty());
    let junit = home
        .cli(["audit", "--fail-on", "none", "--format", "junit"])
        .await;
    assert!(junit.stdout.starts_with("<?xml"), "{}", junit.stdout);
}

#[tokio::test]
async fn a_manifest_is_written_and_checked() {
    let home = home();
    let honest = Script::new([
        tool("get", "Get a thing.", &json!({"readOnlyHint": true})),
        tool(
            "wipe",
            "Permanently delete everything.",
            &json!({"destructiveHint": true}),
        ),
    ]);
    let upstream = home.upstream("up", &honest);
    home.write_config(&json!({"mcpServers": {"up": upstream.config()}}));
    let file = home.path().join("tiers.json");
    let file = file.to_str().unwrap();
    home.cli(["audit", "--write-manifest", file])
        .await
        .succeeded();
    home.cli(["audit", "--manifest", file]).await.succeeded();

    let text = std::fs::read_to_string(file).unwrap();
    std::fs::write(file, text.replace("up:wipe", "up:gone")).unwrap();
    let output = home.cli(["audit", "--manifest", file, "-o", "json"]).await;
    output.ended_with(20);
    let report = output.json();
    let violations = report["violations"].as_array().unwrap();
    let codes: Vec<_> = violations
        .iter()
        .map(|violation| &violation["code"])
        .collect();
    assert!(
        codes.contains(&&json!("MISSING")) && codes.contains(&&json!("NEW")),
        "{codes:?}"
    );

    std::fs::write(file, "{").unwrap();
    home.cli(["audit", "--manifest", file]).await.ended_with(2);
}

#[tokio::test]
async fn a_server_that_is_down_does_not_keep_the_others_from_being_audited() {
    let home = home();
    let upstream = home.upstream("up", &Script::new([Tool::read_only("get_thing")]));
    let servers = json!({"up": upstream.config(), "gone": {"command": "no-such-command"}});
    home.write_config(&json!({"mcpServers": servers}));
    let output = home.cli(["audit", "-o", "json"]).await;
    output.ended_with(1);
    assert_eq!(
        find(&output.json(), "up:get_thing")["declared_tier"],
        "read_only"
    );
    assert!(
        output.stderr.contains("gone has failed"),
        "{}",
        output.stderr
    );
}

#[tokio::test]
async fn the_operators_word_is_above_the_servers_at_once() {
    let home = home();
    let upstream = home.upstream("up", &script());
    let daemon = TestDaemon::with_servers(home, json!({"up": upstream.config()})).await;
    let session = daemon.session_with(&["up:list_files"]).await;
    let set = daemon
        .home
        .cli(["tools", "override", "set", "up:list_*", "destructive"])
        .await;
    set.succeeded();
    let arguments = json!({"name": "up:list_files", "intent": {"operation_type": "read"}});
    let refusal = session.refusal("call_tool_read", &arguments).await;
    assert_eq!(refusal.code, "SERVER_MISMATCH");
    assert_eq!(refusal.details["provenance"], "override");

    let list = daemon
        .home
        .cli(["tools", "override", "list", "-o", "json"])
        .await
        .json();
    assert_eq!(list["overrides"][0]["pattern"], "up:list_*");
    daemon
        .home
        .cli(["tools", "override", "clear", "up:list_*"])
        .await
        .succeeded();
    session.call("call_tool_read", &arguments).await;
    daemon
        .home
        .cli(["tools", "override", "clear", "up:list_*"])
        .await
        .ended_with(6);
}

#[tokio::test]
async fn an_override_that_matches_nothing_is_set_with_a_warning() {
    let home = prepared();
    let output = home
        .cli(["tools", "override", "set", "up:list_filez", "write"])
        .await;
    output.succeeded();
    assert!(
        output.stderr.contains("did you mean 'up:list_files'?"),
        "{}",
        output.stderr
    );
    home.cli(["tools", "override", "set", "nonsense", "write"])
        .await
        .ended_with(2);
}

#[tokio::test]
async fn a_server_that_is_not_trusted_is_held_to_what_the_auditor_concludes() {
    let home = home();
    let upstream = home.upstream("up", &script());
    let config = json!({
        "intent_declaration": {"distrust": ["u*"]},
        "mcpServers": {"up": upstream.config()},
    });
    let daemon = TestDaemon::start(home, config).await;
    let session = daemon.session_with(&["up:delete_file"]).await;
    let arguments = json!({"name": "up:delete_file", "intent": {"operation_type": "read"}});
    let refusal = session.refusal("call_tool_read", &arguments).await;
    assert_eq!(refusal.details["provenance"], "audited");
    assert_eq!(refusal.details["call_with"], "call_tool_destructive");
}

#[tokio::test]
async fn an_unannotated_tool_is_judged_by_the_auditor_where_the_operator_asks_for_it() {
    let home = home();
    let upstream = home.upstream("up", &script());
    let config = json!({
        "intent_declaration": {"unannotated": "infer"},
        "mcpServers": {"up": upstream.config()},
    });
    let daemon = TestDaemon::start(home, config).await;
    let session = daemon.session_with(&["up:purge_cache"]).await;
    let arguments = json!({"name": "up:purge_cache", "intent": {"operation_type": "write"}});
    let refusal = session.refusal("call_tool_write", &arguments).await;
    assert_eq!(refusal.details["effective_tier"], "destructive");
    assert!(refusal.message.contains("by audit"), "{}", refusal.message);
}
