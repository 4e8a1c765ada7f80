//! What is in force: the config, and every tool with its audit, its pin and its tier. A snapshot never
//! changes; the owner task (`owner.rs`) publishes the next one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use catalog::{Drift, ServerPins, ServerTools, Snapshot};
use config::Config;
use policy::{Provenance, ServerName, Tier, ToolId, ToolName, Trust};
use upstream::{Fleet, State, Status, ToolList, Upstream};

use super::tools::{AuditedTool, ToolState};

/// The snapshot that calls, searches and REST read.
#[derive(Debug)]
pub(crate) struct InForce {
    pub config: Arc<Config>,
    pub catalog: Snapshot,
    servers: BTreeMap<ServerName, ServerInForce>,
    /// The pins of every upstream that was ever seen, configured now or not.
    pins: AllPins,
}

pub(super) type AllPins = BTreeMap<ServerName, Arc<ServerPins>>;

/// One upstream of a snapshot.
#[derive(Debug, Clone)]
pub(crate) struct ServerInForce {
    pub upstream: Arc<Upstream>,
    /// The listing that `states` were made from.
    listing: ToolList,
    stale: bool,
    /// In the order of the listing.
    states: Arc<[Arc<ToolState>]>,
}

/// What the next snapshot is made from, beside the one before.
#[derive(Debug)]
pub(super) struct Inputs {
    pub config: Arc<Config>,
    pub upstreams: Vec<(Arc<Upstream>, Arc<Status>)>,
    pub pins: AllPins,
    /// Upstreams whose pins were lost: their definitions cannot be compared with anything.
    pub lost: BTreeSet<ServerName>,
}

/// What comparing the listings with the pins brought to light.
#[derive(Debug, Default)]
pub(super) struct Observed {
    /// Upstreams whose pins changed.
    pub changed: BTreeSet<ServerName>,
    /// Definitions that differ from their pins.
    pub drifts: BTreeMap<ToolId, (Drift, Trust)>,
}

// === impl InForce ===

impl InForce {
    /// What is in force before any upstream is started.
    pub(super) fn first(config: Arc<Config>, pins: AllPins) -> Self {
        Self {
            config,
            pins,
            catalog: Snapshot::default(),
            servers: BTreeMap::new(),
        }
    }

    /// The snapshot that follows this one. Only definitions that changed are indexed and audited
    /// again. Takes up to a second for thousands of new tools, so it is not for async tasks.
    pub(super) fn next(&self, mut inputs: Inputs) -> (Self, Observed) {
        let catalog = self.catalog.rebuild(listings(&inputs.upstreams));
        let mut observed = Observed::default();
        let same_config = Arc::ptr_eq(&self.config, &inputs.config);
        let upstreams = std::mem::take(&mut inputs.upstreams);
        let servers = upstreams.into_iter().map(|(upstream, status)| {
            let name = upstream.name().clone();
            let before = self.servers.get(&name);
            let relevant = same_config && self.has_pins(&name, &inputs.pins);
            let kept = before.filter(|before| relevant && before.lists(&status));
            let states = match kept {
                Some(before) => Arc::clone(&before.states),
                None => states(before, &upstream, &status, &mut inputs, &mut observed),
            };
            let server = ServerInForce {
                upstream,
                listing: status.tools.clone(),
                stale: status.stale,
                states,
            };
            (name, server)
        });
        let servers = servers.collect();
        let next = Self {
            servers,
            catalog,
            config: inputs.config,
            pins: inputs.pins,
        };
        (next, observed)
    }

    /// Whether this snapshot says of each upstream what the upstream says of itself.
    pub(super) fn is_current(&self, fleet: &Fleet) -> bool {
        let upstreams = fleet.all();
        upstreams.len() == self.servers.len()
            && upstreams
                .iter()
                .all(|upstream| self.is_current_for(upstream))
    }

    pub(super) fn is_current_for(&self, upstream: &Arc<Upstream>) -> bool {
        self.servers.get(upstream.name()).is_some_and(|server| {
            let status = upstream.status();
            Arc::ptr_eq(&server.upstream, upstream)
                && server.stale == status.stale
                && server.lists(&status)
        })
    }

    pub(crate) fn server(&self, name: &ServerName) -> Option<&ServerInForce> {
        self.servers.get(name)
    }

    /// All upstreams, by name.
    pub(crate) fn servers(&self) -> impl Iterator<Item = &ServerInForce> {
        self.servers.values()
    }

    pub(crate) fn tool(&self, id: &ToolId) -> Option<&Arc<ToolState>> {
        self.server(id.server())?.tool(id.tool())
    }

    /// Every tool and whether its upstream is gone, ordered by id.
    pub(crate) fn tools(&self) -> impl Iterator<Item = (&ToolState, bool)> {
        let entries = self.catalog.tools();
        entries.filter_map(|entry| Some((&**self.tool(&entry.tool.id)?, entry.stale)))
    }

    /// The upstreams that are being connected, or one of them: their tools are those of an earlier run, if any.
    pub(crate) fn starting(&self, only: Option<&ServerName>) -> Vec<ServerName> {
        self.in_state(only, |state| matches!(state, State::Connecting))
    }

    /// The upstreams that are wanted and not there: failed, or waiting to be tried again.
    pub(super) fn missing(&self, only: Option<&ServerName>) -> Vec<ServerName> {
        self.in_state(only, |state| {
            matches!(state, State::Waiting { .. } | State::Failed { .. })
        })
    }

    fn in_state(
        &self,
        only: Option<&ServerName>,
        is_wanted: impl Fn(&State) -> bool,
    ) -> Vec<ServerName> {
        let servers = self.servers.iter();
        servers
            .filter(|(name, server)| {
                only.is_none_or(|only| only == *name) && is_wanted(&server.upstream.status().state)
            })
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Tools without hints that look as if they change something, and that any lane may call because the
    /// operator has not said what to think of such tools. The most dangerous come first.
    pub(crate) fn undecided(&self) -> Vec<&ToolId> {
        if self.config.unannotated_is_decided {
            return Vec::new();
        }
        let undecided = self.tools().filter(|(state, _)| {
            state.effective.provenance() == Provenance::Unannotated
                && state.audit().tier > Tier::ReadOnly
        });
        let mut undecided: Vec<&ToolState> = undecided.map(|(state, _)| state).collect();
        undecided.sort_by_key(|state| std::cmp::Reverse(state.audit().tier));
        let ids = undecided.into_iter().map(|state| &state.definition().id);
        ids.collect()
    }

    pub(super) fn pins(&self) -> &AllPins {
        &self.pins
    }

    pub(super) fn pins_of(&self, server: &ServerName) -> Arc<ServerPins> {
        self.pins.get(server).cloned().unwrap_or_default()
    }

    fn has_pins(&self, server: &ServerName, pins: &AllPins) -> bool {
        match (self.pins.get(server), pins.get(server)) {
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            (own, other) => own.is_none() && other.is_none(),
        }
    }
}

// === impl ServerInForce ===

impl ServerInForce {
    /// Whether the tools are those of this status.
    pub(super) fn lists(&self, status: &Status) -> bool {
        self.listing.is_identical_to(&status.tools)
    }

    pub(crate) fn tool(&self, name: &ToolName) -> Option<&Arc<ToolState>> {
        self.states.get(self.listing.position(name)?)
    }

    /// All tools, in the order in which the upstream lists them.
    pub(crate) fn tools(&self) -> impl Iterator<Item = &Arc<ToolState>> {
        self.states.iter()
    }
}

fn listings(upstreams: &[(Arc<Upstream>, Arc<Status>)]) -> Vec<ServerTools> {
    let listing = |(upstream, status): &(Arc<Upstream>, Arc<Status>)| ServerTools {
        server: upstream.name().clone(),
        tools: Arc::clone(status.tools.all()),
        stale: status.stale,
    };
    upstreams.iter().map(listing).collect()
}

/// Audits the tools of an upstream, as far as they are new, and compares them with their pins.
fn states(
    before: Option<&ServerInForce>,
    upstream: &Upstream,
    status: &Status,
    inputs: &mut Inputs,
    observed: &mut Observed,
) -> Arc<[Arc<ToolState>]> {
    let (name, trust) = (upstream.name(), upstream.config().trust);
    let audited = status.tools.all().iter().map(|definition| {
        let known = before.and_then(|before| before.tool(definition.id.tool()));
        AuditedTool::of(definition, known.map(|state| &state.tool))
    });
    let audited: Vec<_> = audited.collect();
    let mut pins = ServerPins::clone(&inputs.pins.get(name).cloned().unwrap_or_default());
    let mut changed = false;
    if !audited.is_empty() && inputs.lost.contains(name) {
        // The pins that these tools would be compared with are gone.
        pins.quarantined |= trust == Trust::Pin;
        changed = true;
    }
    for tool in &audited {
        let observation = pins.observe(&tool.announced(), trust);
        changed |= observation.changed;
        if let Some(drift) = observation.drift {
            let id = tool.definition.id.clone();
            observed.drifts.insert(id, (drift, trust));
        }
    }
    let assessed = audited
        .into_iter()
        .map(|tool| Arc::new(ToolState::new(tool, &pins, &inputs.config)))
        .collect();
    if changed {
        observed.changed.insert(name.clone());
        inputs.pins.insert(name.clone(), Arc::new(pins));
    }
    assessed
}
