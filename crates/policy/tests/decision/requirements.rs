//! The functional requirements that a decision answers for, one test each.

use policy::{
    Annotations, Code, DataSensitivity, DeclaredIntent, OperationType, Outcome, Provenance, Rules,
    ToolVariant,
};
use serde_json::json;
use serde_json::value::to_raw_value;

use crate::Scenario;

fn destructive_on(variant: ToolVariant) -> Option<Code> {
    Scenario::on(variant).marked_destructive().code()
}

#[test]
fn fr_005_every_variant_accepts_an_intent() {
    for variant in ToolVariant::ALL {
        let intent = json!({"operation_type": variant.operation_type(), "reason": "asked to"});
        let intent = to_raw_value(&intent).unwrap();
        let declared = DeclaredIntent::from_parts(Some(&intent), None, None, None).unwrap();
        let scenario = Scenario {
            intent: declared,
            ..Scenario::on(variant)
        };
        assert_eq!(scenario.code(), None, "{variant}");
    }
}

#[test]
fn fr_006_the_intent_is_required_on_every_variant() {
    for variant in ToolVariant::ALL {
        let scenario = Scenario {
            intent: None,
            ..Scenario::on(variant)
        };
        assert_eq!(scenario.code(), Some(Code::MissingIntent), "{variant}");
    }
}

#[test]
fn fr_007_the_operation_type_is_one_of_three_words() {
    for (variant, word) in ToolVariant::ALL
        .into_iter()
        .zip(["read", "write", "destructive"])
    {
        assert_eq!(Scenario::on(variant).declaring(word).code(), None);
    }
    for word in ["READ", "readonly", "delete", " read"] {
        let scenario = Scenario::on(ToolVariant::Read).declaring(word);
        assert_eq!(
            scenario.code(),
            Some(Code::InvalidOperationType),
            "{word:?}"
        );
    }
}

#[test]
fn fr_008_the_operation_type_matches_the_variant() {
    for variant in ToolVariant::ALL {
        for declared in OperationType::ALL {
            let matches = declared == variant.operation_type();
            let code = Scenario::on(variant).declaring(declared.as_str()).code();
            assert_eq!(
                code,
                (!matches).then_some(Code::IntentMismatch),
                "{variant} {declared}"
            );
        }
    }
}

#[test]
fn fr_009_the_data_sensitivity_is_optional_and_one_of_four_words() {
    let with = |data_sensitivity: Option<&str>| {
        let mut scenario = Scenario::on(ToolVariant::Read);
        let intent = scenario.intent.get_or_insert_default();
        intent.data_sensitivity = data_sensitivity.map(str::to_owned);
        scenario
    };
    assert_eq!(with(None).decide().intent().unwrap().data_sensitivity, None);
    for known in DataSensitivity::ALL {
        let decision = with(Some(known.as_str())).decide();
        assert_eq!(decision.intent().unwrap().data_sensitivity, Some(known));
    }
    assert_eq!(with(Some("secret")).code(), Some(Code::InvalidSensitivity));
}

#[test]
fn fr_010_the_reason_is_optional_and_at_most_a_thousand_characters() {
    let with = |length| {
        let mut scenario = Scenario::on(ToolVariant::Read);
        scenario.intent.get_or_insert_default().reason = Some("ß".repeat(length));
        scenario.code()
    };
    assert_eq!(Scenario::on(ToolVariant::Read).code(), None);
    assert_eq!(with(1000), None);
    assert_eq!(with(1001), Some(Code::ReasonTooLong));
}

#[test]
fn fr_011_a_mismatch_is_rejected_whatever_the_tool() {
    let scenario = Scenario::on(ToolVariant::Destructive)
        .marked_destructive()
        .declaring("write");
    assert_eq!(scenario.code(), Some(Code::IntentMismatch));
}

#[test]
fn fr_012_a_call_without_intent_is_rejected() {
    let scenario = Scenario {
        intent: None,
        ..Scenario::on(ToolVariant::Write)
    };
    assert_eq!(scenario.code(), Some(Code::MissingIntent));
}

#[test]
fn fr_013_an_intent_without_operation_type_is_rejected() {
    let mut scenario = Scenario::on(ToolVariant::Write);
    scenario.intent.get_or_insert_default().operation_type = None;
    assert_eq!(scenario.code(), Some(Code::MissingOperationType));
}

#[test]
fn fr_014_the_message_names_both_sides_of_a_mismatch() {
    for variant in ToolVariant::ALL {
        for declared in OperationType::ALL
            .into_iter()
            .filter(|it| *it != variant.operation_type())
        {
            let message = Scenario::on(variant).declaring(declared.as_str()).message();
            let expected =
                format!("Intent mismatch: tool is {variant} but intent declares {declared}");
            assert_eq!(message, expected);
        }
    }
}

#[test]
fn fr_015_the_destructive_hint_is_looked_at_before_a_read() {
    let mut scenario = Scenario::on(ToolVariant::Read);
    assert_eq!(scenario.code(), None);
    scenario.annotations = Some(Annotations::from_value(json!({"destructiveHint": true})));
    assert_eq!(
        scenario.decide().effective.provenance(),
        Provenance::Declared
    );
    assert_eq!(scenario.code(), Some(Code::ServerMismatch));
}

#[test]
fn fr_016_the_destructive_hint_is_looked_at_before_a_write() {
    let mut scenario = Scenario::on(ToolVariant::Write);
    scenario.annotations = Some(Annotations::from_value(json!({"destructiveHint": false})));
    assert_eq!(scenario.code(), None);
    assert_eq!(
        scenario.marked_destructive().code(),
        Some(Code::ServerMismatch)
    );
}

#[test]
fn fr_017_a_read_of_a_destructive_tool_is_rejected() {
    assert_eq!(
        destructive_on(ToolVariant::Read),
        Some(Code::ServerMismatch)
    );
}

#[test]
fn fr_018_a_write_on_a_destructive_tool_is_rejected() {
    assert_eq!(
        destructive_on(ToolVariant::Write),
        Some(Code::ServerMismatch)
    );
}

#[test]
fn fr_019_the_destructive_variant_is_allowed_whatever_the_annotations() {
    for hints in [
        json!(null),
        json!({"readOnlyHint": true}),
        json!({"readOnlyHint": false}),
        json!({"destructiveHint": true}),
        json!({"destructiveHint": false}),
        json!({"readOnlyHint": true, "destructiveHint": true}),
    ] {
        let mut scenario = Scenario::on(ToolVariant::Destructive);
        scenario.annotations = Some(Annotations::from_value(hints.clone()));
        assert!(
            matches!(scenario.decide().outcome, Outcome::Allow { .. }),
            "{hints}"
        );
    }
}

#[test]
fn fr_020_a_tool_without_annotations_is_allowed_and_said_to_be_unannotated() {
    for variant in ToolVariant::ALL {
        let decision = Scenario::on(variant).decide();
        assert!(
            matches!(decision.outcome, Outcome::Allow { .. }),
            "{variant}"
        );
        assert_eq!(decision.effective.provenance(), Provenance::Unannotated);
        assert_eq!(decision.effective.tier(), None);
    }
}

#[test]
fn fr_040_a_refusal_has_a_code_a_message_and_a_way_out() {
    let decision = Scenario::on(ToolVariant::Read)
        .marked_destructive()
        .decide();
    let refusal = serde_json::to_value(decision.refusal().unwrap()).unwrap();
    assert_eq!(refusal["code"], "SERVER_MISMATCH");
    assert!(
        refusal["message"]
            .as_str()
            .unwrap()
            .ends_with("use call_tool_destructive")
    );
    assert_eq!(refusal["details"]["call_with"], "call_tool_destructive");
}

#[test]
fn fr_041_validation_is_strict_by_default() {
    assert!(Rules::default().strict_server_validation);
    assert_eq!(
        destructive_on(ToolVariant::Read),
        Some(Code::ServerMismatch)
    );
}

#[test]
fn fr_042_not_strict_turns_a_conflict_with_the_server_into_a_warning() {
    let mut scenario = Scenario::on(ToolVariant::Read).marked_destructive();
    scenario.rules.strict_server_validation = false;
    let decision = scenario.decide();
    assert!(matches!(decision.outcome, Outcome::Warn { .. }));
    assert!(
        decision
            .warning()
            .unwrap()
            .to_string()
            .contains("marked destructive by server")
    );
}
