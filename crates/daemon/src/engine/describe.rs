//! `describe_tool`: everything known of a few tools by name.

use catalog::Entry;
use mcp::RawValue;
use policy::{Hold, Provenance, Tier, ToolId, ToolVariant};
use serde::Serialize;

use super::Engine;

#[derive(Debug, Serialize)]
pub struct DescribeResult {
    pub tools: Vec<Description>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_found: Vec<NotFound>,
}

#[derive(Debug, Serialize)]
pub struct Description {
    pub name: ToolId,
    /// The definition as the upstream announced it. None while the tool is held: its words are
    /// what the operator has to judge, and not for an agent to read before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition: Option<Box<RawValue>>,
    pub audited_tier: Tier,
    pub effective_tier: Option<Tier>,
    pub provenance: Provenance,
    pub reason: String,
    pub call_with: ToolVariant,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stale: bool,
}

#[derive(Debug, Serialize)]
pub struct NotFound {
    pub name: String,
    pub did_you_mean: Vec<ToolId>,
}

impl Engine {
    pub fn describe(&self, names: &[String]) -> DescribeResult {
        let catalog = self.catalog();
        let mut result = DescribeResult {
            tools: Vec::new(),
            not_found: Vec::new(),
        };
        for name in names {
            let entry = name.parse::<ToolId>().ok().and_then(|id| catalog.get(&id));
            match entry {
                Some(entry) => result.tools.push(self.describe_entry(&entry)),
                None => result.not_found.push(NotFound {
                    name: name.clone(),
                    did_you_mean: catalog.suggest_tools(name),
                }),
            }
        }
        result
    }

    fn describe_entry(&self, entry: &Entry<'_>) -> Description {
        let standing = self.standing(entry.tool);
        Description {
            name: entry.tool.id.clone(),
            definition: standing.hold.is_none().then(|| entry.tool.raw.clone()),
            audited_tier: standing.audited_tier(),
            effective_tier: standing.effective.tier(),
            provenance: standing.effective.provenance(),
            reason: standing.reason(),
            call_with: standing.call_with,
            hold: standing.hold,
            stale: entry.stale,
        }
    }
}
