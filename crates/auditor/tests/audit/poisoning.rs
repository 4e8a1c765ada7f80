//! Definitions that talk to the model or hide something: how many are found, and how often an
//! honest one is taken for such.

use std::collections::BTreeMap;

use crate::support::{development_data, fixture, parse_lines};
use auditor::{Finding, FindingCode, Operator, ToolFacts, audit_all};

fn suspicious(tool: ToolFacts<'_>) -> Option<Finding> {
    let report = audit_all(&[tool], Operator::default());
    let mut findings = report.tools.into_iter().flat_map(|tool| tool.findings);
    findings.find(|finding| {
        let code = finding.code;
        code == FindingCode::HiddenCharacters || code == FindingCode::InstructionsInDescription
    })
}

#[test]
fn poisoned_definitions_are_found() {
    let tools = parse_lines(&fixture("poisoned.jsonl"));
    assert!(tools.len() >= 60);
    let mut kinds = BTreeMap::<&str, (usize, usize)>::new();
    for tool in &tools {
        let (found, all) = kinds.entry(&tool.kind).or_default();
        *all += 1;
        match suspicious(tool.facts()) {
            Some(_) => *found += 1,
            None => println!("missed: {} {}", tool.kind, tool.name),
        }
    }
    let found: usize = kinds.values().map(|(found, _)| found).sum();
    println!("recall {found} of {} by kind {kinds:?}", tools.len());
    assert!(found * 10 >= tools.len() * 9, "recall is below 0.9");
}

#[test]
fn honest_definitions_are_left_alone() {
    let files = [
        "annotations/tools.jsonl",
        "retrieval/azure_mcp/corpus.jsonl",
        "retrieval/bfcl_live/corpus.jsonl",
        "retrieval/livemcp_steps/corpus.jsonl",
        "retrieval/mcpproxy_golden/corpus.jsonl",
        "retrieval/toole/corpus.jsonl",
    ];
    let (mut all, mut flagged) = (0, 0);
    for tools in files.into_iter().filter_map(development_data) {
        all += tools.len();
        for tool in &tools {
            if let Some(finding) = suspicious(tool.facts()) {
                flagged += 1;
                println!(
                    "flagged: {}:{}: {}",
                    tool.server, tool.name, finding.message
                );
            }
        }
    }
    println!("false positives {flagged} of {all}");
    assert!(
        flagged * 200 <= all,
        "more than 0.5 % of honest tools are flagged"
    );
}
