//! Keeps the catalog, and what the auditor concludes of each tool, in step with the upstreams.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use arc_swap::ArcSwap;
use auditor::{Audit, ToolFacts, audit_tier};
use catalog::{ServerTools, Snapshot, ToolDefinition};
use policy::ToolId;
use upstream::Fleet;

use super::Engine;

/// The catalog in use.
#[derive(Debug, Default)]
pub(super) struct CatalogKeeper {
    current: ArcSwap<Catalog>,
    /// One rebuild at a time.
    rebuilding: Mutex<()>,
}

/// All tools at one moment.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    /// The count of the fleet's changes that this knows of.
    version: u64,
    pub snapshot: Arc<Snapshot>,
    audits: HashMap<ToolId, Audited>,
}

#[derive(Debug, Clone)]
struct Audited {
    /// Held so that its address says whether a definition is the one that was audited.
    definition: Arc<ToolDefinition>,
    audit: Arc<Audit>,
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
        annotations: tool.annotations.as_ref(),
    }
}

// === impl CatalogKeeper ===

impl CatalogKeeper {
    /// The catalog of the fleet as it is now: whoever saw an upstream become ready finds its
    /// tools. Only what changed is analysed and audited again.
    pub(super) fn current(&self, fleet: &Fleet) -> Arc<Catalog> {
        let current = self.current.load_full();
        if current.version == fleet.version() {
            return current;
        }
        let _one_at_a_time = self
            .rebuilding
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // Read before the upstreams are, so that a change in between leads to another rebuild.
        let version = fleet.version();
        let current = self.current.load_full();
        if current.version == version {
            return current;
        }
        let snapshot = current.snapshot.rebuild(tools_of(fleet));
        let audits = current.audits_for(&snapshot);
        let next = Arc::new(Catalog {
            version,
            snapshot: Arc::new(snapshot),
            audits,
        });
        self.current.store(Arc::clone(&next));
        next
    }
}

// === impl Catalog ===

impl Catalog {
    /// What the auditor concludes of a tool.
    pub(super) fn audit(&self, tool: &ToolDefinition) -> Arc<Audit> {
        match self.audits.get(&tool.id) {
            Some(known) if std::ptr::eq(Arc::as_ptr(&known.definition), tool) => {
                Arc::clone(&known.audit)
            }
            _ => Arc::new(audit_tier(&facts(tool))),
        }
    }

    fn audits_for(&self, snapshot: &Snapshot) -> HashMap<ToolId, Audited> {
        let audited = snapshot.tools().map(|entry| {
            let tool = entry.tool;
            let audited = Audited {
                definition: Arc::clone(tool),
                audit: self.audit(tool),
            };
            (tool.id.clone(), audited)
        });
        audited.collect()
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
