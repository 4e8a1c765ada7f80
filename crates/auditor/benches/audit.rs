//! What an audit costs: one tool, and a list of a thousand.

use auditor::{Operator, ToolFacts, audit_all, audit_tier, render};
use divan::Bencher;
use serde_json::value::RawValue;

const DESCRIPTION: &str = "Updates an issue in a repository. Fields that are not given stay as they \
     are; labels and assignees replace the current ones. Use get_issue first to see the current \
     state. Returns the updated issue with its number, state and timestamps.";

fn schema() -> Box<RawValue> {
    let parameter = |text: &str| serde_json::json!({"type": "string", "description": text});
    let schema = serde_json::json!({
        "type": "object",
        "properties": {
            "owner": parameter("The account that owns the repository, a user or an organization."),
            "repo": parameter("The name of the repository without its owner."),
            "issue_number": {"type": "integer", "minimum": 1, "description": "The number of the issue."},
            "title": parameter("The new title, when it is to change."),
            "body": parameter("The new text of the issue, in Markdown."),
            "state": {"type": "string", "enum": ["open", "closed"], "description": "The new state."},
            "labels": {"type": "array", "items": {"type": "string"}, "description": "The new labels."},
        },
        "required": ["owner", "repo", "issue_number"],
    });
    serde_json::value::to_raw_value(&schema).unwrap_or_default()
}

fn names() -> Vec<String> {
    let verbs = ["get", "list", "create", "update", "delete"];
    let name = |index: usize| format!("{}_thing_{index}", verbs[index % verbs.len()]);
    (0..1_000).map(name).collect()
}

fn facts<'a>(name: &'a str, schema: &'a RawValue) -> ToolFacts<'a> {
    ToolFacts {
        server: "tracker",
        name,
        description: DESCRIPTION,
        input_schema: Some(schema),
        ..ToolFacts::default()
    }
}

fn main() {
    divan::main();
}

#[divan::bench]
fn one_tier(bencher: Bencher<'_, '_>) {
    let schema = schema();
    let tool = facts("update_issue", &schema);
    bencher.bench(|| audit_tier(divan::black_box(&tool)));
}

#[divan::bench]
fn a_thousand_tools(bencher: Bencher<'_, '_>) {
    let (schema, names) = (schema(), names());
    let tools: Vec<_> = names.iter().map(|name| facts(name, &schema)).collect();
    bencher.bench(|| audit_all(divan::black_box(&tools), Operator::default()));
}

#[divan::bench]
fn a_thousand_tools_as_sarif(bencher: Bencher<'_, '_>) {
    let (schema, names) = (schema(), names());
    let tools: Vec<_> = names.iter().map(|name| facts(name, &schema)).collect();
    let report = audit_all(&tools, Operator::default());
    bencher.bench(|| render::sarif(divan::black_box(&report)));
}
