//! What is behind every endpoint: the upstreams, the catalog of their tools, and the one path on which
//! tools are searched and called.

mod arguments;
mod audit;
mod call;
mod describe;
mod flood;
mod live_catalog;
mod live_pins;
mod locate;
mod quarantine;
mod recording;
mod redecide;
mod search;
mod simulate;
mod under_way;
mod view;

use std::sync::Arc;
use std::time::Instant;

use activity::Activity;
use arc_swap::ArcSwap;
use catalog::Snapshot;
use config::Config;
use flood::Flood;
use live_catalog::LiveCatalog;
use tokio::sync::Notify;
use upstream::{Fleet, LaunchContext, Upstream};

use crate::pins::Pins;

pub use arguments::CallRequest;
pub(crate) use audit::Audited;
pub(crate) use locate::unavailable;
pub(crate) use quarantine::{Approval, QuarantineError, ServerDrift};
pub use recording::Caller;
pub(crate) use search::{Detail, SearchError, SearchRequest, SearchResult};
pub(crate) use simulate::Simulation;
use under_way::UnderWay;
pub(crate) use view::ToolView;

/// The running product, without its endpoints.
#[derive(Debug)]
pub struct Engine {
    config: ArcSwap<Config>,
    fleet: Fleet,
    catalog: LiveCatalog,
    activity: Activity,
    recording_changed: Notify,
    under_way: UnderWay,
    flood: Flood,
}

// === impl Engine ===

impl Engine {
    /// Starts every upstream of the config and returns without waiting for any of them.
    pub async fn start(
        config: Arc<Config>,
        launch_context: LaunchContext,
        activity: Activity,
        pins: Pins,
    ) -> Arc<Self> {
        let known_tools = pins.known_tools();
        let engine = Arc::new(Self {
            config: ArcSwap::new(Arc::clone(&config)),
            fleet: Fleet::new(launch_context, &config.limits),
            catalog: LiveCatalog::new(pins),
            activity,
            recording_changed: Notify::new(),
            under_way: UnderWay::default(),
            flood: Flood::new(&config.limits),
        });
        tokio::spawn(live_catalog::follow_fleet(Arc::downgrade(&engine)));
        let servers = &config.mcp_servers;
        engine.fleet.apply_knowing(servers, known_tools).await;
        engine
    }

    /// Takes over a changed config. Only what the change touches is touched.
    pub async fn apply(&self, config: Arc<Config>) {
        let old = self.config.swap(Arc::clone(&config));
        if old.activity != config.activity {
            self.recording_changed.notify_one();
        }
        self.fleet.apply(&config.mcp_servers).await;
    }

    /// Ends every upstream, and writes down what was learnt of their tools.
    pub async fn shutdown(&self) {
        self.fleet.shutdown().await;
        self.settle_pins().await;
        self.flood.end().await;
    }

    pub fn config(&self) -> Arc<Config> {
        self.config.load_full()
    }

    /// Waits until the config says something else about the activity log. For one who waits: it
    /// also returns for a change that came since it last did.
    pub(crate) async fn recording_changed(&self) {
        self.recording_changed.notified().await;
    }

    /// All tools that are known now.
    pub fn catalog(&self) -> Arc<Snapshot> {
        Arc::clone(&self.catalog.current(&self.fleet).snapshot)
    }

    pub fn upstreams(&self) -> Vec<Arc<Upstream>> {
        self.fleet.all()
    }

    /// What happened so far.
    pub fn activity(&self) -> &Activity {
        &self.activity
    }

    /// The requests that are under way, whichever way they came in.
    pub(crate) fn under_way(&self) -> &UnderWay {
        &self.under_way
    }

    pub fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// Waits until no upstream is being connected any more, or the deadline has passed. For
    /// callers that come and go, such as a command without a daemon.
    pub async fn settled(&self, deadline: Instant) {
        for upstream in self.fleet.all() {
            upstream.settled(deadline).await;
        }
    }
}
