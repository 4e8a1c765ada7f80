//! What `tools/list` says about the tools.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::Demo;

const READ_ONLY: [&str; 7] = [
    "list_notes",
    "get_note",
    "search_notes",
    "list_tags",
    "list_note_versions",
    "list_bin",
    "export_notes",
];
/// A second call with the same arguments changes nothing more.
const WRITE_IDEMPOTENT: [&str; 6] = [
    "update_note",
    "tag_note",
    "untag_note",
    "pin_note",
    "restore_note",
    "restore_note_version",
];
const WRITE_EACH_TIME: [&str; 2] = ["create_note", "append_to_note"];
const SOFT_DELETE: [&str; 2] = ["delete_note", "archive_note"];
const DESTRUCTIVE: [&str; 4] = ["purge_note", "purge_bin", "purge_all_notes", "import_notes"];

fn expected_annotations(name: &str) -> Value {
    if READ_ONLY.contains(&name) {
        json!({ "readOnlyHint": true, "openWorldHint": false })
    } else if WRITE_IDEMPOTENT.contains(&name) || SOFT_DELETE.contains(&name) {
        json!({ "destructiveHint": false, "idempotentHint": true, "openWorldHint": false })
    } else if WRITE_EACH_TIME.contains(&name) {
        json!({ "destructiveHint": false, "idempotentHint": false, "openWorldHint": false })
    } else if DESTRUCTIVE.contains(&name) {
        json!({ "destructiveHint": true, "openWorldHint": false })
    } else {
        panic!("{name} belongs to no tier")
    }
}

#[tokio::test]
async fn every_tool_is_annotated_as_its_tier_asks() {
    let demo = Demo::start().await;
    let tools = demo.tools().await;
    for tool in &tools {
        let name = tool["name"].as_str().unwrap();
        assert_eq!(tool["annotations"], expected_annotations(name), "{name}");
    }
    let names: BTreeSet<_> = tools.iter().map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names.len(), tools.len(), "no name twice");
    assert_eq!(tools.len(), 21, "every classified tool is there");
}

#[tokio::test]
async fn descriptions_say_what_can_be_undone() {
    let demo = Demo::start().await;
    for tool in demo.tools().await {
        let name = tool["name"].as_str().unwrap();
        let description = tool["description"].as_str().unwrap();
        assert!(!tool["title"].as_str().unwrap().is_empty());
        if SOFT_DELETE.contains(&name) {
            assert!(description.contains("can be restored"), "{name}");
        }
        if DESTRUCTIVE.contains(&name) {
            assert!(description.contains("cannot be undone"), "{name}");
        }
    }
}

/// Every object in the schema names only properties that it has, and describes those.
fn check_object(name: &str, schema: &Value) {
    assert_eq!(schema["type"], "object", "{name}");
    assert_eq!(schema["additionalProperties"], false, "{name}");
    let properties = schema["properties"].as_object().unwrap();
    for required in schema["required"].as_array().into_iter().flatten() {
        let required = required.as_str().unwrap();
        assert!(properties.contains_key(required), "{name}: {required}");
    }
    for (property, schema) in properties {
        assert!(schema["type"].is_string(), "{name}.{property}: {schema}");
        let description = schema["description"].as_str().unwrap();
        assert!(!description.contains('\n'), "{name}.{property}");
        if schema["items"]["type"] == "object" {
            check_object(name, &schema["items"]);
        }
    }
}

#[tokio::test]
async fn input_schemas_are_complete() {
    let demo = Demo::start().await;
    for tool in demo.tools().await {
        let name = tool["name"].as_str().unwrap();
        check_object(name, &tool["inputSchema"]);
        assert!(!tool["inputSchema"].to_string().contains("$ref"), "{name}");
    }
}

/// Clients remember definitions by their hash, so a definition must not hold a time or an order
/// that changes.
#[tokio::test]
async fn definitions_are_the_same_every_time() {
    let demo = Demo::start().await;
    let before = demo.tools().await;
    demo.ok("create_note", json!({ "title": "Later" })).await;
    assert_eq!(
        json!(before).to_string(),
        json!(demo.tools().await).to_string()
    );
}

#[tokio::test]
async fn the_server_introduces_itself() {
    let demo = Demo::start().await;
    let handshake = demo.client.handshake();
    assert_eq!(handshake.server.name, "mcpproxy-demo");
    assert_eq!(handshake.capabilities.get(), r#"{"tools":{}}"#);
    assert!(
        handshake
            .instructions
            .as_ref()
            .unwrap()
            .contains("search_notes")
    );
}
