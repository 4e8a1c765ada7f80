//! The table for people, and under it whatever did not pass and why.

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
    if let Some(reason) = result.leg.reason(name) {
        return text + &format!("  cannot pass: {reason}\n");
    }
    for complaint in &scenario.complaints {
        text += &format!("  {complaint}\n");
    }
    text
}
