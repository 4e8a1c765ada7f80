//! Manifests: the tiers somebody agreed on for the tools of a server, kept in a file and checked
//! against what the server announces.

mod parse;
mod verify;

use std::collections::BTreeMap;

use policy::Tier;
use serde::Serialize;

pub use self::parse::ManifestError;
pub use self::verify::{Violation, ViolationCode, verify};
use crate::report::Report;

/// Every tool with its tier. At least one tool, and none twice.
///
/// A tool is named `server:tool`, or by its own name alone where one server is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    tiers: BTreeMap<String, Tier>,
}

/// The file, as it is written.
#[derive(Serialize)]
struct Written<'a> {
    version: u32,
    tools: WrittenTiers<'a>,
}

#[derive(Serialize)]
struct WrittenTiers<'a> {
    read_only: Vec<&'a str>,
    write: Vec<&'a str>,
    soft_delete: Vec<&'a str>,
    destructive: Vec<&'a str>,
}

impl Manifest {
    pub const VERSION: u32 = 1;

    /// A manifest of what a report found: the effective tier of each tool, or the audited one
    /// where there is none. None when the report has no tool.
    pub fn from_report(report: &Report) -> Option<Self> {
        let tiers: BTreeMap<_, _> = report
            .tools
            .iter()
            .map(|tool| {
                (
                    tool.name.clone(),
                    tool.effective_tier.unwrap_or(tool.audited_tier),
                )
            })
            .collect();
        (!tiers.is_empty()).then_some(Self { tiers })
    }

    /// All tools in the order of their names.
    pub fn tools(&self) -> impl Iterator<Item = (&str, Tier)> {
        self.tiers.iter().map(|(name, tier)| (name.as_str(), *tier))
    }

    pub fn tier(&self, name: &str) -> Option<Tier> {
        self.tiers.get(name).copied()
    }

    /// The file's text: one tool a line, so that a change of tier is a readable diff.
    pub fn to_json(&self) -> String {
        let of = |tier| {
            let tools = self.tools().filter(move |(_, other)| *other == tier);
            tools.map(|(name, _)| name).collect()
        };
        let written = Written {
            version: Self::VERSION,
            tools: WrittenTiers {
                read_only: of(Tier::ReadOnly),
                write: of(Tier::Write),
                soft_delete: of(Tier::SoftDelete),
                destructive: of(Tier::Destructive),
            },
        };
        // Strings and numbers always serialize.
        let mut text = serde_json::to_string_pretty(&written).unwrap_or_default();
        text.push('\n');
        text
    }
}
