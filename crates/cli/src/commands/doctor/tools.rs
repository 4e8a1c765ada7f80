//! The tools of all servers, as the auditor judges them: lanes that may be dishonest and texts that
//! may not be meant for people.

use std::time::Duration;

use serde_json::Value;

use super::check::{Area, Report, count, listed, shell_word};
use super::code::Code;
use crate::api::Api;
use crate::commands::parse;
use crate::commands::status::undecided_tools;

/// Time for auditing every tool.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Findings about what a tool says to the model.
const TEXT: [&str; 3] = [
    "INSTRUCTIONS_IN_DESCRIPTION",
    "HIDDEN_CHARACTERS",
    "CONFUSABLE_NAME",
];

pub(super) async fn check(api: &Api, report: &mut Report) {
    check_undecided(api, report).await;
    let answer = async { parse(&api.get("/audit").await?) };
    let Ok(Ok(audit)) = tokio::time::timeout(TIMEOUT, answer).await else {
        report.skipped(Area::Tools, "the audit did not answer");
        return;
    };
    let tools: Vec<&Value> = audit["tools"].as_array().into_iter().flatten().collect();
    let on_read_lane = names(&tools, is_declared_read);
    let doubtful_text = names(&tools, has_doubtful_text);
    if on_read_lane.is_empty() && doubtful_text.is_empty() {
        report.fine(Area::Tools, None, count(tools.len(), "tool"));
    }
    if !on_read_lane.is_empty() {
        let cause = format!(
            "{} on the lane for reading: {}",
            match on_read_lane.len() {
                1 => "1 tool seems to change or destroy something and may run".to_owned(),
                several => format!("{several} tools seem to change or destroy and may run"),
            },
            listed(&on_read_lane),
        );
        let overrides = tools.iter().filter(|tool| is_declared_read(tool));
        let overrides = overrides.filter_map(|tool| {
            let (name, tier) = (tool["name"].as_str()?, tool["audited_tier"].as_str()?);
            Some(report.command(&format!("tools override set {} {tier}", shell_word(name))))
        });
        let fix = overrides.collect::<Vec<_>>().join(" && ");
        report.warning(Area::Tools, Code::ToolLaneDoubtful, None, cause, fix);
    }
    if let Some(first) = doubtful_text.first() {
        let cause = format!(
            "the text of {} may be meant to mislead the model: {}",
            count(doubtful_text.len(), "tool"),
            listed(&doubtful_text),
        );
        let fix = report.command(&format!("tools show {}", shell_word(first)));
        report.warning(Area::Tools, Code::ToolTextDoubtful, None, cause, fix);
    }
}

async fn check_undecided(api: &Api, report: &mut Report) {
    let Ok(status) = async { parse(&api.get("/status").await?) }.await else {
        return;
    };
    if let Some(cause) = undecided_tools(&status["undecided_tools"]) {
        let fix = report.command("config set intent_declaration.unannotated infer");
        report.warning(Area::Tools, Code::UnannotatedUndecided, None, cause, fix);
    }
}

/// Whether the server declares the tool read-only although the auditor takes it for one that changes something.
fn is_declared_read(tool: &Value) -> bool {
    tool["effective_tier"] == "read_only"
        && tool["override_tier"].is_null()
        && has_finding(tool, &["READ_ONLY_HINT_ON_MUTATING_TOOL"], "error")
}

fn has_doubtful_text(tool: &Value) -> bool {
    has_finding(tool, &TEXT, "error")
}

fn has_finding(tool: &Value, codes: &[&str], severity: &str) -> bool {
    let findings = tool["findings"].as_array().into_iter().flatten();
    findings.into_iter().any(|finding| {
        let code = finding["code"].as_str().unwrap_or_default();
        finding["severity"] == severity && codes.contains(&code)
    })
}

fn names<'a>(tools: &[&'a Value], wanted: impl Fn(&Value) -> bool) -> Vec<&'a str> {
    let wanted = tools.iter().filter(|tool| wanted(tool));
    wanted.filter_map(|tool| tool["name"].as_str()).collect()
}
