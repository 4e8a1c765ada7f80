//! What is behind every endpoint: the upstreams, the catalog of their tools, and the one path on which
//! tools are searched and called.

mod audit;
mod call;
mod describe;
mod flood;
mod in_force;
mod owner;
mod quarantine;
mod recording;
mod redecide;
mod request;
mod search;
mod simulate;
mod tools;
mod under_way;
mod view;

use std::sync::Arc;
use std::time::{Duration, Instant};

use activity::Activity;
use arc_swap::ArcSwap;
use catalog::suggest_servers;
use config::{Config, LoadError, Settings};
use flood::Flood;
use owner::{Command, Owner};
use policy::ServerName;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use upstream::{Fleet, LaunchContext, Upstream};

use crate::pins::Pins;

pub(crate) use audit::Audited;
pub(crate) use in_force::{InForce, ServerInForce};
pub(crate) use quarantine::{Approval, QuarantineError, ServerDrift};
pub use recording::Caller;
pub use request::CallRequest;
pub(crate) use search::{Detail, SearchError, SearchRequest, SearchResult};
pub(crate) use simulate::Simulation;
pub(crate) use tools::{ToolState, unavailable};
use under_way::UnderWay;
pub(crate) use view::ToolView;

/// How many commands may wait for the owner of what is in force.
const COMMANDS: usize = 16;
/// How long readers wait for the owner to publish a change. Making a snapshot of thousands of new tools
/// takes a fraction of a second, or a few on a machine that is busy.
const PUBLICATION: Duration = Duration::from_secs(10);

/// The running product, without its endpoints.
#[derive(Debug)]
pub struct Engine {
    /// Written by the owner task alone.
    in_force: ArcSwap<InForce>,
    /// Changes with every publication.
    published: watch::Sender<()>,
    commands: mpsc::Sender<Command>,
    fleet: Fleet,
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
        let (known_tools, files) = (pins.known_tools(), pins.files());
        let servers = pins.servers.into_iter();
        let all_pins = servers.map(|(server, pins)| (server, Arc::new(pins)));
        let (commands, asked) = mpsc::channel(COMMANDS);
        let in_force = InForce::first(Arc::clone(&config), all_pins.collect());
        let engine = Arc::new(Self {
            in_force: ArcSwap::from_pointee(in_force),
            published: watch::Sender::new(()),
            commands,
            fleet: Fleet::new(launch_context, &config.limits),
            activity,
            recording_changed: Notify::new(),
            under_way: UnderWay::default(),
            flood: Flood::new(&config.limits),
        });
        let servers = &config.mcp_servers;
        engine.fleet.apply_knowing(servers, known_tools).await;
        tokio::spawn(Owner::new(&engine, asked, files, pins.lost).run());
        engine
    }

    /// Makes the config file as it is now the config in force. None if the engine is stopping.
    pub(crate) async fn reload(&self, settings: Settings) -> Option<Result<(), LoadError>> {
        self.ask(|done| Command::Reload { settings, done }).await
    }

    /// Ends every upstream, and writes down what was learnt of their tools.
    pub async fn shutdown(&self) {
        self.fleet.shutdown().await;
        self.ask(|done| Command::Stop { done }).await;
        self.flood.end().await;
    }

    /// What was published last.
    pub(crate) fn in_force(&self) -> Arc<InForce> {
        self.in_force.load_full()
    }

    /// What is in force, with everything that the upstreams say now: a reader that saw an upstream
    /// become ready finds its tools.
    pub(crate) async fn current(&self) -> Arc<InForce> {
        self.once(|in_force| in_force.is_current(&self.fleet)).await
    }

    /// Waits until what is in force is as wanted or has been published twice: the second publication
    /// began after this call, so what it lacks is newer, and while upstreams start one after the
    /// other there is always something newer.
    async fn once(&self, is_wanted: impl Fn(&InForce) -> bool) -> Arc<InForce> {
        let mut published = self.published.subscribe();
        let waiting = async {
            for _ in 0..2 {
                if is_wanted(&self.in_force.load()) || published.changed().await.is_err() {
                    return;
                }
            }
        };
        if tokio::time::timeout(PUBLICATION, waiting).await.is_err() {
            tracing::warn!("the tools of an upstream are not published in time");
        }
        self.in_force()
    }

    /// Has the owner do something; none if it has ended.
    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Option<T> {
        let (done, answer) = oneshot::channel();
        self.commands.send(command(done)).await.ok()?;
        answer.await.ok()
    }

    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.in_force.load().config)
    }

    /// Waits until the config says something else about the activity log. Also returns for a change
    /// since it last returned; for one waiter only.
    pub(crate) async fn recording_changed(&self) {
        self.recording_changed.notified().await;
    }

    pub fn upstreams(&self) -> Vec<Arc<Upstream>> {
        self.fleet.all()
    }

    /// The upstream whose name is closest to `name`, whether its tools are known yet or not.
    pub(crate) fn similar_server(&self, name: &str) -> Option<ServerName> {
        let upstreams = self.fleet.all();
        let names = upstreams.iter().map(|upstream| upstream.name());
        suggest_servers(name, names).into_iter().next()
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
