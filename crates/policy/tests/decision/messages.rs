//! The texts agents correct themselves by. They are part of the interface: each is given whole.

use policy::{Annotations, DeclaredIntent, Tier, ToolVariant, Unannotated};
use serde_json::json;

use crate::Scenario;

#[test]
fn intent_messages() {
    let read = || Scenario::on(ToolVariant::Read);
    let table = [
        (
            read().declaring("write"),
            "Intent mismatch: tool is call_tool_read but intent declares write",
        ),
        (
            Scenario::on(ToolVariant::Destructive).declaring("read"),
            "Intent mismatch: tool is call_tool_destructive but intent declares read",
        ),
        (
            Scenario {
                intent: None,
                ..read()
            },
            "intent parameter is required for call_tool_read",
        ),
        (
            Scenario {
                intent: Some(DeclaredIntent::default()),
                ..read()
            },
            "intent.operation_type is required",
        ),
        (
            read().declaring("unknown"),
            "Invalid intent.operation_type 'unknown': must be read, write, or destructive",
        ),
        (
            with_intent(read(), Some("secret"), None),
            "Invalid intent.data_sensitivity 'secret': must be public, internal, private, or unknown",
        ),
        (
            with_intent(read(), None, Some("x".repeat(1001))),
            "intent.reason exceeds maximum length of 1000 characters",
        ),
    ];
    for (scenario, message) in table {
        assert_eq!(scenario.message(), message);
    }
}

fn with_intent(
    mut scenario: Scenario,
    sensitivity: Option<&str>,
    reason: Option<String>,
) -> Scenario {
    let intent = scenario.intent.get_or_insert_default();
    intent.data_sensitivity = sensitivity.map(str::to_owned);
    intent.reason = reason;
    scenario
}

#[test]
fn a_conflict_with_the_server_names_the_server() {
    let message =
        "Tool 'github:delete_repo' is marked destructive by server, use call_tool_destructive";
    for variant in [ToolVariant::Read, ToolVariant::Write] {
        assert_eq!(
            Scenario::on(variant).marked_destructive().message(),
            message
        );
    }
    let mut scenario = Scenario::on(ToolVariant::Read);
    scenario.annotations = Some(Annotations::from_value(json!({"readOnlyHint": false})));
    assert_eq!(
        scenario.message(),
        "Tool 'github:delete_repo' is marked as not read-only by server, use call_tool_write"
    );
}

#[test]
fn a_conflict_with_anybody_else_does_not_blame_the_server() {
    let mut scenario = Scenario::on(ToolVariant::Read);
    scenario.override_tier = Some(Tier::Destructive);
    assert_eq!(
        scenario.message(),
        "Tool 'github:delete_repo' is set to destructive by override, use call_tool_destructive"
    );

    let mut scenario = Scenario::on(ToolVariant::Read);
    scenario.audited_tier = Some(Tier::SoftDelete);
    scenario.rules.unannotated = Unannotated::Infer;
    assert_eq!(
        scenario.message(),
        "Tool 'github:delete_repo' is inferred soft_delete by audit, use call_tool_write"
    );

    let mut scenario = Scenario::on(ToolVariant::Write);
    scenario.rules.unannotated = Unannotated::Deny;
    assert_eq!(
        scenario.message(),
        "Tool 'github:delete_repo' is not annotated by server and intent_declaration.unannotated \
         is deny, use call_tool_destructive"
    );
}

#[test]
fn warnings_read_as_sentences() {
    let mut scenario = Scenario::on(ToolVariant::Read).marked_destructive();
    scenario.rules.strict_server_validation = false;
    assert_eq!(
        scenario.decide().warning().unwrap().to_string(),
        "Tool 'github:delete_repo' is marked destructive by server, use call_tool_destructive"
    );

    let mut scenario = Scenario::on(ToolVariant::Write);
    scenario.annotations = Some(Annotations::from_value(json!({"readOnlyHint": true})));
    assert_eq!(
        scenario.decide().warning().unwrap().to_string(),
        "Tool 'github:delete_repo' is marked read-only by server, call_tool_read is enough"
    );
}

#[test]
fn the_details_say_what_to_do_next() {
    let decision = Scenario::on(ToolVariant::Read)
        .marked_destructive()
        .decide();
    let details = &decision.refusal().unwrap().details;
    let expected = json!({
        "tool": "github:delete_repo",
        "tool_variant": "call_tool_read",
        "effective_tier": "destructive",
        "provenance": "declared",
        "call_with": "call_tool_destructive",
    });
    assert_eq!(serde_json::to_value(details).unwrap(), expected);
}

#[test]
fn an_unknown_tier_is_null_in_the_details() {
    let decision = Scenario {
        intent: None,
        ..Scenario::on(ToolVariant::Read)
    }
    .decide();
    let details = &decision.refusal().unwrap().details;
    assert!(details["effective_tier"].is_null());
    assert_eq!(details["provenance"], "unannotated");
}
