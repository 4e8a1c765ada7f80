//! `describe_tool`: everything known of a few tools by name, within a number of characters.

use std::collections::HashSet;

use mcp::RawValue;
use policy::{Hold, Provenance, Tier, ToolId, ToolVariant};
use serde::Serialize;

use super::in_force::InForce;
use super::tools::ToolState;

/// Characters of a name that is not found which are repeated in the answer. No tool has more.
const LONGEST_NAME: usize = 200;

#[derive(Debug, Serialize)]
pub(crate) struct DescribeResult {
    pub tools: Vec<Described>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_found: Vec<NotFound>,
}

/// A tool in the answer.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Described {
    Whole(Box<Description>),
    /// There is no room for it in this answer.
    Omitted {
        name: ToolId,
        omitted: String,
    },
}

#[derive(Debug, Serialize)]
pub(crate) struct Description {
    pub name: ToolId,
    /// The definition as the upstream announced it. None while the tool is held: its words are
    /// what the operator has to judge, and not for an agent to read before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition: Option<Box<RawValue>>,
    /// The parameters on one line, where the definition is too long for any answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Why there is a signature and no definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
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
pub(crate) struct NotFound {
    pub name: String,
    pub did_you_mean: Vec<ToolId>,
}

impl InForce {
    /// Describes each tool once, in about `limit` characters for all of them; 0 is no limit.
    pub(crate) fn describe(&self, names: &[String], limit: usize) -> DescribeResult {
        let limit = if limit == 0 { usize::MAX } else { limit };
        let mut result = DescribeResult {
            tools: Vec::new(),
            not_found: Vec::new(),
        };
        let mut seen = HashSet::new();
        let mut left = limit;
        for name in names.iter().filter(|name| seen.insert(name.as_str())) {
            let id = name.parse::<ToolId>().ok();
            let found = id.and_then(|id| Some((self.tool(&id)?, self.catalog.get(&id)?)));
            if let Some((state, entry)) = found {
                let described = describe_within(state, entry.stale, left, limit);
                left = left.saturating_sub(size_of(&described));
                result.tools.push(described);
            } else {
                let name: String = name.chars().take(LONGEST_NAME).collect();
                result.not_found.push(NotFound {
                    did_you_mean: self.catalog.suggest_tools(&name),
                    name,
                });
            }
        }
        result
    }
}

/// The description if it fits into what is left; else what fits, and how to get the rest.
fn describe_within(tool: &ToolState, stale: bool, left: usize, limit: usize) -> Described {
    let mut description = Description::of(tool, stale);
    let tool = tool.definition();
    if description.definition.is_some() && size_of(&description) > limit {
        description.note = Some(format!(
            "the definition has {} bytes, more than tool_response_limit ({limit}) lets pass",
            tool.raw.get().len()
        ));
        description.definition = None;
        description.signature = Some(tool.signature());
    }
    // The first one is always there: a signature is short, and asking again would not help.
    if left == limit || size_of(&description) <= left {
        return Described::Whole(Box::new(description));
    }
    let name = tool.id.clone();
    let omitted = format!(
        "there is no room for it in this answer; call describe_tool with {{\"names\": [{:?}]}}",
        name.as_str()
    );
    Described::Omitted { name, omitted }
}

impl Description {
    fn of(tool: &ToolState, stale: bool) -> Self {
        let definition = tool.definition();
        Self {
            name: definition.id.clone(),
            definition: tool.hold.is_none().then(|| definition.raw.clone()),
            signature: None,
            note: None,
            audited_tier: tool.audit().tier,
            effective_tier: tool.effective.tier(),
            provenance: tool.effective.provenance(),
            reason: tool.reason(),
            call_with: tool.call_with,
            hold: tool.hold,
            stale,
        }
    }
}

/// The bytes of the description in the answer, which are at least its characters.
fn size_of(described: &impl Serialize) -> usize {
    serde_json::to_string(described).map_or(usize::MAX, |text| text.len())
}
