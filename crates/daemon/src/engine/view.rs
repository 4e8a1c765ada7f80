//! A tool as people and agents are shown it: what it is, its tiers, and how to call it.

use std::sync::Arc;

use auditor::Audit;
use catalog::ToolDefinition;
use mcp::RawValue;
use policy::{Annotations, EffectiveTier, Hold, Provenance, Tier, TierFacts, ToolId, ToolVariant};
use serde::Serialize;
use utoipa::ToSchema;

use super::Engine;

/// One tool with what is known of its tier.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ToolView)]
pub(crate) struct ToolView {
    /// server:tool
    #[schema(value_type = String)]
    pub name: ToolId,
    #[schema(value_type = String)]
    pub server: policy::ServerName,
    pub title: Option<String>,
    pub description: String,
    /// As the server wrote them.
    #[schema(value_type = Object)]
    pub annotations: Box<RawValue>,
    pub declared_tier: Option<Tier>,
    pub audited_tier: Tier,
    pub override_tier: Option<Tier>,
    pub effective_tier: Option<Tier>,
    pub provenance: Provenance,
    pub reason: String,
    pub call_with: ToolVariant,
    /// What keeps the tool from being called until the operator approves it.
    pub hold: Option<Hold>,
    /// Whether the upstream is gone and this is what it last announced.
    pub stale: bool,
}

/// How a tool stands under the rules in force.
#[derive(Debug, Clone)]
pub(super) struct Standing {
    pub override_tier: Option<Tier>,
    pub effective: EffectiveTier,
    pub call_with: ToolVariant,
    pub hold: Option<Hold>,
    audit: Arc<Audit>,
}

impl Engine {
    pub(super) fn standing(&self, tool: &ToolDefinition) -> Standing {
        let known = self.known(tool);
        let config = self.config.load();
        let unannotated = config.intent_declaration.unannotated;
        let overrides = config.tool_overrides.compiled();
        let override_tier = overrides.tier_for(&tool.id).map(|(tier, _)| tier);
        let facts = TierFacts {
            override_tier,
            declared: declared_tier(tool),
            audited: Some(known.audit.tier),
            distrusted: config.distrust.matches(tool.id.server()),
            pinned: known.standing.pinned,
        };
        let effective = EffectiveTier::resolve(&facts, unannotated);
        Standing {
            override_tier,
            effective,
            call_with: effective.call_with(unannotated),
            hold: known.standing.hold,
            audit: known.audit,
        }
    }

    /// Whether the tool must not be shown or called until the operator approves it.
    pub(crate) fn holds(&self, tool: &ToolDefinition) -> bool {
        self.known(tool).standing.hold.is_some()
    }

    pub(crate) fn view(&self, tool: &ToolDefinition, stale: bool) -> ToolView {
        let standing = self.standing(tool);
        ToolView {
            name: tool.id.clone(),
            server: tool.id.server().clone(),
            title: tool.title.clone(),
            description: tool.description.clone(),
            annotations: annotations_of(tool),
            declared_tier: declared_tier(tool),
            audited_tier: standing.audited_tier(),
            override_tier: standing.override_tier,
            effective_tier: standing.effective.tier(),
            provenance: standing.effective.provenance(),
            reason: standing.reason(),
            call_with: standing.call_with,
            hold: standing.hold,
            stale,
        }
    }
}

impl Standing {
    pub(super) fn audited_tier(&self) -> Tier {
        self.audit.tier
    }

    /// Why the tool is to be called as it is, or why it cannot be.
    pub(super) fn reason(&self) -> String {
        let (effective, call_with) = (self.effective, self.call_with);
        if let Some(hold) = self.hold {
            return format!("The tool is {hold}, so no lane may call it.");
        }
        match effective {
            EffectiveTier::Audited(_) => {
                let why = &self.audit.reason;
                format!("The tool is {effective} ({why}), so call it with {call_with}.")
            }
            _ => format!("The tool is {effective}, so call it with {call_with}."),
        }
    }
}

fn declared_tier(tool: &ToolDefinition) -> Option<Tier> {
    let hints = tool.annotations.as_ref();
    hints.and_then(Annotations::declared_tier)
}

/// The annotations as the server wrote them; an empty object where it wrote none, so that agents
/// always find the member.
pub(super) fn annotations_of(tool: &ToolDefinition) -> Box<RawValue> {
    match &tool.raw_annotations {
        Some(raw) if raw.get().starts_with('{') => raw.clone(),
        _ => no_annotations(),
    }
}

pub(super) fn no_annotations() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
