//! The whole validation matrix, with the rows decided where the specification is silent, as one
//! table that reads like the documents it comes from.

use policy::{Annotations, DeclaredIntent, IntentMode, Outcome, Tier, ToolVariant, Unannotated};
use serde_json::json;

use crate::Scenario;

/// Lanes and intents are operation types; `-` is none and `{}` an intent without operation type.
/// Hints are `ro` for readOnlyHint and `de` for destructiveHint. `*` in a cell stands for every
/// value; `=` is the intent of the lane. Rules left out are the defaults: two_key, strict, trust.
const MATRIX: &str = "
    lane        | intent      | hints       | override    | audited     | rules           | expected
    # The specification's matrix.
    read        | read        | ro+         | -           | -           |                 | allow
    read        | read        | de+         | -           | -           |                 | SERVER_MISMATCH
    read        | read        | -           | -           | -           |                 | allow
    read        | write       | *           | -           | -           |                 | INTENT_MISMATCH
    write       | write       | ro+         | -           | -           |                 | warn
    write       | write       | de+         | -           | -           |                 | SERVER_MISMATCH
    write       | write       | -           | -           | -           |                 | allow
    write       | destructive | *           | -           | -           |                 | INTENT_MISMATCH
    destructive | destructive | *           | -           | -           |                 | allow
    destructive | read        | *           | -           | -           |                 | INTENT_MISMATCH
    *           | -           | *           | -           | -           |                 | MISSING_INTENT
    # The rows it implies.
    read        | destructive | *           | -           | -           |                 | INTENT_MISMATCH
    write       | read        | *           | -           | -           |                 | INTENT_MISMATCH
    destructive | write       | *           | -           | -           |                 | INTENT_MISMATCH
    *           | {}          | *           | -           | -           |                 | MISSING_OPERATION_TYPE
    *           | delete      | *           | -           | -           |                 | INVALID_OPERATION_TYPE
    # Both hints set: destructive.
    read        | read        | ro+ de+     | -           | -           |                 | SERVER_MISMATCH
    write       | write       | ro+ de+     | -           | -           |                 | SERVER_MISMATCH
    # Not read-only is at least a write.
    read        | read        | ro-         | -           | -           |                 | SERVER_MISMATCH
    read        | read        | de-         | -           | -           |                 | SERVER_MISMATCH
    read        | read        | ro- de-     | -           | -           |                 | SERVER_MISMATCH
    read        | read        | ro+ de-     | -           | -           |                 | allow
    write       | write       | ro-         | -           | -           |                 | allow
    write       | write       | de-         | -           | -           |                 | allow
    write       | write       | ro- de-     | -           | -           |                 | allow
    write       | write       | ro- de+     | -           | -           |                 | SERVER_MISMATCH
    write       | write       | ro+ de-     | -           | -           |                 | warn
    # Inferred mode: the lane says it, and a declared type must still match.
    *           | -           | -           | -           | -           | inferred        | allow
    *           | {}          | -           | -           | -           | inferred        | allow
    read        | read        | -           | -           | -           | inferred        | allow
    read        | write       | *           | -           | -           | inferred        | INTENT_MISMATCH
    destructive | read        | *           | -           | -           | inferred        | INTENT_MISMATCH
    *           | delete      | *           | -           | -           | inferred        | INVALID_OPERATION_TYPE
    read        | -           | de+         | -           | -           | inferred        | SERVER_MISMATCH
    # Not strict: the server's word only warns, the intent must still match.
    read        | read        | de+         | -           | -           | lenient         | warn
    read        | read        | ro-         | -           | -           | lenient         | warn
    write       | write       | de+         | -           | -           | lenient         | warn
    read        | write       | de+         | -           | -           | lenient         | INTENT_MISMATCH
    read        | -           | de+         | -           | -           | lenient         | MISSING_INTENT
    # Unannotated tools.
    *           | =           | -           | -           | destructive | trust           | allow
    read        | read        | -           | -           | read_only   | infer           | allow
    read        | read        | -           | -           | write       | infer           | SERVER_MISMATCH
    write       | write       | -           | -           | soft_delete | infer           | allow
    write       | write       | -           | -           | destructive | infer           | SERVER_MISMATCH
    write       | write       | -           | -           | read_only   | infer           | warn
    destructive | destructive | -           | -           | destructive | infer           | allow
    *           | =           | -           | -           | -           | infer           | allow
    read        | read        | ro+         | -           | destructive | infer           | allow
    read        | read        | -           | -           | write       | infer lenient   | warn
    read        | read        | -           | -           | read_only   | deny            | SERVER_MISMATCH
    write       | write       | -           | -           | -           | deny            | SERVER_MISMATCH
    destructive | destructive | -           | -           | -           | deny            | allow
    read        | read        | ro+         | -           | -           | deny            | allow
    read        | read        | -           | read_only   | -           | deny            | allow
    write       | write       | -           | -           | -           | deny lenient    | SERVER_MISMATCH
    # The operator is above the server, strict or not.
    read        | read        | de+         | read_only   | -           |                 | allow
    read        | read        | ro+         | write       | -           |                 | SERVER_MISMATCH
    read        | read        | ro+         | soft_delete | -           |                 | SERVER_MISMATCH
    write       | write       | ro+         | soft_delete | -           |                 | allow
    write       | write       | ro+         | destructive | -           |                 | SERVER_MISMATCH
    write       | write       | de+         | write       | -           |                 | allow
    write       | write       | -           | read_only   | -           |                 | warn
    destructive | destructive | de+         | read_only   | -           |                 | allow
    read        | read        | ro+         | destructive | -           | lenient         | SERVER_MISMATCH
    read        | read        | -           | write       | read_only   | infer           | SERVER_MISMATCH
";

const EVERY_HINT: [&str; 9] = [
    "-", "ro+", "ro-", "de+", "de-", "ro+ de+", "ro+ de-", "ro- de+", "ro- de-",
];

#[test]
fn every_row_of_the_matrix_holds() {
    let rows = MATRIX
        .lines()
        .map(str::trim)
        .filter(|row| !row.is_empty() && !row.starts_with('#'));
    let mut checked = 0;
    for row in rows.skip(1) {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let [
            lane,
            intent,
            hints,
            override_tier,
            audited_tier,
            rules,
            expected,
        ] = cells[..]
        else {
            panic!("a row has seven cells: {row}");
        };
        for variant in ToolVariant::ALL {
            if lane != "*" && lane != variant.operation_type().as_str() {
                continue;
            }
            let hints = if hints == "*" {
                &EVERY_HINT[..]
            } else {
                &[hints][..]
            };
            for hints in hints {
                let mut scenario = Scenario::on(variant);
                scenario.intent = intent_of(intent, variant);
                scenario.annotations = annotations_of(hints);
                scenario.override_tier = tier_of(override_tier);
                scenario.audited_tier = tier_of(audited_tier);
                apply_rules(&mut scenario, rules);
                let decision = scenario.decide();
                let got = decision
                    .refusal()
                    .map_or(decision.outcome.as_str(), |r| r.code.as_str());
                assert_eq!(got, expected, "{row}\n{decision:#?}");
                checked += 1;
            }
        }
    }
    assert!(checked > 200, "only {checked} combinations were checked");
}

fn intent_of(cell: &str, variant: ToolVariant) -> Option<DeclaredIntent> {
    match cell {
        "-" => None,
        "{}" => Some(DeclaredIntent::default()),
        "=" => Some(DeclaredIntent::for_variant(variant)),
        word => Some(DeclaredIntent {
            operation_type: Some(word.into()),
            ..DeclaredIntent::default()
        }),
    }
}

fn annotations_of(cell: &str) -> Option<Annotations> {
    if cell == "-" {
        return None;
    }
    let mut members = json!({});
    for hint in cell.split(' ') {
        let name = if hint.starts_with("ro") {
            "readOnlyHint"
        } else {
            "destructiveHint"
        };
        members[name] = hint.ends_with('+').into();
    }
    Some(Annotations::from_value(members))
}

fn tier_of(cell: &str) -> Option<Tier> {
    (cell != "-").then(|| cell.parse().unwrap())
}

fn apply_rules(scenario: &mut Scenario, cell: &str) {
    for word in cell.split_whitespace() {
        let rules = &mut scenario.rules;
        match word {
            "inferred" => rules.mode = IntentMode::Inferred,
            "lenient" => rules.strict_server_validation = false,
            "trust" => rules.unannotated = Unannotated::Trust,
            "infer" => rules.unannotated = Unannotated::Infer,
            "deny" => rules.unannotated = Unannotated::Deny,
            _ => unreachable!("no such rule: {word}"),
        }
    }
}

#[test]
fn a_refused_lane_keeps_the_intent_for_the_record() {
    let decision = Scenario::on(ToolVariant::Read)
        .marked_destructive()
        .decide();
    assert!(matches!(
        decision.outcome,
        Outcome::Reject {
            intent: Some(_),
            ..
        }
    ));
    assert_eq!(
        decision.intent().unwrap().operation_type,
        ToolVariant::Read.operation_type()
    );
}
