//! JUnit XML, which every CI system shows: a suite per server, a case per tool.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::escape::visible;
use crate::findings::FailOn;
use crate::report::{Report, ToolReport};

/// Renders a report as JUnit XML. Findings from the threshold on fail a case; milder ones are
/// its output.
pub fn junit(report: &Report, threshold: FailOn) -> String {
    let mut suites = BTreeMap::<&str, Vec<&ToolReport>>::new();
    for tool in &report.tools {
        suites.entry(tool.parts().0).or_default().push(tool);
    }
    let failed = |tools: &[&ToolReport]| tools.iter().filter(|tool| fails(tool, threshold)).count();
    let all: Vec<_> = report.tools.iter().collect();
    let mut text = String::with_capacity(256 + report.tools.len() * 160);
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(
        text,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites name=\"mcpproxy audit\" tests=\"{}\" failures=\"{}\" errors=\"0\">",
        all.len(),
        failed(&all),
    );
    for (server, tools) in suites {
        let _ = writeln!(
            text,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"0\" time=\"0\">",
            escape(server),
            tools.len(),
            failed(&tools),
        );
        for tool in tools {
            case(tool, threshold, &mut text);
        }
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
}

fn case(tool: &ToolReport, threshold: FailOn, text: &mut String) {
    let (server, name) = tool.parts();
    let _ = write!(
        text,
        "    <testcase classname=\"{}\" name=\"{}\" time=\"0\"",
        escape(server),
        escape(name)
    );
    if tool.findings.is_empty() {
        text.push_str("/>\n");
        return;
    }
    text.push_str(">\n");
    let (failures, others): (Vec<_>, Vec<_>) = tool
        .findings
        .iter()
        .partition(|finding| threshold.is_failure(finding.severity));
    let lines = |findings: &[&crate::Finding]| {
        let line = |finding: &&crate::Finding| {
            let message = escape(&finding.message);
            format!("{} {}: {message}", finding.severity, finding.code)
        };
        findings.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    if let Some(first) = failures.first() {
        let _ = writeln!(
            text,
            "      <failure type=\"{}\" message=\"{}\">{}</failure>",
            first.code,
            escape(&first.message),
            lines(&failures),
        );
    }
    if !others.is_empty() {
        let _ = writeln!(text, "      <system-out>{}</system-out>", lines(&others));
    }
    text.push_str("    </testcase>\n");
}

fn fails(tool: &ToolReport, threshold: FailOn) -> bool {
    let mut severities = tool.findings.iter().map(|finding| finding.severity);
    severities.any(|severity| threshold.is_failure(severity))
}

/// Text between tags or in an attribute. What is invisible is written out: most control
/// characters cannot stand in XML 1.0 in any form.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in visible(text).chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_become_markup() {
        assert_eq!(
            escape("</a> & \"b\" 'c'"),
            "&lt;/a&gt; &amp; &quot;b&quot; &apos;c&apos;"
        );
        assert_eq!(escape("\u{0}\u{1b}\u{ffff}"), "\\u{0}\\u{1b}\u{fffd}");
    }
}
