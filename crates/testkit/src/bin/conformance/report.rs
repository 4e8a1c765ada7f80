//! The table for people, and under it whatever did not pass and why.

use crate::comparison::{Comparison, Lost, Row};
use crate::leg::LegResult;
use crate::suite::{Outcome, Revision, Scenario};

pub(crate) fn of(results: &[LegResult]) -> String {
    let mut text =
        String::from("| leg | 2025-11-25 | 2026-07-28 | not scored |\n|---|---|---|---|\n");
    for result in results {
        let cells = [Revision::Legacy, Revision::Modern].map(|revision| cell(result, revision));
        let [legacy, modern] = cells;
        let rest = not_scored(result);
        text += &format!("| {} | {legacy} | {modern} | {rest} |\n", result.leg.title);
    }
    for result in results {
        for (revision, outcome) in &result.outcomes {
            let failed = outcome.scenarios.iter().filter(|scenario| !scenario.passed);
            for scenario in failed {
                text += &complaint(result, *revision, scenario);
            }
        }
    }
    text
}

/// The table of the foreign servers: what came of the bare one and what through mcpproxy.
pub(crate) fn of_comparisons(comparisons: &[Comparison]) -> String {
    let mut text = String::from(
        "| server | transport | 2025-11-25 bare | through | 2026-07-28 bare | through | \
         not scored bare | through |\n|---|---|---|---|---|---|---|---|\n",
    );
    for comparison in comparisons {
        for row in comparison.rows() {
            text += &comparison_row(comparison, row);
        }
    }
    for comparison in comparisons {
        for row in comparison.rows() {
            for lost in comparison.lost(row) {
                text += &loss(comparison, row, &lost);
            }
        }
    }
    text
}

fn comparison_row(comparison: &Comparison, row: &Row) -> String {
    let (title, transport) = (&comparison.title, row.transport.as_str());
    let mut text = format!("| {title} | {transport} |");
    let through = |revision| {
        let mut outcomes = row.outcomes.iter();
        let found = outcomes.find(|(of, _)| *of == revision);
        found.map(|(_, outcome)| outcome)
    };
    let revisions = [Revision::Legacy, Revision::Modern];
    let scored = |outcome: &Outcome| {
        let all = outcome.scored().count();
        format!("{}/{all}", passed(outcome.scored()))
    };
    for revision in revisions {
        let pair = [comparison.bare(revision), through(revision)];
        let [bare, through] = pair.map(|it| it.map_or("–".to_owned(), scored));
        text += &format!(" {bare} | {through} |");
    }
    let rest = |outcome: &Outcome| {
        let all = outcome.not_scored().count();
        format!("{}/{all}", passed(outcome.not_scored()))
    };
    let join = |outcomes: [Option<&Outcome>; 2]| {
        outcomes
            .map(|it| it.map_or("–".to_owned(), rest))
            .join(", ")
    };
    let bare = join(revisions.map(|revision| comparison.bare(revision)));
    let through = join(revisions.map(through));
    text + &format!(" {bare} | {through} |\n")
}

fn loss(comparison: &Comparison, row: &Row, lost: &Lost<'_>) -> String {
    let (title, transport) = (&comparison.title, row.transport.as_str());
    let (revision, name) = (lost.revision.as_str(), &lost.scenario.name);
    let mut text = format!("\n{title} over {transport}, {revision}: {name}\n");
    if let Some(reason) = lost.reason {
        return text + &format!("  cannot pass: {reason}\n");
    }
    for complaint in &lost.scenario.complaints {
        text += &format!("  {complaint}\n");
    }
    text
}

fn cell(result: &LegResult, revision: Revision) -> String {
    let mut outcomes = result.outcomes.iter();
    let Some((_, outcome)) = outcomes.find(|(of, _)| *of == revision) else {
        return String::new();
    };
    format!(
        "{}/{}",
        passed(outcome.scored()),
        result.leg.scored(revision)
    )
}

fn not_scored(result: &LegResult) -> String {
    let count = |outcome: &Outcome| {
        let all = outcome.not_scored().count();
        format!("{}/{all}", passed(outcome.not_scored()))
    };
    let counts: Vec<_> = result.outcomes.iter().map(|(_, it)| count(it)).collect();
    counts.join(", ")
}

fn passed<'a>(scenarios: impl Iterator<Item = &'a Scenario>) -> usize {
    scenarios.filter(|scenario| scenario.passed).count()
}

fn complaint(result: &LegResult, revision: Revision, scenario: &Scenario) -> String {
    let (title, name) = (result.leg.title, &scenario.name);
    let kind = if scenario.scored { "" } else { ", not scored" };
    let mut text = format!("\n{title}, {}: {name}{kind}\n", revision.as_str());
    if let Some(reason) = result.leg.reason(scenario) {
        return text + &format!("  cannot pass: {reason}\n");
    }
    for complaint in &scenario.complaints {
        text += &format!("  {complaint}\n");
    }
    text
}
