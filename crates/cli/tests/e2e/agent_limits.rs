//! What one answer to an agent may hold, and which tools it never sees.

use serde_json::{Value, json};
use testkit::{DEADLINE, Script, Session, Tool, wait_until};

use crate::support::{Front, rest};

const LIMIT: usize = 20_000;

/// A tool whose definition has about this many bytes.
fn large(name: &str, bytes: usize) -> Tool {
    Tool::defined(&json!({
        "name": name, "description": "Looks.", "annotations": {"readOnlyHint": true},
        "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
        "x-filler": "f".repeat(bytes),
    }))
}

async fn describe(session: &Session, names: &[String]) -> (usize, Value) {
    let answer = session
        .call("describe_tool", &json!({ "names": names }))
        .await;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let text = answer["content"][0]["text"].as_str().unwrap();
    (text.len(), answer["structuredContent"].clone())
}

#[tokio::test]
async fn describe_tool_stays_within_the_limit() {
    let mut tools: Vec<Tool> = (0..15).map(|n| large(&format!("t{n}"), 5_000)).collect();
    tools.push(large("huge", 500_000));
    let config = json!({"tool_response_limit": LIMIT});
    let front = Front::with(config, &Script::new(tools)).await;
    let session = front.session("huge").await;

    let same = vec!["up:t0".to_owned(); 50];
    let (length, described) = describe(&session, &same).await;
    assert!(length < 6_000, "{length}");
    assert_eq!(described["tools"].as_array().unwrap().len(), 1);

    let all: Vec<String> = (0..15).map(|n| format!("up:t{n}")).collect();
    let (length, described) = describe(&session, &all).await;
    assert!(length < LIMIT + 15 * 250, "{length}");
    let described = described["tools"].as_array().unwrap();
    assert_eq!(described.len(), 15);
    assert_eq!(described[0]["definition"]["name"], "t0");
    let omitted = described[14]["omitted"].as_str().unwrap();
    assert!(
        omitted.contains(r#"describe_tool with {"names": ["up:t14"]}"#),
        "{omitted}"
    );
    let (_, alone) = describe(&session, &all[14..]).await;
    assert_eq!(alone["tools"][0]["definition"]["name"], "t14");

    let (length, described) = describe(&session, &["up:huge".to_owned()]).await;
    assert!(length < LIMIT, "{length}");
    let huge = &described["tools"][0];
    assert_eq!(huge["signature"], "(path?: string)");
    assert!(
        huge["note"]
            .as_str()
            .unwrap()
            .contains("tool_response_limit"),
        "{huge}"
    );

    let unknown = vec!["n".repeat(100_000); 3];
    let (length, _) = describe(&session, &unknown).await;
    assert!(length < 5_000, "{length}");
}

/// A name with characters that nobody sees would look like another one, and be another tool.
#[tokio::test]
async fn tools_with_invisible_characters_in_their_names_are_not_offered() {
    let hidden = [
        "se\u{200b}arch",
        "se\u{202e}arch",
        "search\u{e0041}",
        "se\u{ad}arch",
    ];
    let mut tools: Vec<Tool> = hidden.iter().map(|name| Tool::read_only(name)).collect();
    tools.push(Tool::read_only("search"));
    let front = Front::of(tools).await;
    let session = front.session("search").await;
    let (_, listed) = rest(&front.daemon, "GET", "/tools", None).await;
    assert_eq!(
        listed["data"]["tools"].as_array().unwrap().len(),
        1,
        "{listed}"
    );
    let direct = Session::open(&front.daemon.url("/mcp/direct")).await;
    let shown = direct.request("tools/list", "{}").await.result.unwrap();
    assert_eq!(shown.matches("up__se").count(), 1, "{shown}");
    for name in hidden {
        let call = json!({"name": format!("up:{name}"), "intent": {"operation_type": "read"}});
        let answer = session.call("call_tool_read", &call).await;
        assert!(answer.contains("INVALID_TOOL_NAME"), "{answer}");
        let call = json!({"name": format!("up__{name}")}).to_string();
        let answer = direct.request("tools/call", &call).await;
        assert_eq!(answer.result.unwrap_err()["code"], -32602, "{name:?}");
    }
    let server = Session::open(&front.daemon.url("/mcp/server/up")).await;
    let shown = server.request("tools/list", "{}").await.result.unwrap();
    assert_eq!(shown.matches(r#""name""#).count(), 1, "{shown}");
    for name in hidden {
        let call = json!({"name": name}).to_string();
        let answer = server.request("tools/call", &call).await;
        assert_eq!(answer.result.unwrap_err()["code"], -32602, "{name:?}");
    }
    assert!(front.record.calls().is_empty(), "none of them was called");
    wait_until("it is told", DEADLINE, async || {
        let log = front.daemon.log();
        log.contains("<U+200B>") && log.contains("is not offered")
    })
    .await;
}

/// A hint that cannot be read counts against the tool, and an odd result that says it is an error
/// is one.
#[tokio::test]
async fn what_is_malformed_counts_against_the_tool() {
    let hints = json!({"readOnlyHint": true, "destructiveHint": "true"});
    let front = Front::of([
        Tool::annotated("wipe", &hints),
        Tool::read_only("odd").returns(r#"{"isError":true,"content":null}"#),
    ])
    .await;
    let session = front.session("wipe").await;
    let call = |tool: &str| json!({"name": tool, "intent": {"operation_type": "read"}});
    let refused = session.call("call_tool_read", &call("up:wipe")).await;
    assert!(refused.contains("SERVER_MISMATCH"), "{refused}");
    assert!(front.record.calls().is_empty());
    session.call("call_tool_read", &call("up:odd")).await;
    wait_until("the call is recorded as an error", DEADLINE, async || {
        let (_, answer) = rest(&front.daemon, "GET", "/activity?tool=odd", None).await;
        answer["data"]["activities"][0]["status"] == "error"
    })
    .await;
}
