//! The matrix of lanes, intents and annotations, through real calls.

use serde_json::{Value, json};
use testkit::{Script, Session, Tool};

use crate::support::{Front, call};

const READ: &str = "call_tool_read";
const WRITE: &str = "call_tool_write";
const DESTRUCTIVE: &str = "call_tool_destructive";

/// One tool for each thing a server can say, named after it.
fn tools() -> Vec<Tool> {
    vec![
        Tool::echo("silent"),
        Tool::read_only("reads"),
        Tool::destructive("destroys"),
        Tool::annotated("not_read_only", &json!({"readOnlyHint": false})),
        Tool::annotated("additive", &json!({"destructiveHint": false})),
        Tool::annotated(
            "contradictory",
            &json!({"readOnlyHint": true, "destructiveHint": true}),
        ),
    ]
}

async fn front(intent_declaration: Value) -> (Front, Session) {
    let config = json!({ "intent_declaration": intent_declaration });
    let front = Front::with(config, &Script::new(tools())).await;
    let session = front.session("contradictory").await;
    (front, session)
}

/// Makes the call and returns the code and message of its refusal; none if it ran.
async fn refusal(session: &Session, variant: &str, arguments: &Value) -> Option<(String, String)> {
    let result = session.call(variant, arguments).await;
    let value: Value = serde_json::from_str(&result).unwrap();
    (value["isError"] == true).then(|| {
        let refusal = testkit::Refusal::of(&result);
        (refusal.code, refusal.message)
    })
}

#[tokio::test]
async fn every_row_of_the_matrix() {
    let (front, session) = front(json!({})).await;
    let rows = [
        (READ, "read", "reads", ""),
        (READ, "read", "silent", ""),
        (READ, "read", "destroys", "SERVER_MISMATCH"),
        (READ, "read", "contradictory", "SERVER_MISMATCH"),
        (READ, "read", "not_read_only", "SERVER_MISMATCH"),
        (READ, "read", "additive", "SERVER_MISMATCH"),
        (READ, "write", "reads", "INTENT_MISMATCH"),
        (READ, "write", "silent", "INTENT_MISMATCH"),
        (READ, "destructive", "destroys", "INTENT_MISMATCH"),
        (WRITE, "write", "reads", ""),
        (WRITE, "write", "silent", ""),
        (WRITE, "write", "not_read_only", ""),
        (WRITE, "write", "additive", ""),
        (WRITE, "write", "destroys", "SERVER_MISMATCH"),
        (WRITE, "write", "contradictory", "SERVER_MISMATCH"),
        (WRITE, "destructive", "destroys", "INTENT_MISMATCH"),
        (WRITE, "read", "reads", "INTENT_MISMATCH"),
        (DESTRUCTIVE, "destructive", "reads", ""),
        (DESTRUCTIVE, "destructive", "silent", ""),
        (DESTRUCTIVE, "destructive", "not_read_only", ""),
        (DESTRUCTIVE, "destructive", "destroys", ""),
        (DESTRUCTIVE, "destructive", "contradictory", ""),
        (DESTRUCTIVE, "read", "destroys", "INTENT_MISMATCH"),
        (DESTRUCTIVE, "write", "silent", "INTENT_MISMATCH"),
    ];
    for (variant, operation_type, tool, expected) in rows {
        let row = format!("{variant} declared {operation_type} on {tool}");
        let reached = front.record.calls().len();
        let arguments = call(&format!("up:{tool}"), operation_type);
        let refused = refusal(&session, variant, &arguments).await;
        let (code, message) = refused.unwrap_or_default();
        assert_eq!(code, expected, "{row}: {message}");
        let runs = usize::from(expected.is_empty());
        assert_eq!(front.record.calls().len(), reached + runs, "{row}");
    }
}

#[tokio::test]
async fn messages_are_fixed() {
    let (_front, session) = front(json!({})).await;
    let cases = [
        (
            READ,
            call("up:reads", "write"),
            "Intent mismatch: tool is call_tool_read but intent declares write",
        ),
        (
            DESTRUCTIVE,
            call("up:reads", "read"),
            "Intent mismatch: tool is call_tool_destructive but intent declares read",
        ),
        (
            READ,
            json!({"name": "up:reads"}),
            "intent parameter is required for call_tool_read",
        ),
        (
            WRITE,
            json!({"name": "up:reads", "intent": {"reason": "because"}}),
            "intent.operation_type is required",
        ),
        (
            READ,
            call("up:reads", "unknown"),
            "Invalid intent.operation_type 'unknown': must be read, write, or destructive",
        ),
        (
            WRITE,
            call("up:destroys", "write"),
            "Tool 'up:destroys' is marked destructive by server, use call_tool_destructive",
        ),
        (
            READ,
            json!({"name": "up:reads", "intent_operation_type": "read",
                "intent_data_sensitivity": "secret"}),
            "Invalid intent.data_sensitivity 'secret': must be public, internal, private, or unknown",
        ),
        (
            READ,
            json!({"name": "up:reads",
                "intent": {"operation_type": "read", "reason": "é".repeat(1001)}}),
            "intent.reason exceeds maximum length of 1000 characters",
        ),
    ];
    for (variant, arguments, expected) in cases {
        let (_, message) = refusal(&session, variant, &arguments).await.unwrap();
        assert_eq!(message, expected);
    }
}

#[tokio::test]
async fn codes_and_details_are_for_programs() {
    let (_front, session) = front(json!({})).await;
    let missing = session.refusal(READ, &json!({"name": "up:reads"})).await;
    assert_eq!(missing.code, "MISSING_INTENT");
    let no_type = json!({"name": "up:reads", "intent": {}});
    let no_type = session.refusal(READ, &no_type).await;
    assert_eq!(no_type.code, "MISSING_OPERATION_TYPE");
    let conflict = session
        .refusal(READ, &call("up:not_read_only", "read"))
        .await;
    assert_eq!(conflict.code, "SERVER_MISMATCH");
    assert!(
        conflict.message.ends_with("use call_tool_write"),
        "{}",
        conflict.message
    );
    assert_eq!(conflict.details["tool"], "up:not_read_only");
    assert_eq!(conflict.details["tool_variant"], READ);
    assert_eq!(conflict.details["call_with"], WRITE);
}

#[tokio::test]
async fn every_form_of_an_intent_is_understood() {
    let (front, session) = front(json!({})).await;
    let forms = [
        json!({"intent": {"operation_type": "read", "data_sensitivity": "private", "reason": "r"}}),
        json!({"intent": "{\"operation_type\":\"read\",\"reason\":\"r\"}"}),
        json!({"intent_operation_type": "read", "intent_reason": "é".repeat(1000)}),
        json!({"intent": {"operation_type": "read"}, "intent_operation_type": "read"}),
    ];
    for form in &forms {
        let mut arguments = form.clone();
        arguments["name"] = "up:reads".into();
        assert_eq!(refusal(&session, READ, &arguments).await, None, "{form}");
    }
    assert_eq!(front.record.calls().len(), forms.len());
    let twice = json!({"name": "up:reads", "intent": {"operation_type": "read"},
        "intent_operation_type": "write"});
    let contradiction = session.refusal(READ, &twice).await;
    assert_eq!(contradiction.code, "INVALID_ARGS");
    // The intent is for us: the upstream sees none of it.
    for call in front.record.calls() {
        assert!(!call.to_string().contains("operation_type"), "{call}");
    }
}

#[tokio::test]
async fn inferred_mode_takes_the_operation_type_from_the_lane() {
    let (front, session) = front(json!({"mode": "inferred"})).await;
    let silent = json!({"name": "up:reads"});
    assert_eq!(refusal(&session, READ, &silent).await, None);
    let only_reason = json!({"name": "up:reads", "intent_reason": "curious"});
    assert_eq!(refusal(&session, READ, &only_reason).await, None);
    assert_eq!(front.record.calls().len(), 2);
    let mismatch = session.refusal(READ, &call("up:reads", "write")).await;
    assert_eq!(mismatch.code, "INTENT_MISMATCH");
    let conflict = session.refusal(READ, &json!({"name": "up:destroys"})).await;
    assert_eq!(conflict.code, "SERVER_MISMATCH");
}

#[tokio::test]
async fn without_strict_validation_annotations_only_warn() {
    let (front, session) = front(json!({"strict_server_validation": false})).await;
    for tool in ["up:destroys", "up:contradictory", "up:not_read_only"] {
        assert_eq!(
            refusal(&session, READ, &call(tool, "read")).await,
            None,
            "{tool}"
        );
    }
    assert_eq!(front.record.calls().len(), 3);
    let log = front.daemon.log();
    assert!(
        log.contains("up:destroys") && log.contains("marked destructive"),
        "{log}"
    );
    let mismatch = session
        .refusal(READ, &call("up:destroys", "destructive"))
        .await;
    assert_eq!(mismatch.code, "INTENT_MISMATCH");
}

#[tokio::test]
async fn the_operator_can_tighten_what_servers_leave_open() {
    let config = json!({
        "intent_declaration": {"unannotated": "deny"},
        "tool_overrides": {"up:re*": "destructive", "up:destroys": "read_only"},
    });
    let front = Front::with(config, &Script::new(tools())).await;
    let session = front.session("silent").await;
    let silent = session.refusal(WRITE, &call("up:silent", "write")).await;
    assert_eq!(silent.code, "SERVER_MISMATCH");
    let raised = session.refusal(READ, &call("up:reads", "read")).await;
    assert_eq!(raised.code, "SERVER_MISMATCH");
    assert_eq!(raised.details["provenance"], "override");
    assert_eq!(
        refusal(&session, READ, &call("up:destroys", "read")).await,
        None
    );
    assert_eq!(
        refusal(&session, DESTRUCTIVE, &call("up:silent", "destructive")).await,
        None
    );
}

#[tokio::test]
async fn annotations_are_checked_again_at_call_time() {
    let swap = testkit::Outcome::ReplaceTools(vec![Tool::destructive("changeable")]);
    let front = Front::of([
        Tool::read_only("changeable"),
        Tool::echo("swap").outcome(swap),
    ])
    .await;
    let session = front.session("swap").await;
    assert_eq!(
        refusal(&session, READ, &call("up:changeable", "read")).await,
        None
    );
    assert_eq!(
        refusal(&session, WRITE, &call("up:swap", "write")).await,
        None
    );
    testkit::wait_until("the new annotation counts", testkit::DEADLINE, async || {
        let refused = refusal(&session, READ, &call("up:changeable", "read")).await;
        refused.is_some_and(|(code, _)| code == "SERVER_MISMATCH")
    })
    .await;
}

#[tokio::test]
async fn the_removed_call_tool_names_its_successors() {
    let (_front, session) = front(json!({})).await;
    let result = session.call("call_tool", &call("up:reads", "read")).await;
    let value: Value = serde_json::from_str(&result).unwrap();
    assert_eq!(value["isError"], true);
    let text = value["content"][0]["text"].as_str().unwrap();
    assert!(
        text.starts_with(
            "Tool 'call_tool' not found. Use call_tool_read, call_tool_write, or \
             call_tool_destructive"
        ),
        "{text}"
    );
}
