//! SARIF 2.1.0, which code hosts and editors show as annotations.

use serde_json::{Value, json};

use crate::escape::visible;
use crate::findings::{Finding, FindingCode};
use crate::report::{Report, ToolReport};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// Renders a report as one SARIF run. Every kind of finding is a rule, whether it occurs or not;
/// tools are logical locations, because they are in no file.
pub fn sarif(report: &Report) -> Value {
    let results = report.tools.iter().flat_map(|tool| {
        let findings = tool.findings.iter();
        findings.map(move |finding| result(tool, finding))
    });
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {
                "driver": {
                    "name": "mcpproxy audit",
                    "semanticVersion": env!("CARGO_PKG_VERSION"),
                    "rules": FindingCode::ALL.map(rule),
                },
            },
            "columnKind": "unicodeCodePoints",
            "results": results.collect::<Vec<_>>(),
        }],
    })
}

fn rule(code: FindingCode) -> Value {
    json!({
        "id": code.as_str(),
        "name": pascal_case(code.as_str()),
        "shortDescription": {"text": code.summary()},
        "fullDescription": {"text": code.summary()},
        "help": {
            "text": code.help(),
            "markdown": format!("**{}** {}", code.summary(), code.help()),
        },
        "defaultConfiguration": {"level": code.severity().as_str()},
    })
}

fn result(tool: &ToolReport, finding: &Finding) -> Value {
    let name = visible(&tool.name);
    let (_, short_name) = tool.parts();
    let rule_index = FindingCode::ALL
        .iter()
        .position(|code| *code == finding.code);
    json!({
        "ruleId": finding.code.as_str(),
        "ruleIndex": rule_index,
        "level": finding.severity.as_str(),
        "message": {"text": format!("{name}: {}", finding.message)},
        "locations": [{
            "logicalLocations": [{
                "name": visible(short_name),
                "fullyQualifiedName": name,
                "kind": "function",
            }],
        }],
        // The same finding on the same tool is the same in every run, whatever its words.
        "partialFingerprints": {"toolAndCode/v1": format!("{name}/{}", finding.code)},
        "properties": {
            "declaredTier": tool.declared_tier,
            "auditedTier": tool.audited_tier,
            "effectiveTier": tool.effective_tier,
        },
    })
}

/// `MissingHints` for `MISSING_HINTS`, as SARIF wants the names of rules.
fn pascal_case(code: &str) -> String {
    let words = code.split('_').map(|word| {
        let (first, rest) = word.split_at(1.min(word.len()));
        format!("{first}{}", rest.to_ascii_lowercase())
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_rules_are_in_pascal_case() {
        assert_eq!(pascal_case("READ_ONLY_HINT"), "ReadOnlyHint");
    }
}
