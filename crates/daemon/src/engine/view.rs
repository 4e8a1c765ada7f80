//! A tool as people and agents are shown it: what it is, its tiers, and how to call it.

use std::sync::Arc;

use catalog::{ServerPins, ToolDefinition};
use mcp::RawValue;
use policy::{Hold, Provenance, Tier, ToolId, ToolVariant, Trust};
use serde::Serialize;
use utoipa::ToSchema;

use super::in_force::InForce;
use super::tools::{AuditedTool, ToolState};

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

impl ToolState {
    pub(crate) fn view(&self, stale: bool) -> ToolView {
        let tool = self.definition();
        ToolView {
            name: tool.id.clone(),
            server: tool.id.server().clone(),
            title: tool.title.clone(),
            description: tool.description.clone(),
            annotations: annotations_of(tool),
            declared_tier: self.declared_tier(),
            audited_tier: self.audit().tier,
            override_tier: self.override_tier,
            effective_tier: self.effective.tier(),
            provenance: self.effective.provenance(),
            reason: self.reason(),
            call_with: self.call_with,
            hold: self.hold,
            stale,
        }
    }
}

impl InForce {
    /// A tool of an upstream that is not in force, as it would be if it were.
    pub(crate) fn preview(&self, definition: &Arc<ToolDefinition>, trust: Trust) -> ToolView {
        let tool = AuditedTool::of(definition, None);
        let mut pins = ServerPins::clone(&self.pins_of(definition.id.server()));
        pins.observe(&tool.announced(), trust);
        let hold = pins.hold(tool.definition.id.tool(), tool.fingerprint);
        ToolState::new(tool, &pins, &self.config, None, hold).view(false)
    }
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
