//! Searching: the shape agents rely on, the filters, and what happens when nothing fits.

use serde_json::{Value, json};
use testkit::{Script, Session, TestDaemon, Tool};

use crate::support::home;

fn notes() -> Vec<Tool> {
    let schema = |name: &str, description: &str, annotations: &Value| {
        Tool::defined(&json!({
            "name": name,
            "description": description,
            "inputSchema": {
                "type": "object",
                "properties": {"title": {"type": "string"}, "limit": {"type": "integer"}},
                "required": ["title"],
            },
            "annotations": annotations,
        }))
    };
    vec![
        schema(
            "find_note",
            "Finds a note by its title",
            &json!({"readOnlyHint": true}),
        ),
        schema(
            "write_note",
            "Writes a note",
            &json!({"readOnlyHint": false, "destructiveHint": false}),
        ),
        schema(
            "burn_note",
            "Burns a note for ever",
            &json!({"destructiveHint": true, "x-custom": [1]}),
        ),
        Tool::echo("ring_bell"),
    ]
}

async fn daemon(more: Value) -> (TestDaemon, Session) {
    let home = home();
    let notes = home.upstream("notes", &Script::new(notes()));
    let other = home.upstream(
        "other",
        &Script::new([Tool::read_only("find_note_elsewhere")]),
    );
    let mut config = more;
    config["mcpServers"] = json!({"notes": notes.config(), "other": other.config()});
    let daemon = TestDaemon::start(home, config).await;
    let session = daemon
        .session_with(&["notes:ring_bell", "other:find_note_elsewhere"])
        .await;
    (daemon, session)
}

#[tokio::test]
async fn an_answer_has_its_fixed_shape_as_text_and_as_structure() {
    let (_daemon, session) = daemon(json!({})).await;
    let result = session
        .call("retrieve_tools", &json!({"query": "burn a note"}))
        .await;
    let result: Value = serde_json::from_str(&result).unwrap();
    let text = result["content"][0]["text"].as_str().unwrap();
    let from_text: Value = serde_json::from_str(text).unwrap();
    assert_eq!(from_text, result["structuredContent"]);
    let best = &from_text["tools"][0];
    assert_eq!(best["name"], "notes:burn_note");
    assert_eq!(best["server"], "notes");
    assert_eq!(best["description"], "Burns a note for ever");
    assert_eq!(best["inputSchema"]["required"], json!(["title"]));
    assert_eq!(
        best["annotations"],
        json!({"destructiveHint": true, "x-custom": [1]})
    );
    assert_eq!(best["call_with"], "call_tool_destructive");
    assert!(best["score"].is_number());
    assert!(from_text["total"].as_u64().unwrap() >= 1);
    let usage = from_text["usage_instructions"].as_str().unwrap();
    for lane in ["call_tool_read", "call_tool_write", "call_tool_destructive"] {
        assert!(usage.contains(lane), "{usage}");
    }
}

#[tokio::test]
async fn guidance_is_there_whatever_the_detail() {
    let (_daemon, session) = daemon(json!({})).await;
    for detail in ["auto", "full", "compact"] {
        let query = json!({"query": "note", "detail": detail});
        let found = session.retrieve(&query).await;
        assert!(found["usage_instructions"].is_string(), "{detail}");
        for tool in found["tools"].as_array().unwrap() {
            assert!(tool["annotations"].is_object(), "{detail} {tool}");
            assert!(tool["call_with"].is_string(), "{detail} {tool}");
            assert_eq!(
                tool["provenance"].is_string(),
                detail != "compact",
                "{tool}"
            );
            assert_eq!(tool["signature"].is_string(), detail == "compact", "{tool}");
            assert_eq!(
                tool["inputSchema"].is_object(),
                detail != "compact",
                "{tool}"
            );
        }
    }
}

#[tokio::test]
async fn the_recommended_lane_follows_the_annotations() {
    let (_daemon, session) = daemon(json!({})).await;
    let expected = [
        ("find_note", "call_tool_read"),
        ("write_note", "call_tool_write"),
        ("burn_note", "call_tool_destructive"),
        ("ring_bell", "call_tool_write"),
    ];
    for (name, lane) in expected {
        let found = session
            .retrieve(&json!({"query": name, "server": "notes"}))
            .await;
        let tools = found["tools"].as_array().unwrap();
        let id = format!("notes:{name}");
        let tool = tools
            .iter()
            .find(|tool| tool["name"] == id.as_str())
            .unwrap();
        assert_eq!(tool["call_with"], lane, "{name}");
    }
}

#[tokio::test]
async fn later_hits_get_a_signature_when_the_budget_is_spent() {
    let (_daemon, session) = daemon(json!({"retrieve_tools": {"schema_budget": 150}})).await;
    let query = json!({"query": "note", "server": "notes"});
    let found = session.retrieve(&query).await;
    let tools = found["tools"].as_array().unwrap();
    assert!(tools[0]["inputSchema"].is_object(), "{found}");
    assert_eq!(tools[1]["inputSchema"], Value::Null, "{found}");
    let signature = tools[1]["signature"].as_str().unwrap();
    assert!(signature.contains("title"), "{signature}");
    assert!(!signature.contains('\n'), "{signature}");
}

#[tokio::test]
async fn filters_apply_before_the_cut() {
    let (_daemon, session) = daemon(json!({})).await;
    let names = session
        .names(&json!({"query": "note", "limit": 1, "server": "other"}))
        .await;
    assert_eq!(names, ["other:find_note_elsewhere"]);
    let lane = json!({"query": "note", "limit": 1, "lane": "destructive"});
    assert_eq!(session.names(&lane).await, ["notes:burn_note"]);
    let all = session
        .retrieve(&json!({"query": "note", "limit": 1}))
        .await;
    assert_eq!(all["tools"].as_array().unwrap().len(), 1);
    assert!(all["total"].as_u64().unwrap() > 1, "{all}");
}

#[tokio::test]
async fn the_order_is_the_same_every_time() {
    let (_daemon, session) = daemon(json!({})).await;
    let query = json!({"query": "find a note"});
    let first = session.call("retrieve_tools", &query).await;
    for _ in 0..5 {
        assert_eq!(session.call("retrieve_tools", &query).await, first);
    }
}

#[tokio::test]
async fn no_match_is_an_empty_answer_with_a_hint() {
    let (_daemon, session) = daemon(json!({})).await;
    let found = session
        .retrieve(&json!({"query": "quantum chromodynamics"}))
        .await;
    assert_eq!(found["tools"], json!([]));
    assert_eq!(found["total"], 0);
    assert!(
        found["hint"].as_str().is_some_and(|hint| !hint.is_empty()),
        "{found}"
    );
}

#[tokio::test]
async fn bad_arguments_are_named() {
    let (_daemon, session) = daemon(json!({})).await;
    let cases = [
        (json!({}), "query"),
        (json!({"query": ""}), "query"),
        (json!({"query": "note", "limit": 0}), "limit"),
        (json!({"query": "note", "limit": 51}), "limit"),
        (json!({"query": "note", "limit": "ten"}), "limit"),
        (json!({"query": "note", "lane": "sideways"}), "lane"),
        (json!({"query": "note", "detail": "huge"}), "huge"),
        (json!({"query": "note", "server": "nots"}), "notes"),
    ];
    for (arguments, word) in cases {
        let refusal = session.refusal("retrieve_tools", &arguments).await;
        assert!(
            refusal.message.contains(word),
            "{arguments}: {}",
            refusal.message
        );
    }
}

#[tokio::test]
async fn describe_tool_shows_definitions_with_the_tier_and_why() {
    let (_daemon, session) = daemon(json!({})).await;
    let names = json!({"names": ["notes:burn_note", "notes:brun_note"]});
    let result = session.call("describe_tool", &names).await;
    let value: Value = serde_json::from_str(&result).unwrap();
    assert_ne!(value["isError"], true, "{result}");
    let description = &value["structuredContent"]["tools"][0];
    assert_eq!(
        description["effective_tier"], "destructive",
        "{description}"
    );
    assert!(
        description.to_string().contains("x-custom"),
        "{description}"
    );
    // A name that is wrong gets a suggestion and does not spoil the rest.
    assert!(result.contains("brun_note"), "{result}");
}
