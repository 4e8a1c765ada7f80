//! What the operator does about tools that changed: look, approve, quarantine. No agent gets here.

use std::collections::BTreeMap;
use std::time::Duration;

use activity::{Durability, End, Missed, Outcome, RecordType, Source, Start};
use catalog::{
    DifferenceLine, Drift, DriftKind, Fingerprint, Pin, Remembered, ServerPins, difference,
};
use policy::{
    Code, EffectiveTier, Hold, PinnedTiers, ServerName, Tier, TierFacts, ToolId, ToolName, Trust,
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::Engine;
use super::flood::{CHANGED, Cause};
use super::in_force::{InForce, ServerInForce};
use super::owner::{Command, PinChange};
use super::tools::ToolState;
use crate::pins::PinsError;

/// What waits for the operator's word on one upstream.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ServerDrift {
    #[schema(value_type = String)]
    pub server: ServerName,
    pub trust: Trust,
    /// Whether the whole upstream is in quarantine.
    pub quarantined: bool,
    pub tools: Vec<ToolDrift>,
}

/// What waits for the operator's word on one tool.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ToolDrift {
    #[schema(value_type = String)]
    pub name: ToolName,
    pub hold: Option<Hold>,
    pub reason: String,
    /// None when it is not announced now.
    #[schema(value_type = Option<String>)]
    pub fingerprint: Option<Fingerprint>,
    #[schema(value_type = Option<String>)]
    pub pinned_fingerprint: Option<Fingerprint>,
    /// What the tool would be if it were approved, and what it was pinned as.
    pub announced_tier: Option<Tier>,
    pub pinned_tier: Option<Tier>,
    #[schema(value_type = Vec<Object>)]
    pub difference: Vec<DifferenceLine>,
}

/// What to approve.
#[derive(Debug)]
pub(crate) struct Approval {
    pub server: ServerName,
    /// Everything that waits, if empty.
    pub tools: Vec<ToolName>,
    /// The definitions that were looked at; another one is not approved unseen.
    pub seen: BTreeMap<ToolName, Fingerprint>,
    pub source: Source,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum QuarantineError {
    #[error("server '{0}' has no tool '{1}', now or before")]
    UnknownTool(ServerName, ToolName),
    #[error("server '{0}' does not announce '{1}' now, so there is no definition to approve")]
    NotAnnounced(ServerName, ToolName),
    #[error("the whole server '{0}' is in quarantine; approve it without naming tools")]
    WholeServer(ServerName),
    #[error("the definition of '{0}' is no longer the one that was looked at")]
    ChangedMeanwhile(ToolId),
    #[error("the pins cannot be written, so nothing was changed")]
    NotSaved(#[from] PinsError),
    #[error("mcpproxy is stopping")]
    Stopping,
}

impl InForce {
    /// What waits for the operator's word on an upstream.
    pub(crate) fn drift(&self, server: &ServerName) -> ServerDrift {
        let announced = self.announced(server);
        let pins = self.pins_of(server);
        let tools = announced.iter().filter_map(|(name, state)| {
            let pin = pins.tools.get(*name);
            let waits = state.hold.is_some() || pin.is_some_and(|pin| pin.tiers_kept);
            waits.then(|| ToolDrift::of(state, pin))
        });
        let absent = pins
            .tools
            .iter()
            .filter(|(name, pin)| pin.quarantined && !announced.contains_key(name))
            .map(|(name, pin)| ToolDrift::absent(name, pin));
        let trust = self.server(server).map(|it| it.upstream.config().trust);
        ServerDrift {
            server: server.clone(),
            trust: trust.unwrap_or_default(),
            quarantined: pins.quarantined,
            tools: tools.chain(absent).collect(),
        }
    }

    /// The tools that an upstream announces, ordered by name.
    fn announced(&self, server: &ServerName) -> BTreeMap<&ToolName, &ToolState> {
        let server = self.server(server);
        // The first definition of a name counts, and before it that which every client gets.
        let others = server.into_iter().flat_map(|server| server.others().rev());
        let tools = others.chain(server.into_iter().flat_map(ServerInForce::tools));
        tools
            .map(|state| (state.definition().id.tool(), &**state))
            .collect()
    }
}

impl Approval {
    /// What is waiting and is approved by this.
    fn covers(
        &self,
        in_force: &InForce,
        pins: &ServerPins,
    ) -> Result<ServerDrift, QuarantineError> {
        let server = &self.server;
        let announced = in_force.announced(server);
        let mut waiting = in_force.drift(server);
        for name in self
            .tools
            .iter()
            .filter(|name| !announced.contains_key(name))
        {
            if !pins.tools.contains_key(name) {
                return Err(QuarantineError::UnknownTool(server.clone(), name.clone()));
            }
            if !waiting.tools.iter().any(|tool| tool.name == *name) {
                return Err(QuarantineError::NotAnnounced(server.clone(), name.clone()));
            }
        }
        if waiting.quarantined && !self.tools.is_empty() {
            return Err(QuarantineError::WholeServer(server.clone()));
        }
        if !self.tools.is_empty() {
            waiting.tools.retain(|tool| self.tools.contains(&tool.name));
        }
        for (name, seen) in &self.seen {
            let now = announced.get(name).map(|state| state.tool.fingerprint);
            if waiting.tools.iter().any(|tool| tool.name == *name) && now != Some(*seen) {
                let id = ToolId::new(server.clone(), name.clone());
                return Err(QuarantineError::ChangedMeanwhile(id));
            }
        }
        Ok(waiting)
    }

    /// Pins what is announced now. Returns what was waiting.
    fn apply(
        &self,
        in_force: &InForce,
        pins: &mut ServerPins,
    ) -> Result<ServerDrift, QuarantineError> {
        let waiting = self.covers(in_force, pins)?;
        let announced = in_force.announced(&self.server);
        if self.tools.is_empty() {
            pins.quarantined = false;
        }
        for tool in &waiting.tools {
            if let Some(state) = announced.get(&tool.name) {
                pins.approve(&state.tool.announced());
            } else if let Some(pin) = pins.tools.get_mut(&tool.name) {
                pin.quarantined = false;
            }
        }
        Ok(waiting)
    }
}

impl Engine {
    /// Pins what is announced now, and ends quarantines. Returns what was waiting.
    pub(crate) async fn approve(&self, approval: Approval) -> Result<ServerDrift, QuarantineError> {
        let (server, source) = (approval.server.clone(), approval.source);
        let change: PinChange = Box::new(move |in_force, pins| approval.apply(in_force, pins));
        let waiting = self.change_pins(server, change).await?;
        self.record_approval(&waiting, source).await;
        Ok(waiting)
    }

    /// Keeps tools of an upstream, or the whole of it, from being called.
    pub(crate) async fn quarantine(
        &self,
        server: &ServerName,
        tools: &[ToolName],
        source: Source,
    ) -> Result<ServerDrift, QuarantineError> {
        let (name, marked) = (server.clone(), tools.to_vec());
        let change: PinChange = Box::new(move |in_force, pins| {
            pins.quarantined |= marked.is_empty();
            for tool in marked {
                // Every tool that was ever listed has a pin.
                match pins.tools.get_mut(&tool) {
                    Some(pin) => pin.quarantined = true,
                    None => return Err(QuarantineError::UnknownTool(name, tool)),
                }
            }
            Ok(in_force.drift(&name))
        });
        self.change_pins(server.clone(), change).await?;
        let marked = json!({"action": "quarantined"});
        if tools.is_empty() {
            self.record_change(server, None, source, &marked, Outcome::Success)
                .await;
        }
        for name in tools {
            self.record_change(server, Some(name), source, &marked, Outcome::Success)
                .await;
        }
        let mut drift = self.in_force().drift(server);
        if !tools.is_empty() {
            drift.tools.retain(|tool| tools.contains(&tool.name));
        }
        Ok(drift)
    }

    async fn change_pins(
        &self,
        server: ServerName,
        change: PinChange,
    ) -> Result<ServerDrift, QuarantineError> {
        let command = |done| Command::ChangePins {
            server,
            change,
            done,
        };
        let changed = self.ask(command).await;
        changed.unwrap_or(Err(QuarantineError::Stopping))
    }

    /// Records what the definition of a tool has become.
    pub(super) async fn record_drift(&self, tool: &ToolId, drift: &Drift, trust: Trust) {
        let cause = Cause::Server(tool.server().clone());
        if !self.flood.admits(cause, CHANGED, &self.activity) {
            return;
        }
        let (before, after) = (&drift.before, &drift.after);
        let lowered = self.lowers(tool, before.tiers, after.tiers);
        let action = match (drift.kind, lowered) {
            (DriftKind::Held, _) => "held",
            (DriftKind::Logged, true) => "tier_held",
            (DriftKind::Logged, false) => "logged",
            (DriftKind::Restored, _) => "restored",
        };
        let change = json!({
            "action": action,
            "trust": trust,
            "tier_before": before.tiers.declared,
            "tier_after": after.tiers.declared,
            "fingerprint_before": before.fingerprint,
            "fingerprint_after": after.fingerprint,
            "difference": readable(before, after),
        });
        tracing::warn!(%tool, action, trust = trust.as_str(), "the definition of a tool has changed");
        let message = Hold::DefinitionChanged.refusal(tool).message;
        let kept = format!(
            "The server of '{tool}' lowered its tier; the stricter one stays in force until the \
             operator has approved the change with `mcpproxy upstream approve {} {}`",
            tool.server(),
            tool.tool()
        );
        let code = Code::ToolQuarantined.as_str();
        let outcome = match action {
            "held" => Outcome::Blocked {
                code,
                message: &message,
            },
            "tier_held" => Outcome::Blocked {
                code,
                message: &kept,
            },
            _ => Outcome::Success,
        };
        self.record_change(
            tool.server(),
            Some(tool.tool()),
            // It is the server that did it.
            Source::Mcp,
            &change,
            outcome,
        )
        .await;
    }

    /// Whether a tool with these tiers would be open to a lane that was closed to it before.
    fn lowers(&self, tool: &ToolId, before: PinnedTiers, after: PinnedTiers) -> bool {
        let config = self.config();
        let unannotated = config.intent_declaration.unannotated;
        let facts = TierFacts {
            override_tier: None,
            declared: after.declared,
            audited: Some(after.audited),
            distrusted: config.distrust.matches(tool.server()),
            pinned: None,
        };
        let pinned = TierFacts {
            pinned: Some(before),
            ..facts
        };
        EffectiveTier::resolve(&facts, unannotated) != EffectiveTier::resolve(&pinned, unannotated)
    }

    async fn record_approval(&self, approved: &ServerDrift, source: Source) {
        let server = &approved.server;
        if approved.quarantined {
            let change = json!({"action": "approved"});
            self.record_change(server, None, source, &change, Outcome::Success)
                .await;
        }
        for tool in &approved.tools {
            let change = json!({
                "action": "approved",
                "hold": tool.hold,
                "tier_before": tool.pinned_tier,
                "tier_after": tool.announced_tier,
                "fingerprint_before": tool.pinned_fingerprint,
                "fingerprint_after": tool.fingerprint,
                "difference": &tool.difference,
            });
            let name = Some(&tool.name);
            self.record_change(server, name, source, &change, Outcome::Success)
                .await;
        }
    }

    async fn record_change(
        &self,
        server: &ServerName,
        tool: Option<&ToolName>,
        source: Source,
        change: &Value,
        outcome: Outcome<'_>,
    ) {
        let change = change.to_string();
        let start = Start {
            server_name: Some(server.as_str()),
            tool_name: tool.map(ToolName::as_str),
            arguments: Some(&change),
            ..Start::new(RecordType::QuarantineChange, source)
        };
        let end = End::new(outcome, Duration::ZERO);
        if let Err(error) = self.activity.record(start, end, Durability::Written).await {
            self.activity.missed(Missed::Change);
            tracing::error!(%error, %server, "a change of pins is not recorded");
        }
    }
}

impl ToolDrift {
    fn of(state: &ToolState, pin: Option<&Pin>) -> Self {
        let definition = state.definition();
        Self {
            name: definition.id.tool().clone(),
            hold: state.hold,
            reason: state.reason(),
            fingerprint: Some(state.tool.fingerprint),
            pinned_fingerprint: pin.map(|pin| pin.fingerprint),
            announced_tier: state.declared_tier(),
            pinned_tier: pin.and_then(|pin| pin.tiers.declared),
            difference: pin
                .map(|pin| difference(&pin.definition, &definition.raw))
                .unwrap_or_default(),
        }
    }

    /// A tool that is in quarantine and not announced.
    fn absent(name: &ToolName, pin: &Pin) -> Self {
        Self {
            name: name.clone(),
            hold: Some(Hold::Quarantined),
            reason: format!("The tool is {} and not announced now.", Hold::Quarantined),
            fingerprint: None,
            pinned_fingerprint: Some(pin.fingerprint),
            announced_tier: None,
            pinned_tier: pin.tiers.declared,
            difference: Vec::new(),
        }
    }
}

fn readable(before: &Remembered, after: &Remembered) -> Vec<DifferenceLine> {
    difference(&before.definition, &after.definition)
}
