//! A tool as people and agents are shown it: what it is, its tiers, and how to call it.

use auditor::Audit;
use catalog::ToolDefinition;
use mcp::RawValue;
use policy::{Annotations, EffectiveTier, Provenance, Tier, ToolId, ToolVariant};
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
    /// Whether the upstream is gone and this is what it last announced.
    pub stale: bool,
}

/// The tier of a tool under the rules in force.
#[derive(Debug, Clone, Copy)]
pub(super) struct Standing {
    pub override_tier: Option<Tier>,
    pub effective: EffectiveTier,
    pub call_with: ToolVariant,
}

impl Engine {
    pub(super) fn standing(&self, tool: &ToolDefinition, audited: Tier) -> Standing {
        let config = self.config.load();
        let unannotated = config.intent_declaration.unannotated;
        let overrides = config.tool_overrides.compiled();
        let override_tier = overrides.tier_for(&tool.id).map(|(tier, _)| tier);
        let annotations = tool.annotations.as_ref();
        let audited = Some(audited);
        let mut effective =
            EffectiveTier::resolve(override_tier, annotations, audited, unannotated);
        if config.distrust.matches(tool.id.server()) {
            effective = effective.distrusting(audited);
        }
        Standing {
            override_tier,
            effective,
            call_with: effective.call_with(unannotated),
        }
    }

    pub(crate) fn view(&self, tool: &ToolDefinition, stale: bool) -> ToolView {
        let audit = self.audit_of(tool);
        let standing = self.standing(tool, audit.tier);
        ToolView {
            name: tool.id.clone(),
            server: tool.id.server().clone(),
            title: tool.title.clone(),
            description: tool.description.clone(),
            annotations: annotations_of(tool),
            declared_tier: tool
                .annotations
                .as_ref()
                .and_then(Annotations::declared_tier),
            audited_tier: audit.tier,
            override_tier: standing.override_tier,
            effective_tier: standing.effective.tier(),
            provenance: standing.effective.provenance(),
            reason: standing.reason(&audit),
            call_with: standing.call_with,
            stale,
        }
    }
}

impl Standing {
    /// Why the tool is to be called as it is.
    pub(super) fn reason(self, audit: &Audit) -> String {
        let (effective, call_with) = (self.effective, self.call_with);
        match effective {
            EffectiveTier::Audited(_) => {
                let why = &audit.reason;
                format!("The tool is {effective} ({why}), so call it with {call_with}.")
            }
            _ => format!("The tool is {effective}, so call it with {call_with}."),
        }
    }
}

/// The annotations as the server wrote them; an empty object where it wrote none, so that agents
/// always find the member.
pub(super) fn annotations_of(tool: &ToolDefinition) -> Box<RawValue> {
    match &tool.raw_annotations {
        Some(raw) if raw.get().starts_with('{') => raw.clone(),
        _ => RawValue::from_string("{}".to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned()),
    }
}
