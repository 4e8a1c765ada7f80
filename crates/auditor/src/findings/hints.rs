//! Hints that are missing, wrong, or at odds with everything else about a tool.

use policy::{Annotations, Tier};

use super::{Finding, FindingCode, Severity};
use crate::Audit;

/// Below this confidence the auditor knows too little to call anybody a liar.
const SURE: f32 = 0.75;
const GUESS: f32 = 0.45;

/// Compares what a server declares with what the auditor concludes. `any_lane` says whether a tool
/// without hints may be called on any lane.
pub(crate) fn check_hints(
    annotations: Option<&Annotations>,
    audit: &Audit,
    any_lane: bool,
    findings: &mut Vec<Finding>,
) {
    let Some(hints) = annotations else {
        let message = format!("the tool has no annotations; it looks {}", audit.tier);
        findings.push(missing_hints(audit, any_lane, message));
        return;
    };
    if !hints.malformed.is_empty() {
        let members = hints.malformed.join(", ");
        let counts_as = if hints.malformed.contains(&"destructiveHint") {
            "makes the tool destructive"
        } else {
            "counts as absent"
        };
        let message = format!("{members} has a value of the wrong type and {counts_as}");
        findings.push(FindingCode::MalformedHints.finding(message));
    }
    let Some(declared) = hints.declared_tier() else {
        let message = format!(
            "the annotations say neither readOnlyHint nor destructiveHint; the tool looks {}",
            audit.tier
        );
        findings.push(missing_hints(audit, any_lane, message));
        return;
    };
    let read_only = hints.read_only_hint == Some(true);
    if read_only && hints.destructive_hint == Some(true) {
        findings.push(FindingCode::ContradictoryHints.finding(
            "readOnlyHint and destructiveHint are both true; the tool counts as destructive",
        ));
        return;
    }
    if read_only && audit.tier > Tier::ReadOnly {
        let message = format!("readOnlyHint is true, but {}", audit.reason);
        findings.push(doubted(
            FindingCode::ReadOnlyHintOnMutatingTool,
            audit,
            message,
        ));
    }
    if audit.tier == Tier::Destructive && declared < Tier::Destructive {
        findings.push(undeclared_destruction(hints, audit));
    }
}

/// An error if the tool looks destructive and an agent may call it on the lane for reading all the same.
fn missing_hints(audit: &Audit, any_lane: bool, message: String) -> Finding {
    let code = FindingCode::MissingHints;
    if !any_lane || audit.tier < Tier::Destructive || audit.confidence < SURE {
        return code.finding(message);
    }
    let message = format!("{message} ({}), and any lane may call it", audit.reason);
    code.with_severity(Severity::Error, message)
}

fn undeclared_destruction(hints: &Annotations, audit: &Audit) -> Finding {
    let claim = if hints.destructive_hint == Some(false) {
        "destructiveHint is false"
    } else if hints.read_only_hint == Some(true) {
        "readOnlyHint is true"
    } else {
        let message = format!("destructiveHint is absent, but {}", audit.reason);
        return doubted(FindingCode::DestructiveHintMissing, audit, message);
    };
    let message = format!("{claim}, but {}", audit.reason);
    doubted(FindingCode::DestructiveDeclaredHarmless, audit, message)
}

/// A finding as severe as the auditor is sure.
fn doubted(code: FindingCode, audit: &Audit, message: String) -> Finding {
    let severity = if audit.confidence >= SURE {
        code.severity()
    } else if audit.confidence >= GUESS {
        code.severity().min(Severity::Warning)
    } else {
        Severity::Note
    };
    code.with_severity(severity, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use FindingCode as Code;

    fn check(hints: Option<serde_json::Value>, tier: Tier, confidence: f32) -> Vec<Finding> {
        check_on(hints, tier, confidence, true)
    }

    fn check_on(
        hints: Option<serde_json::Value>,
        tier: Tier,
        confidence: f32,
        any_lane: bool,
    ) -> Vec<Finding> {
        let hints = hints.map(Annotations::from_value);
        let audit = Audit {
            tier,
            confidence,
            reason: "because".into(),
        };
        let mut findings = Vec::new();
        check_hints(hints.as_ref(), &audit, any_lane, &mut findings);
        findings
    }

    fn codes(hints: serde_json::Value, tier: Tier) -> Vec<Code> {
        let found = check(Some(hints), tier, 0.9);
        found.iter().map(|finding| finding.code).collect()
    }

    #[test]
    fn a_tool_that_says_nothing_is_found() {
        assert_eq!(check(None, Tier::Write, 0.9)[0].code, Code::MissingHints);
        let idle = serde_json::json!({"title": "T", "openWorldHint": true});
        assert_eq!(codes(idle, Tier::Write), [Code::MissingHints]);
    }

    #[test]
    fn a_tool_that_says_nothing_and_looks_destructive_is_an_error_where_any_lane_may_call_it() {
        let idle = Some(serde_json::json!({"title": "T"}));
        let severity = |hints: &Option<serde_json::Value>, tier, confidence, any_lane| {
            check_on(hints.clone(), tier, confidence, any_lane)[0].severity
        };
        for hints in [None, idle] {
            let destructive = Tier::Destructive;
            assert_eq!(severity(&hints, destructive, 0.9, true), Severity::Error);
            assert_eq!(severity(&hints, destructive, 0.5, true), Severity::Warning);
            assert_eq!(severity(&hints, destructive, 0.9, false), Severity::Warning);
            assert_eq!(severity(&hints, Tier::Write, 0.9, true), Severity::Warning);
        }
    }

    #[test]
    fn a_read_only_hint_on_a_tool_that_changes_something_is_found() {
        let hints = serde_json::json!({"readOnlyHint": true});
        assert_eq!(
            codes(hints.clone(), Tier::Write),
            [Code::ReadOnlyHintOnMutatingTool]
        );
        let both = [
            Code::ReadOnlyHintOnMutatingTool,
            Code::DestructiveDeclaredHarmless,
        ];
        assert_eq!(codes(hints.clone(), Tier::Destructive), both);
        assert_eq!(codes(hints, Tier::ReadOnly), []);
    }

    #[test]
    fn destruction_that_is_denied_or_kept_quiet_is_found() {
        let denied = serde_json::json!({"destructiveHint": false});
        assert_eq!(
            codes(denied, Tier::Destructive),
            [Code::DestructiveDeclaredHarmless]
        );
        let quiet = serde_json::json!({"readOnlyHint": false});
        assert_eq!(
            codes(quiet, Tier::Destructive),
            [Code::DestructiveHintMissing]
        );
        let honest = serde_json::json!({"destructiveHint": true});
        assert_eq!(codes(honest, Tier::Destructive), []);
    }

    #[test]
    fn a_declared_tier_that_is_stricter_than_the_audited_is_the_servers_business() {
        assert_eq!(
            codes(serde_json::json!({"destructiveHint": true}), Tier::ReadOnly),
            []
        );
    }

    #[test]
    fn hints_against_each_other_and_hints_of_the_wrong_type_are_found() {
        let both = serde_json::json!({"readOnlyHint": true, "destructiveHint": true});
        assert_eq!(codes(both, Tier::Write), [Code::ContradictoryHints]);
        let text = serde_json::json!({"readOnlyHint": "yes"});
        assert_eq!(
            codes(text, Tier::Write),
            [Code::MalformedHints, Code::MissingHints]
        );
    }

    #[test]
    fn the_less_the_auditor_knows_the_milder_it_says_so() {
        let hints = || Some(serde_json::json!({"readOnlyHint": true}));
        let severity = |confidence| check(hints(), Tier::Write, confidence)[0].severity;
        assert_eq!(severity(0.9), Severity::Error);
        assert_eq!(severity(0.6), Severity::Warning);
        assert_eq!(severity(0.3), Severity::Note);
    }
}
