//! One tool: what is known of it under the config in force, and how a call finds it by its name.

use std::sync::Arc;
use std::time::{Duration, Instant};

use auditor::{Audit, ToolFacts, audit_tier};
use catalog::{Announced, Fingerprint, ServerPins, ToolDefinition};
use config::Config;
use policy::{
    Annotations, Code, EffectiveTier, Hold, PinnedTiers, Refusal, ServerName, Tier, TierFacts,
    ToolId, ToolVariant,
};
use upstream::{OnBehalf, State, Upstream};

use super::Engine;
use super::in_force::InForce;

/// How long a call waits for an upstream that is just being connected.
const CONNECTING_PATIENCE: Duration = Duration::from_secs(30);

/// A definition and what the auditor says of it. It depends on the definition alone.
#[derive(Debug)]
pub(crate) struct AuditedTool {
    pub definition: Arc<ToolDefinition>,
    pub fingerprint: Fingerprint,
    pub audit: Audit,
}

/// A tool under the config and the pins in force.
#[derive(Debug)]
pub(crate) struct ToolState {
    pub(super) tool: Arc<AuditedTool>,
    pub override_tier: Option<Tier>,
    /// Whether the operator does not take the server's word for what its tools do.
    pub distrusted: bool,
    /// The tiers of the pin, where they differ from those of the definition.
    pub pinned: Option<PinnedTiers>,
    /// What keeps the tool from being called until the operator approves it.
    pub hold: Option<Hold>,
    pub effective: EffectiveTier,
    pub call_with: ToolVariant,
}

/// A tool that a call named, and where to send the call.
#[derive(Debug)]
pub(super) struct Resolved {
    pub in_force: Arc<InForce>,
    pub upstream: Arc<Upstream>,
    pub state: Arc<ToolState>,
}

impl Engine {
    /// Finds the tool that a call names. Waits only for an upstream that is being connected, and
    /// for a listing that the owner has not published yet.
    ///
    /// A name that is not known has the upstream list its tools again, as `client` sees them.
    pub(super) async fn resolve(
        &self,
        id: &ToolId,
        client: Option<&OnBehalf>,
    ) -> Result<Resolved, Refusal> {
        let in_force = self.in_force();
        if let Some(server) = in_force.server(id.server())
            && let Some(state) = server.tool(id.tool())
        {
            let status = server.upstream.status();
            if status.state.is_connected() && server.lists(&status) {
                return Ok(Resolved {
                    upstream: Arc::clone(&server.upstream),
                    state: Arc::clone(state),
                    in_force,
                });
            }
        }
        // Boxed, so that other calls do not carry the larger state of this one.
        Box::pin(self.resolve_after_waiting(id, client)).await
    }

    async fn resolve_after_waiting(
        &self,
        id: &ToolId,
        client: Option<&OnBehalf>,
    ) -> Result<Resolved, Refusal> {
        let Some(upstream) = self.fleet.get(id.server()) else {
            return Err(self.in_force().unknown_server(id));
        };
        let deadline = Instant::now() + CONNECTING_PATIENCE.min(upstream.config().timeout);
        let status = upstream.available(deadline).await;
        if status.state.is_connected() && self.once_current(id).await.tool(id).is_none() {
            upstream.look_again(client).await;
        }
        let in_force = self.once_current(id).await;
        let Some(server) = in_force.server(id.server()) else {
            return Err(in_force.unknown_server(id));
        };
        let status = server.upstream.status();
        match (server.tool(id.tool()), &status.state) {
            _ if !server.lists(&status) => Err(unchecked(id.server())),
            (Some(state), _) => Ok(Resolved {
                state: Arc::clone(state),
                upstream: Arc::clone(&server.upstream),
                in_force,
            }),
            (None, State::Ready | State::Degraded { .. }) => Err(in_force.unknown_tool(id)),
            (None, state) => Err(unavailable(id.server(), state)),
        }
    }

    /// What is in force, once it has what the upstream of the tool says.
    async fn once_current(&self, id: &ToolId) -> Arc<InForce> {
        // A config change may have replaced the upstream meanwhile.
        let is_current = |in_force: &InForce| {
            let upstream = self.fleet.get(id.server());
            upstream.is_none_or(|upstream| in_force.is_current_for(&upstream))
        };
        self.once(is_current).await
    }
}

impl InForce {
    fn unknown_server(&self, id: &ToolId) -> Refusal {
        let name = id.server().as_str();
        let near = self.catalog.suggest_servers(name);
        unknown(Code::UnknownServer, "server", name, &near)
    }

    fn unknown_tool(&self, id: &ToolId) -> Refusal {
        let near = self.catalog.suggest_tools(id.as_str());
        unknown(Code::UnknownTool, "tool", id.as_str(), &near)
    }
}

fn unknown(code: Code, what: &str, name: &str, near: &[impl ToString]) -> Refusal {
    let near: Vec<String> = near.iter().map(ToString::to_string).collect();
    let hint = match near.first() {
        Some(best) => format!("Did you mean '{best}'?"),
        None => "Find tools with retrieve_tools.".to_owned(),
    };
    Refusal::new(code, format!("Unknown {what} '{name}'. {hint}"))
        .with(what, name)
        .with("did_you_mean", near)
}

// === impl AuditedTool ===

impl AuditedTool {
    /// Audits a definition, unless `known` has the same.
    pub(super) fn of(definition: &Arc<ToolDefinition>, known: Option<&Arc<Self>>) -> Arc<Self> {
        let is_same = |known: &&Arc<Self>| known.definition.raw.get() == definition.raw.get();
        if let Some(known) = known.filter(is_same) {
            return Arc::clone(known);
        }
        Arc::new(Self {
            definition: Arc::clone(definition),
            fingerprint: Fingerprint::of(&definition.raw),
            audit: audit_tier(&facts(definition)),
        })
    }

    pub(super) fn announced(&self) -> Announced<'_> {
        Announced {
            tool: &self.definition,
            fingerprint: self.fingerprint,
            audited: self.audit.tier,
        }
    }
}

/// What the auditor is told of a tool.
pub(super) fn facts(tool: &ToolDefinition) -> ToolFacts<'_> {
    ToolFacts {
        server: tool.id.server().as_str(),
        name: tool.id.tool().as_str(),
        title: tool.title.as_deref(),
        description: &tool.description,
        input_schema: tool.input_schema.as_deref(),
        output_schema: tool.output_schema.as_deref(),
        annotations: tool.annotations.as_ref(),
        pinned: None,
    }
}

// === impl ToolState ===

impl ToolState {
    /// Applies overrides and pins to a tool that the pins have observed. `others` are the tiers of other
    /// definitions of it; the strictest count.
    pub(super) fn new(
        tool: Arc<AuditedTool>,
        pins: &ServerPins,
        config: &Config,
        others: Option<PinnedTiers>,
        hold: Option<Hold>,
    ) -> Self {
        let id = &tool.definition.id;
        let announced = tool.announced();
        let pinned = pins.tools.get(id.tool()).map(|pin| pin.tiers);
        let pinned = match (pinned, others) {
            (Some(pinned), Some(others)) => Some(pinned.joined(others)),
            (pinned, others) => pinned.or(others),
        };
        let facts = TierFacts {
            override_tier: config
                .tool_overrides
                .compiled()
                .tier_for(id)
                .map(|(tier, _)| tier),
            declared: announced.tiers().declared,
            audited: Some(tool.audit.tier),
            distrusted: config.distrust.matches(id.server()),
            pinned: pinned.filter(|tiers| *tiers != announced.tiers()),
        };
        let unannotated = config.intent_declaration.unannotated;
        let effective = EffectiveTier::resolve(&facts, unannotated);
        Self {
            override_tier: facts.override_tier,
            distrusted: facts.distrusted,
            pinned: facts.pinned,
            hold,
            effective,
            call_with: effective.call_with(unannotated),
            tool,
        }
    }

    pub(crate) fn definition(&self) -> &ToolDefinition {
        &self.tool.definition
    }

    pub(super) fn audit(&self) -> &Audit {
        &self.tool.audit
    }

    pub(super) fn declared_tier(&self) -> Option<Tier> {
        let hints = self.definition().annotations.as_ref();
        hints.and_then(Annotations::declared_tier)
    }

    /// Why the tool is to be called as it is, or why it cannot be.
    pub(super) fn reason(&self) -> String {
        let (effective, call_with) = (self.effective, self.call_with);
        if let Some(hold) = self.hold {
            return format!("The tool is {hold}, so no lane may call it.");
        }
        match effective {
            EffectiveTier::Audited(_) => {
                let why = &self.audit().reason;
                format!("The tool is {effective} ({why}), so call it with {call_with}.")
            }
            _ => format!("The tool is {effective}, so call it with {call_with}."),
        }
    }
}

/// The upstream has listed other tools, and they have not been audited in time.
fn unchecked(server: &ServerName) -> Refusal {
    let message = format!(
        "Server '{server}' has changed its tools, and they are still being checked; try again shortly"
    );
    Refusal::new(Code::ServerUnavailable, message).with("server", server.as_str())
}

/// The upstream exists but cannot take the call now.
pub(crate) fn unavailable(server: &ServerName, state: &State) -> Refusal {
    let (why, what_to_do) = match state {
        State::Disabled => (
            "is switched off".to_owned(),
            format!("ask the operator to run `mcpproxy upstream enable {server}`"),
        ),
        State::Connecting => (
            "is still connecting".to_owned(),
            "try again shortly".to_owned(),
        ),
        State::Ready | State::Degraded { .. } | State::Stopped => (
            "lost its connection".to_owned(),
            "try again shortly".to_owned(),
        ),
        State::Waiting { failure, .. } | State::Failed { failure } => (
            format!("is not connected: {}", failure.message),
            failure.advice.clone(),
        ),
    };
    Refusal::new(
        Code::ServerUnavailable,
        format!("Server '{server}' {why}; {what_to_do}"),
    )
    .with("server", server.as_str())
    .with("state", state.as_str())
}
