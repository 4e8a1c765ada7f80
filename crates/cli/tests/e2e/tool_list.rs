//! What clients see of mcpproxy itself: six tools, always the same.

use serde_json::{Value, json};

use crate::support::{Front, home};
use testkit::{TestDaemon, Tool};

const NAMES: [&str; 6] = [
    "retrieve_tools",
    "describe_tool",
    "call_tool_read",
    "call_tool_write",
    "call_tool_destructive",
    "read_cache",
];

async fn list(daemon: &TestDaemon) -> String {
    let answer = daemon.session().await.request("tools/list", "{}").await;
    answer.result.unwrap()
}

fn tools(list: &str) -> Vec<Value> {
    let list: Value = serde_json::from_str(list).unwrap();
    list["tools"].as_array().unwrap().clone()
}

#[tokio::test]
async fn six_tools_in_a_fixed_order_in_less_than_8_kilobytes() {
    let front = Front::of([Tool::echo("extra")]).await;
    front.session("extra").await;
    let first = list(&front.daemon).await;
    let names: Vec<_> = tools(&first)
        .iter()
        .map(|tool| tool["name"].clone())
        .collect();
    assert_eq!(names, NAMES);
    assert!(first.len() < 8_000, "{} bytes", first.len());
    // The same for every connection, whatever the upstreams offer.
    assert_eq!(list(&front.daemon).await, first);
    let alone = TestDaemon::with_servers(home(), json!({})).await;
    assert_eq!(list(&alone).await, first);
}

#[tokio::test]
async fn annotations_let_a_client_approve_by_name() {
    let daemon = TestDaemon::with_servers(home(), json!({})).await;
    let ours = json!({"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true,
        "openWorldHint": false});
    let expected = [
        ours.clone(),
        ours.clone(),
        json!({"readOnlyHint": true, "destructiveHint": false}),
        json!({"readOnlyHint": false, "destructiveHint": false}),
        json!({"readOnlyHint": false, "destructiveHint": true}),
        ours,
    ];
    for (tool, expected) in tools(&list(&daemon).await).iter().zip(expected) {
        let mut annotations = tool["annotations"].clone();
        annotations.as_object_mut().unwrap().shift_remove("title");
        assert_eq!(annotations, expected, "{}", tool["name"]);
        let meta = json!({"anthropic/alwaysLoad": true, "anthropic/maxResultSizeChars": 500_000});
        assert_eq!(tool["_meta"], meta);
        assert!(tool["title"].is_string(), "{tool}");
        assert!(tool["inputSchema"]["properties"].is_object(), "{tool}");
    }
}

#[tokio::test]
async fn the_schema_shows_the_intent_in_the_form_of_the_mode() {
    for (mode, nested) in [("two_key", true), ("inferred", false)] {
        let config = json!({"intent_declaration": {"mode": mode}, "mcpServers": {}});
        let daemon = TestDaemon::start(home(), config).await;
        for tool in &tools(&list(&daemon).await)[2..5] {
            let schema = &tool["inputSchema"];
            let properties = schema["properties"].as_object().unwrap();
            assert!(properties.contains_key("name") && properties.contains_key("args_json"));
            assert_eq!(properties.contains_key("intent"), nested, "{mode} {schema}");
            let flat = properties.contains_key("intent_reason");
            assert_eq!(flat, !nested, "{mode} {schema}");
            let required = schema["required"].as_array().unwrap();
            assert!(required.contains(&json!("name")));
            assert_eq!(
                required.contains(&json!("intent")),
                nested,
                "{mode} {schema}"
            );
        }
    }
}

#[tokio::test]
async fn descriptions_say_which_lane_is_for_what() {
    let daemon = TestDaemon::with_servers(home(), json!({})).await;
    let tools = tools(&list(&daemon).await);
    let retrieve = tools[0]["description"].as_str().unwrap();
    for name in &NAMES[2..5] {
        assert!(retrieve.contains(name), "{name} is not in: {retrieve}");
    }
    for (tool, word) in tools[2..5].iter().zip(["read", "write", "destructive"]) {
        let description = tool["description"].as_str().unwrap();
        assert!(description.contains("operation_type"), "{description}");
        assert!(description.contains(word), "{description}");
    }
}
