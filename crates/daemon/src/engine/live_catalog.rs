//! Keeps the catalog, and what auditor and pins say of each tool, in step with the upstreams.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use arc_swap::ArcSwap;
use auditor::{Audit, ToolFacts, audit_tier};
use catalog::{Announced, Fingerprint, ServerTools, Snapshot, ToolDefinition};
use policy::{ServerName, ToolId, Trust};
use upstream::Fleet;

use super::Engine;
use super::live_pins::{LivePins, PinStanding};
use crate::pins::Pins;

/// The catalog in use.
#[derive(Debug)]
pub(super) struct LiveCatalog {
    current: ArcSwap<Catalog>,
    pins: LivePins,
    /// One rebuild at a time.
    rebuilding: Mutex<()>,
}

/// All tools at one moment.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    version: Version,
    pub snapshot: Arc<Snapshot>,
    known: HashMap<ToolId, ToolState>,
}

/// What a catalog was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Version {
    /// The count of the fleet's changes.
    fleet: u64,
    /// The count of what the operator did to pins.
    pins: u64,
}

/// What is known of a tool besides its definition.
#[derive(Debug, Clone)]
pub(super) struct ToolState {
    /// Held so that its address says whether a definition is the one that is meant.
    definition: Arc<ToolDefinition>,
    pub fingerprint: Fingerprint,
    pub audit: Arc<Audit>,
    pub standing: PinStanding,
}

/// Rebuilds in the background whenever the fleet changes, so that a search rarely has to.
pub(super) async fn follow_fleet(engine: Weak<Engine>) {
    let Some(mut changes) = engine.upgrade().map(|engine| engine.fleet.changes()) else {
        return;
    };
    while changes.changed().await.is_ok() {
        let Some(engine) = engine.upgrade() else {
            return;
        };
        engine.catalog.current(&engine.fleet);
        engine.settle_pins().await;
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

// === impl LiveCatalog ===

impl LiveCatalog {
    pub(super) fn new(pins: Pins) -> Self {
        Self {
            current: ArcSwap::default(),
            pins: LivePins::new(pins),
            rebuilding: Mutex::new(()),
        }
    }

    pub(super) fn pins(&self) -> &LivePins {
        &self.pins
    }

    /// The catalog of the fleet as it is now: whoever saw an upstream become ready finds its
    /// tools. Only what changed is analysed, audited and held against its pin again.
    pub(super) fn current(&self, fleet: &Fleet) -> Arc<Catalog> {
        let current = self.current.load_full();
        if current.version == self.version(fleet) {
            return current;
        }
        let _one_at_a_time = self
            .rebuilding
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // Read before the upstreams are, so that a change in between leads to another rebuild.
        let version = self.version(fleet);
        let current = self.current.load_full();
        if current.version == version {
            return current;
        }
        let snapshot = current.snapshot.rebuild(tools_of(fleet));
        let known = self.look_at(&snapshot, &current, fleet);
        let next = Arc::new(Catalog {
            version,
            snapshot: Arc::new(snapshot),
            known,
        });
        self.current.store(Arc::clone(&next));
        next
    }

    /// What is known of a tool as it was announced, be it a moment ago.
    pub(super) fn known(&self, fleet: &Fleet, tool: &ToolDefinition) -> ToolState {
        match self.current(fleet).known.get(&tool.id) {
            Some(known) if std::ptr::eq(Arc::as_ptr(&known.definition), tool) => known.clone(),
            _ => {
                let mut known = ToolState::new(&Arc::new(tool.clone()));
                known.standing = self.pins.standing(&known.announced());
                known
            }
        }
    }

    fn look_at(
        &self,
        snapshot: &Snapshot,
        before: &Catalog,
        fleet: &Fleet,
    ) -> HashMap<ToolId, ToolState> {
        let trust: HashMap<ServerName, Trust> = fleet
            .all()
            .iter()
            .map(|upstream| (upstream.name().clone(), upstream.config().trust))
            .collect();
        let same_pins = before.version.pins == self.pins.revision();
        let tools = snapshot.tools().map(|entry| {
            let id = entry.tool.id.clone();
            let mut known = match before.known.get(&id) {
                Some(known) if Arc::ptr_eq(&known.definition, entry.tool) => {
                    if same_pins {
                        return (id, known.clone());
                    }
                    known.clone()
                }
                _ => ToolState::new(entry.tool),
            };
            let trust = trust.get(id.server()).copied().unwrap_or_default();
            known.standing = self.pins.observe(&known.announced(), trust);
            (id, known)
        });
        tools.collect()
    }

    fn version(&self, fleet: &Fleet) -> Version {
        Version {
            fleet: fleet.version(),
            pins: self.pins.revision(),
        }
    }
}

// === impl ToolState ===

impl ToolState {
    fn new(tool: &Arc<ToolDefinition>) -> Self {
        Self {
            definition: Arc::clone(tool),
            fingerprint: Fingerprint::of(&tool.raw),
            audit: Arc::new(audit_tier(&facts(tool))),
            standing: PinStanding::default(),
        }
    }

    pub(super) fn announced(&self) -> Announced<'_> {
        Announced {
            tool: &self.definition,
            fingerprint: self.fingerprint,
            audited: self.audit.tier,
        }
    }
}

fn tools_of(fleet: &Fleet) -> Vec<ServerTools> {
    let upstreams = fleet.all().into_iter();
    upstreams
        .map(|upstream| {
            let status = upstream.status();
            ServerTools {
                server: upstream.name().clone(),
                tools: Arc::clone(status.tools.all()),
                stale: status.stale,
            }
        })
        .collect()
}
