//! Checking what servers announce against a manifest.

use std::collections::BTreeSet;
use std::fmt;

use policy::Tier;
use serde::Serialize;
use utoipa::ToSchema;

use super::Manifest;
use crate::ToolFacts;
use crate::escape::visible;

/// A way in which announced tools and a manifest disagree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Violation {
    pub code: ViolationCode,
    /// The tool, as the server announces it or, when it does not, as the manifest names it.
    pub tool: String,
    /// One line, safe to print.
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ViolationCode {
    /// The tool has no annotations.
    NoAnnotations,
    /// Tier 1 wants `readOnlyHint: true`.
    NotReadOnly,
    /// Tiers 2 and 3 want `destructiveHint: false`.
    NotHarmless,
    /// Tier 4 wants `destructiveHint: true`.
    NotDestructive,
    /// Two entries of the manifest, in different tiers, mean the tool.
    TwoTiers,
    /// The manifest names a tool that no server announces.
    Missing,
    /// A server announces a tool that the manifest does not name.
    New,
}

/// Everything in which the tools disagree with the manifest: those announced first, in their
/// order, then those that are missing.
pub fn verify(manifest: &Manifest, tools: &[ToolFacts<'_>]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut seen = BTreeSet::new();
    for tool in tools {
        let id = tool.id();
        let entries = [id.as_str(), tool.name];
        let found = entries.map(|entry| manifest.tier(entry).map(|tier| (entry, tier)));
        seen.extend(found.iter().flatten().map(|(entry, _)| (*entry).to_owned()));
        let tier = match found {
            [Some((_, tier)), Some((_, other))] if tier != other => {
                let message =
                    format!("stands under {tier} with its server and under {other} without");
                violations.push(Violation::new(ViolationCode::TwoTiers, &id, &message));
                continue;
            }
            [Some((_, tier)), _] | [None, Some((_, tier))] => tier,
            [None, None] => {
                let message = "is announced but not in the manifest";
                violations.push(Violation::new(ViolationCode::New, &id, message));
                continue;
            }
        };
        violations.extend(
            check_hints(tool, tier).map(|(code, message)| Violation::new(code, &id, message)),
        );
    }
    let missing = manifest.tools().filter(|(name, _)| !seen.contains(*name));
    violations.extend(missing.map(|(name, tier)| {
        let message = format!("stands under {tier} in the manifest but is not announced");
        Violation::new(ViolationCode::Missing, name, &message)
    }));
    violations
}

/// What a tool's hints lack for its tier.
fn check_hints(tool: &ToolFacts<'_>, tier: Tier) -> Option<(ViolationCode, &'static str)> {
    let Some(hints) = tool.annotations else {
        return Some((ViolationCode::NoAnnotations, "has no annotations"));
    };
    let (held, code, message) = match tier {
        Tier::ReadOnly => (
            hints.read_only_hint == Some(true),
            ViolationCode::NotReadOnly,
            "is read_only in the manifest but does not have readOnlyHint: true",
        ),
        Tier::Write | Tier::SoftDelete => (
            hints.destructive_hint == Some(false),
            ViolationCode::NotHarmless,
            "is not destructive in the manifest but does not have destructiveHint: false",
        ),
        Tier::Destructive => (
            hints.destructive_hint == Some(true),
            ViolationCode::NotDestructive,
            "is destructive in the manifest but does not have destructiveHint: true",
        ),
    };
    (!held).then_some((code, message))
}

impl Violation {
    fn new(code: ViolationCode, tool: &str, message: &str) -> Self {
        Self {
            code,
            tool: tool.to_owned(),
            message: format!("{} {message}", visible(tool)),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}
