//! Questions, log messages, resources and prompts of upstreams through `/mcp`.

use std::path::Path;

use mcp::client::Era;
use serde_json::{Value, json};
use testkit::{DEADLINE, Script, TestDaemon, Tool, wait_until};

use crate::both_eras::in_front_of_python;
use crate::peers::{command, json_output, tool};
use crate::person::{Person, Visitor, everything, fixture_over_stdio};
use crate::support::{Front, call, home};

async fn visit(daemon: &TestDaemon, era: Era, capabilities: &Value) -> Visitor {
    let person = Person::called("somebody");
    person.visits(daemon, "/mcp", era, capabilities).await
}

/// Calls a tool on the write lane, whatever comes back.
async fn write(visitor: &Visitor, tool: &str, arguments: &Value) -> Value {
    let mut request = call(tool, "write");
    request["args"] = arguments.clone();
    let params = json!({"name": "call_tool_write", "arguments": request});
    visitor.request("tools/call", &params).await.unwrap()
}

#[tokio::test]
async fn whoever_calls_is_asked_in_both_eras_by_servers_of_both() {
    let servers = json!({
        "old": fixture_over_stdio("legacy"),
        "new": fixture_over_stdio("modern"),
        "both": fixture_over_stdio("both"),
    });
    let daemon = TestDaemon::with_servers(home(), servers).await;
    let tools = [
        "old:test_sampling",
        "new:test_sampling",
        "both:test_sampling",
    ];
    daemon.session_with(&tools).await;
    for era in [Era::Legacy, Era::Modern] {
        let visitor = visit(&daemon, era, &everything()).await;
        for server in ["old", "new", "both"] {
            let question = json!({"message": "who?"});
            let elicited = write(&visitor, &format!("{server}:test_elicitation"), &question).await;
            let elicited = elicited.to_string();
            assert!(
                elicited.contains("somebody"),
                "{era:?} {server}: {elicited}"
            );
            let prompt = json!({"prompt": "say"});
            let sampled = write(&visitor, &format!("{server}:test_sampling"), &prompt).await;
            let sampled = sampled.to_string();
            assert!(sampled.contains("somebody"), "{era:?} {server}: {sampled}");
        }
        assert_eq!(visitor.person.asked().len(), 6, "{era:?}");
    }
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_is_not_asked() {
    let servers = json!({"old": fixture_over_stdio("legacy")});
    let daemon = TestDaemon::with_servers(home(), servers).await;
    daemon.session_with(&["old:test_elicitation"]).await;
    let visitor = visit(&daemon, Era::Legacy, &json!({})).await;
    let refused = write(&visitor, "old:test_elicitation", &json!({"message": "?"})).await;
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(visitor.person.asked().is_empty());
}

#[tokio::test]
async fn log_messages_of_a_call_reach_its_client() {
    let servers = json!({"old": fixture_over_stdio("legacy")});
    let daemon = TestDaemon::with_servers(home(), servers).await;
    daemon.session_with(&["old:test_tool_with_logging"]).await;
    for capabilities in [json!({}), everything()] {
        let visitor = visit(&daemon, Era::Legacy, &capabilities).await;
        let level = json!({"level": "debug"});
        visitor.request("logging/setLevel", &level).await.unwrap();
        write(&visitor, "old:test_tool_with_logging", &json!({})).await;
        assert!(
            visitor.person.has_heard("notifications/message"),
            "{capabilities}"
        );
    }
}

#[tokio::test]
async fn resources_and_prompts_of_all_upstreams_are_on_the_endpoint_of_agents() {
    let servers = json!({
        "old": fixture_over_stdio("legacy"),
        "new": fixture_over_stdio("modern"),
    });
    let daemon = TestDaemon::with_servers(home(), servers).await;
    daemon
        .session_with(&["old:test_simple_text", "new:test_simple_text"])
        .await;
    for era in [Era::Legacy, Era::Modern] {
        let visitor = visit(&daemon, era, &json!({})).await;
        let prompts = visitor.request("prompts/list", &json!({})).await.unwrap();
        let names = prompts["prompts"].as_array().unwrap().iter();
        let names: Vec<_> = names
            .map(|prompt| prompt["name"].as_str().unwrap())
            .collect();
        for server in ["old", "new"] {
            let name = format!("{server}__test_simple_prompt");
            assert!(names.contains(&name.as_str()), "{era:?}: {names:?}");
            let got = visitor.request("prompts/get", &json!({"name": name})).await;
            assert!(got.unwrap()["messages"].is_array(), "{era:?}");
        }
        let listed = visitor.request("resources/list", &json!({})).await.unwrap();
        assert!(
            listed.to_string().contains("test://static-text"),
            "{listed}"
        );
        let templates = visitor
            .request("resources/templates/list", &json!({}))
            .await;
        assert!(templates.unwrap()["resourceTemplates"].is_array());
        // A link in a result is read by its address.
        let link = json!({"uri": "test://static-text"});
        let read = visitor.request("resources/read", &link).await.unwrap();
        assert!(read["contents"][0]["text"].is_string(), "{era:?}: {read}");
    }
}

#[tokio::test]
async fn a_subscribed_agent_hears_of_changes() {
    let daemon = in_front_of_python().await;
    let visitor = visit(&daemon, Era::Legacy, &json!({})).await;
    let note = json!({"uri": "note://one"});
    visitor.request("resources/subscribe", &note).await.unwrap();
    // The stream for notifications is opened beside the requests.
    wait_until("the agent hears of the change", DEADLINE, async || {
        write(&visitor, "py:touch", &json!({})).await;
        visitor.person.has_heard("notifications/resources/updated")
    })
    .await;
}

#[tokio::test]
async fn the_tools_of_the_endpoint_do_not_change_with_those_of_an_upstream() {
    let front = Front::with(json!({}), &Script::new([Tool::read_only("look")])).await;
    let session = front.session("look").await;
    let listed = session.request("tools/list", "{}").await.result.unwrap();
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["tools"].as_array().unwrap().len(), 6);
}

#[tokio::test]
async fn a_client_of_the_python_sdk_is_asked_by_a_server_of_the_python_sdk() {
    let daemon = in_front_of_python().await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/python_asked.py");
    let mut command = command(tool("venv/bin").join("python"), &daemon.home);
    command
        .arg(script)
        .args([&daemon.url("/mcp"), "legacy", "call_tool_write"])
        .args(["py:greet", "py:think", "py:tell"]);
    let report = json_output(command).await;
    assert_eq!(
        report["results"]["py:greet"],
        json!(["hello ada"]),
        "{report}"
    );
    assert_eq!(
        report["results"]["py:think"],
        json!(["thought ada"]),
        "{report}"
    );
    assert_eq!(
        report["asked"],
        json!(["elicitation", "sampling"]),
        "{report}"
    );
    assert_eq!(report["told"], json!(["from tell"]), "{report}");
    assert_eq!(report["prompts"], json!(["py__review"]), "{report}");
    assert_eq!(report["resources"], json!(["note://one"]), "{report}");
}
