//! What a decision costs. An allowed call has to stay under a microsecond.

#![expect(
    clippy::unwrap_used,
    reason = "a bench that cannot be set up should stop"
)]

use divan::{Bencher, black_box};
use policy::{
    Annotations, Call, DeclaredIntent, Overrides, Rules, Tier, ToolId, ToolVariant, decide,
};
use serde_json::json;
use serde_json::value::to_raw_value;

fn main() {
    divan::main();
}

/// Lane and annotations that lead to each outcome.
const OUTCOMES: [(&str, ToolVariant, &str); 3] = [
    ("allow", ToolVariant::Read, "readOnlyHint"),
    ("warn", ToolVariant::Write, "readOnlyHint"),
    ("reject", ToolVariant::Write, "destructiveHint"),
];

#[divan::bench(args = ["allow", "warn", "reject"])]
fn outcome(bencher: Bencher, outcome: &str) {
    let (_, variant, hint) = OUTCOMES
        .into_iter()
        .find(|(name, ..)| *name == outcome)
        .unwrap();
    let tool: ToolId = "github:create_issue".parse().unwrap();
    let annotations = Annotations::from_value(json!({ hint: true }));
    let intent = DeclaredIntent {
        data_sensitivity: Some("private".into()),
        reason: Some("the user asked for the open issues of the project".into()),
        ..DeclaredIntent::for_variant(variant)
    };
    let call = Call {
        variant,
        tool: &tool,
        intent: Some(&intent),
        annotations: Some(&annotations),
        override_tier: None,
        audited_tier: None,
        distrusted: false,
        pinned: None,
        hold: None,
    };
    let rules = Rules::default();
    assert_eq!(decide(&call, &rules).outcome.as_str(), outcome);
    bencher.bench(|| decide(black_box(&call), black_box(&rules)));
}

#[divan::bench]
fn parse_nested_intent(bencher: Bencher) {
    let intent = json!({"operation_type": "read", "reason": "the user asked for the open issues"});
    let intent = to_raw_value(&intent).unwrap();
    bencher.bench(|| DeclaredIntent::from_parts(Some(black_box(&intent)), None, None, None));
}

#[divan::bench(args = [1, 20])]
fn override_lookup(bencher: Bencher, globs: usize) {
    let patterns = (0..globs).map(|index| (format!("*:purge_{index}_*"), Tier::Destructive));
    let overrides = Overrides::compile(patterns).unwrap();
    let tool: ToolId = "github:create_issue".parse().unwrap();
    bencher.bench(|| overrides.tier_for(black_box(&tool)));
}
