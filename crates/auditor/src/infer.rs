//! Tier inference: what a tool does, judged by its name, description and parameters.
//!
//! Evidence of harm only ever raises the tier, and doubt is settled by the stricter one: a tool
//! that writes and is called a read runs unasked, the opposite costs a question.

mod clue;
mod description;
mod evidence;
mod judge;
mod name;
mod parameters;

use policy::Tier;

use self::clue::reason;
use self::evidence::Evidence;
use self::judge::Verdict;
use crate::ToolFacts;

/// What the auditor concludes about one tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Audit {
    pub tier: Tier,
    /// From 0 to 1: how well the evidence agrees with itself. Where name and description say the
    /// same it is 0.95; below 0.5 it is a guess.
    pub confidence: f32,
    /// One line that names the words which decided.
    pub reason: String,
}

/// Infers the tier of a tool. Its hints are no evidence: they are what is checked.
pub fn audit_tier(tool: &ToolFacts<'_>) -> Audit {
    let verdict = Verdict::of(&Evidence::gather(tool));
    Audit {
        tier: verdict.tier,
        confidence: verdict.confidence,
        reason: reason(verdict.tier, &verdict.clues),
    }
}
