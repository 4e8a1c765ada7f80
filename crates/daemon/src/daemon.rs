//! The running service: an engine, its endpoints, and the config file it follows.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use config::{Config, ConfigWatcher, Loaded, Settings};
use platform::Watchdog;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use upstream::{EraMemory, LaunchContext};

use crate::activity_log::{
    ActivityLogError, open_activity, prune_regularly, record_server_changes, record_started,
    record_stopped, redactor_for,
};
use crate::config_editor::ConfigEditor;
use crate::data_dir::{DataDir, DataDirError, Lock};
use crate::engine::Engine;
use crate::http::{ApiKey, ApiKeyError, ListenError, Listeners, Routes, Server, router};
use crate::pins::{Pins, PinsError};
use crate::started_by::StartedBy;

/// How often a daemon in the background checks whether a client uses it.
const LOOK_FOR_USE: Duration = Duration::from_millis(500);
/// How long calls that were interrupted have until they are recorded and answered.
const ANSWERING: Duration = Duration::from_secs(1);
/// How long connections have until the answers they give are written.
const CLOSING: Duration = Duration::from_secs(1);
/// How long upstreams have to end. Processes that are left over end with the daemon.
const UPSTREAMS: Duration = Duration::from_secs(3);
/// How long the log may take to be closed. What is not in it by then is found at the next start.
const LOG: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    #[error(transparent)]
    Chronicle(#[from] ActivityLogError),
    #[error(transparent)]
    Pins(#[from] PinsError),
    #[error(transparent)]
    ApiKey(#[from] ApiKeyError),
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error("the address in use is not known")]
    Address(#[source] io::Error),
}

/// A daemon that is bound and whose upstreams are being started.
#[derive(Debug)]
pub struct Daemon {
    engine: Arc<Engine>,
    routes: Routes,
    listeners: Listeners,
    watcher: ConfigWatcher,
    settings: Settings,
    address: SocketAddr,
    started_by: StartedBy,
    _lock: Lock,
}

// === impl Daemon ===

impl Daemon {
    /// Binds the addresses and sets the upstreams going, without waiting for any of them.
    pub async fn start(
        settings: Settings,
        loaded: Loaded,
        watchdog: Watchdog,
        started_by: StartedBy,
    ) -> Result<Self, StartError> {
        let data_dir = DataDir::prepare(&settings.data_dir(&loaded.config))?;
        let lock = data_dir.lock().await?;
        let api_key = ApiKey::load_or_create(loaded.config.api_key.as_ref(), data_dir.path())?;
        let socket = DataDir::socket(data_dir.path());
        let listeners = if started_by.is_background() {
            Listeners::bind_somewhere(loaded.config.listen, &socket).await?
        } else {
            Listeners::bind(loaded.config.listen, &socket).await?
        };
        let address = listeners.address().map_err(StartError::Address)?;
        let config = Arc::new(loaded.config.clone());
        // Before the log, which says that the daemon started.
        let pins = Pins::open(data_dir.path())?;
        let launch_context = launch_context(&data_dir, watchdog, &config);
        let log = open_activity(data_dir.path(), &config, &launch_context.redactor).await?;
        record_started(&log).await;
        let engine = Engine::start(config, launch_context, log.activity, pins).await;
        Ok(Self {
            routes: router(
                Arc::clone(&engine),
                api_key,
                address,
                started_by.clone(),
                ConfigEditor::new(settings.clone()),
            ),
            engine,
            listeners,
            watcher: ConfigWatcher::start(settings.clone(), loaded),
            settings,
            address,
            started_by,
            _lock: lock,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Serves until told to stop, then ends within `shutdown_grace` and a few seconds, whatever
    /// clients and upstreams do.
    pub async fn run(self, stop: CancellationToken) {
        let mut background = JoinSet::new();
        background.spawn(follow_config(
            Arc::clone(&self.engine),
            self.watcher,
            self.settings,
        ));
        background.spawn(record_server_changes(Arc::clone(&self.engine)));
        background.spawn(prune_regularly(Arc::clone(&self.engine)));
        let limits = {
            let engine = Arc::clone(&self.engine);
            move || engine.config().limits
        };
        let server = self.listeners.serve(&self.routes.dispatch, limits);
        let idle = async {
            if self.started_by.is_background() {
                unused(&server, &self.engine).await;
            } else {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.routes.stop_wanted.cancelled() => {}
            () = idle => {}
        }
        server.refuse_clients();
        background.shutdown().await;
        end_calls(&self.engine, &self.routes.draining).await;
        self.routes.stopping.cancel();
        self.routes.endpoints.end_all_sessions();
        let upstreams = timeout(UPSTREAMS, self.engine.shutdown());
        let ((), ended) = tokio::join!(server.close(CLOSING), upstreams);
        if ended.is_err() {
            tracing::warn!("upstreams that were slow to end are killed with the daemon");
        }
        let activity = self.engine.activity();
        let closing = timeout(LOG, async {
            record_stopped(activity).await;
            activity.close().await
        });
        match closing.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::error!(%error, "the activity log was not closed in order");
            }
            Err(_) => tracing::error!("the activity log was not closed in time"),
        }
    }
}

/// Returns when no client has been connected for as long as `exit_when_idle` says.
async fn unused(server: &Server, engine: &Engine) {
    let mut seen = server.use_count();
    let mut since = Instant::now();
    loop {
        sleep(LOOK_FOR_USE).await;
        let now = server.use_count();
        if now != seen || server.is_in_use() {
            (seen, since) = (now, Instant::now());
        }
        let patience = engine.config().exit_when_idle;
        if patience.is_some_and(|patience| since.elapsed() >= patience) {
            return tracing::info!(
                "no client has connected for {:?} (exit_when_idle), so the daemon ends",
                since.elapsed()
            );
        }
    }
}

/// Begins no request any more, and gives those that are under way their time. Those that are open
/// then are answered with an error and recorded as interrupted.
async fn end_calls(engine: &Engine, draining: &CancellationToken) {
    draining.cancel();
    let under_way = engine.under_way();
    let grace = engine.config().shutdown_grace;
    if timeout(grace, under_way.ended()).await.is_ok() {
        return;
    }
    tracing::warn!("calls are still under way after {grace:?} (shutdown_grace), and interrupted");
    under_way.interrupt();
    if timeout(ANSWERING, under_way.ended()).await.is_err() {
        tracing::warn!("some interrupted calls are not answered");
    }
}

/// What upstreams of a process with this data directory are started with.
pub fn launch_context(data_dir: &DataDir, watchdog: Watchdog, config: &Config) -> LaunchContext {
    LaunchContext {
        redactor: redactor_for(config, data_dir.path()),
        watchdog,
        log_dir: Some(data_dir.logs()),
        environment: |name| std::env::var(name).ok(),
        eras: EraMemory::at(&data_dir.eras()),
    }
}

/// Has the config file reloaded whenever the watcher says that it changed.
async fn follow_config(engine: Arc<Engine>, watcher: ConfigWatcher, settings: Settings) {
    let mut configs = watcher.config();
    let mut reports = watcher.report();
    loop {
        tokio::select! {
            changed = configs.changed() => {
                if changed.is_err() {
                    return;
                }
                // An error is in the report of the watcher, too.
                let _ = engine.reload(settings.clone()).await;
            }
            changed = reports.changed() => {
                if changed.is_err() {
                    return;
                }
                let report = reports.borrow_and_update().clone();
                if let Some(error) = report.error {
                    tracing::error!(%error, "the config file is not taken over; the last good one stays in force");
                }
                for warning in report.warnings.iter() {
                    tracing::warn!("{warning}");
                }
            }
        }
    }
}
