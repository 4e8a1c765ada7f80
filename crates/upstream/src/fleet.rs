//! All upstreams, kept in step with the config.

use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use catalog::ToolDefinition;
use config::{Limits, Secret, ServerConfig};
use futures_util::future::join_all;
use platform::Endings;
use policy::ServerName;
use redact::SharedRedactor;
use tokio::sync::{Mutex, watch};
use tokio_util::task::TaskTracker;

use crate::backoff::Retries;
use crate::client::FleetListener;
use crate::connect::LaunchContext;
use crate::handle::{Shared, Upstream};
use crate::state::Status;

/// Set once, when there is a listener.
pub(crate) type SharedAudience = Arc<OnceLock<Arc<dyn FleetListener>>>;

/// Tools that servers are known to have had, by server.
pub type KnownTools = BTreeMap<ServerName, Vec<Arc<ToolDefinition>>>;

/// How long all upstreams together may take to end. Each takes less, whatever it does.
const SHUTDOWN: Duration = Endings::LONGEST.saturating_add(Duration::from_millis(400));

type ByName = BTreeMap<ServerName, Arc<Upstream>>;

#[derive(Debug)]
pub struct Fleet {
    launch_context: LaunchContext,
    limits: Limits,
    upstreams: ArcSwap<ByName>,
    /// What upstreams share, with a count that goes up whenever any status changes, or there is
    /// one upstream more or less.
    shared: Shared,
    /// One change of the fleet at a time.
    applying: Mutex<()>,
    /// Upstreams that were taken out and are still ending.
    leaving: TaskTracker,
    left_over: LeftOver,
}

/// The upstreams that are ending, for those who ask.
type LeftOver = Arc<std::sync::Mutex<Vec<Arc<Upstream>>>>;

// === impl Fleet ===

impl Fleet {
    pub fn new(launch_context: LaunchContext, limits: &Limits) -> Self {
        Self {
            launch_context,
            limits: *limits,
            upstreams: ArcSwap::default(),
            shared: Shared::new(),
            applying: Mutex::new(()),
            leaving: TaskTracker::new(),
            left_over: LeftOver::default(),
        }
    }

    pub fn get(&self, name: &ServerName) -> Option<Arc<Upstream>> {
        self.upstreams.load().get(name).cloned()
    }

    /// An upstream that was taken out, switched off or replaced and has not ended yet.
    pub fn ending(&self, name: &ServerName) -> Option<Arc<Upstream>> {
        let left_over = lock(&self.left_over);
        let ending = left_over.iter().find(|upstream| upstream.name() == name);
        ending.cloned()
    }

    /// All upstreams, by name.
    pub fn all(&self) -> Vec<Arc<Upstream>> {
        self.upstreams.load().values().cloned().collect()
    }

    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changed.subscribe()
    }

    /// Has what upstreams say to nobody in particular heard. The first one to ask is heard from
    /// then on.
    pub fn announce_to(&self, audience: Arc<dyn FleetListener>) {
        if self.shared.audience.set(audience).is_err() {
            tracing::error!("the fleet has an audience already");
        }
    }

    /// Strikes out the secrets of all servers, also of those that were here before.
    pub fn redactor(&self) -> &SharedRedactor {
        &self.launch_context.redactor
    }

    /// Makes the fleet what the config says. Upstreams whose entry did not change are not touched;
    /// nothing here waits for a server.
    pub async fn apply(&self, servers: &[ServerConfig]) {
        self.apply_knowing(servers, BTreeMap::new()).await;
    }

    /// Like [`Fleet::apply`], with tools that servers are known to have had. They count as stale
    /// until their server has listed its tools.
    pub async fn apply_knowing(&self, servers: &[ServerConfig], mut known_tools: KnownTools) {
        let _one_at_a_time = self.applying.lock().await;
        self.learn_secrets(servers);
        let mut old = ByName::clone(&self.upstreams.load());
        let mut new = ByName::new();
        for server in servers {
            let upstream = match old.remove(&server.name) {
                Some(running) if running.config() == server => running,
                Some(running) if running.config().keeps_connection(server) => {
                    Arc::new(running.with_limits(server.clone()))
                }
                outdated => {
                    if let Some(outdated) = outdated {
                        self.retire(outdated);
                    }
                    let known_tools = known_tools.remove(&server.name).unwrap_or_default();
                    Arc::new(Upstream::start(
                        server.clone(),
                        self.launch_context.clone(),
                        &self.limits,
                        self.shared.clone(),
                        known_tools,
                    ))
                }
            };
            new.insert(server.name.clone(), upstream);
        }
        for removed in old.into_values() {
            self.retire(removed);
        }
        self.upstreams.store(Arc::new(new));
        self.shared.changed.send_modify(|count| *count += 1);
    }

    /// Connects to a server that is not in the fleet, lists its tools and lets it go again.
    pub async fn try_out(&self, server: ServerConfig, deadline: Instant) -> Arc<Status> {
        let launch_context = LaunchContext {
            log_dir: None,
            ..self.launch_context.clone()
        };
        let server = ServerConfig {
            enabled: true,
            ..server
        };
        self.learn_secrets(std::slice::from_ref(&server));
        let upstream = Upstream::start(
            server,
            launch_context,
            &self.limits,
            Shared::new(),
            Vec::new(),
        );
        let status = upstream.settled(deadline).await;
        upstream.stop().await;
        status
    }

    /// Ends every upstream, all at once, and waits until their processes are gone. However they
    /// behave, that takes a few seconds at most.
    pub async fn shutdown(&self) {
        let _one_at_a_time = self.applying.lock().await;
        let all = self.upstreams.swap(Arc::default());
        self.leaving.close();
        let ending = async {
            join_all(all.values().map(|upstream| upstream.stop())).await;
            self.leaving.wait().await;
        };
        if tokio::time::timeout(SHUTDOWN, ending).await.is_err() {
            tracing::warn!("some upstreams have not ended in time; they are killed");
        }
    }

    /// Has the secrets of these servers struck out before any of them is started.
    fn learn_secrets(&self, servers: &[ServerConfig]) {
        let lookup = self.launch_context.environment;
        let secrets = servers.iter().flat_map(|server| server.secrets(&lookup));
        let secrets: Vec<Secret> = secrets.collect();
        self.redactor().learn(secrets.iter().map(Secret::expose));
    }

    fn retire(&self, upstream: Arc<Upstream>) {
        let (left_over, changed) = (Arc::clone(&self.left_over), self.shared.changed.clone());
        lock(&left_over).push(Arc::clone(&upstream));
        self.leaving.spawn(async move {
            upstream.stop().await;
            lock(&left_over).retain(|other| !Arc::ptr_eq(other, &upstream));
            changed.send_modify(|count| *count += 1);
        });
    }
}

fn lock(left_over: &LeftOver) -> MutexGuard<'_, Vec<Arc<Upstream>>> {
    left_over.lock().unwrap_or_else(PoisonError::into_inner)
}

// === impl Shared ===

impl Shared {
    fn new() -> Self {
        Self {
            changed: watch::Sender::new(0),
            audience: SharedAudience::default(),
            retries: Arc::<Retries>::default(),
        }
    }
}
