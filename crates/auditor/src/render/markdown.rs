//! A table with a reason per tool, as reviews of stores and registries ask for.

use std::fmt::Write as _;

use policy::Tier;

use crate::escape::visible;
use crate::findings::Finding;
use crate::report::{Report, ToolReport};

/// Renders a report as Markdown: a summary, a table of all tools, and the findings.
pub fn markdown(report: &Report) -> String {
    let summary = &report.summary;
    let findings = summary.findings;
    let mut text = String::with_capacity(256 + report.tools.len() * 200);
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(
        text,
        "# Tool audit\n\n{} tools of {} servers: {} errors, {} warnings, {} notes.\n\n\
         | Tool | Declared | Audited | Override | Effective | Confidence | Reason |\n\
         | --- | --- | --- | --- | --- | --- | --- |",
        summary.tools, summary.servers, findings.error, findings.warning, findings.note,
    );
    for tool in &report.tools {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} ({}) | {:.2} | {} |",
            cell(&tool.name),
            tier(tool.declared_tier),
            tool.audited_tier,
            tier(tool.override_tier),
            tier(tool.effective_tier),
            tool.provenance,
            tool.confidence,
            cell(&tool.reason),
        );
    }
    let found: Vec<_> = report.tools.iter().flat_map(with_findings).collect();
    if !found.is_empty() {
        text.push_str(
            "\n## Findings\n\n| Tool | Severity | Code | Message |\n| --- | --- | --- | --- |\n",
        );
    }
    for (tool, finding) in found {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            cell(&tool.name),
            finding.severity,
            finding.code,
            cell(&finding.message),
        );
    }
    text
}

fn with_findings(tool: &ToolReport) -> impl Iterator<Item = (&ToolReport, &Finding)> {
    tool.findings.iter().map(move |finding| (tool, finding))
}

fn tier(tier: Option<Tier>) -> &'static str {
    tier.map_or("–", Tier::as_str)
}

/// Text in a cell: on one line, and with nothing that Markdown or HTML would act on. Underscores
/// inside words are left alone by renderers and stay readable.
fn cell(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in visible(text).chars() {
        match character {
            '|' | '\\' | '`' | '*' | '[' | ']' | '~' | '#' | '!' => {
                escaped.push('\\');
                escaped.push(character);
            }
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_cannot_leave_its_place() {
        assert_eq!(cell("a|b"), "a\\|b");
        assert_eq!(cell("a\nb"), "a\\\\u{a}b");
        assert_eq!(cell("<img src=x> [x](y)"), "&lt;img src=x&gt; \\[x\\](y)");
        assert_eq!(cell("notes:get_note"), "notes:get_note");
    }
}
