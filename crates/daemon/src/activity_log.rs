//! The activity log of a running process: opened, kept in step with the config, pruned, and told
//! what happens besides calls.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use activity::sqlite::{OpenError, SqliteOptions, SqliteStore};
use activity::{
    Activity, Durability, End, Missed, Outcome, Payloads, RecordType, RetentionPolicy, Settings,
    Source, Start,
};
use config::{Config, ConfigChange, Secret};
use policy::{Code, ServerName};
use redact::{RedactorError, SharedRedactor};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use upstream::{Fleet, State};

use crate::engine::Engine;
use crate::http::api_key_file;

const DIRECTORY: &str = "activity";

/// How long a process that comes and goes waits for another one to close the log.
const PATIENCE: Duration = Duration::from_secs(5);
const RETRY: Duration = Duration::from_millis(50);

/// The pause between two looks at what may be forgotten.
const PRUNE_EVERY: Duration = Duration::from_mins(10);

const SECONDS_A_DAY: u64 = 24 * 60 * 60;
const BYTES_A_MEGABYTE: u64 = 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum ActivityLogError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Redactor(#[from] RedactorError),
    #[error("opening the activity log was interrupted")]
    Interrupted(#[from] tokio::task::JoinError),
}

/// A log that is open for writing.
#[derive(Debug)]
pub(crate) struct OpenLog {
    pub activity: Activity,
    /// Where a damaged log was put, in whose place this one is.
    pub set_aside: Option<PathBuf>,
    /// Whether the index was not as it was written.
    pub index_rebuilt: bool,
    /// Whether the log's file was there, and nothing in it.
    pub was_empty: bool,
}

/// Opens the log in the data directory, waiting a little for another process to be done with it.
pub(crate) async fn open_activity(
    data_dir: &Path,
    config: &Config,
    redactor: &SharedRedactor,
) -> Result<OpenLog, ActivityLogError> {
    let settings = settings(config, redactor)?;
    let options = SqliteOptions {
        directory: data_dir.join(DIRECTORY),
        max_file_bytes: None,
    };
    survive_file_size_limit();
    let deadline = Instant::now() + PATIENCE;
    let (opened, took) = loop {
        let options = options.clone();
        let began = Instant::now();
        match tokio::task::spawn_blocking(move || SqliteStore::open(&options)).await? {
            Err(OpenError::InUse(_)) if Instant::now() < deadline => {
                tokio::time::sleep(RETRY).await;
            }
            opened => break (opened?, began.elapsed()),
        }
    };
    tracing::info!(took_ms = took.as_millis(), "activity log is open");
    if let Some(path) = &opened.moved_aside {
        tracing::error!(
            kept_as = %path.display(),
            "the activity log was damaged; it is kept aside and a new one is begun"
        );
    }
    if let Some(path) = &opened.backup {
        tracing::info!(backup = %path.display(), "the activity log was brought to a new layout");
    }
    if opened.interrupted > 0 {
        tracing::warn!(
            records = opened.interrupted,
            "calls were under way when mcpproxy last ended; they are marked as interrupted"
        );
    }
    if opened.rebuilt {
        tracing::warn!(
            "the index of the activity log was not as it was written and has been rebuilt; \
             `mcpproxy activity verify` says whether the records are"
        );
    }
    if opened.was_empty {
        tracing::warn!(
            "the file of the activity log was there and empty; a new log is begun in it"
        );
    }
    let activity = Activity::new(Arc::new(opened.store), settings);
    activity.limit(retention(config));
    Ok(OpenLog {
        activity,
        set_aside: opened.moved_aside,
        index_rebuilt: opened.rebuilt,
        was_empty: opened.was_empty,
    })
}

/// Makes a write beyond the limit on the size of a file an error like that of a full disk, instead
/// of the end of the process. A listener for the signal is enough.
fn survive_file_size_limit() {
    if let Err(error) = signal(SignalKind::from_raw(Signal::XFSZ.as_raw())) {
        tracing::warn!(%error, "a file that grows too large would end the process");
    }
}

/// A log that is only read.
#[derive(Debug)]
pub struct ReadOnlyLog {
    pub activity: Activity,
    /// Entries that are not shown before the next start.
    pub waiting: u64,
}

/// Opens the log for reading beside whatever process writes it. Where there is none, it is empty,
/// and none is created.
pub fn read_activity(data_dir: &Path, config: &Config) -> Result<ReadOnlyLog, ActivityLogError> {
    let directory = data_dir.join(DIRECTORY);
    let (store, waiting) = match SqliteStore::open_read_only(&directory) {
        Ok(opened) => (opened.store, opened.waiting),
        Err(OpenError::Missing(_)) => (SqliteStore::nothing_in(&directory)?, 0),
        Err(error) => return Err(error.into()),
    };
    Ok(ReadOnlyLog {
        activity: Activity::new(
            Arc::new(store),
            settings(config, &SharedRedactor::default())?,
        ),
        waiting,
    })
}

/// Strikes out every secret of the config, and the key that was generated at the first start.
pub(crate) fn redactor_for(config: &Config, data_dir: &Path) -> SharedRedactor {
    let redactor = SharedRedactor::default();
    redactor.learn(api_key_file(data_dir));
    learn_secrets(&redactor, config);
    redactor
}

/// Adds the secrets of a config. Those of earlier ones stay: calls that were given them may be
/// under way.
fn learn_secrets(redactor: &SharedRedactor, config: &Config) {
    let environment = |name: &str| std::env::var(name).ok();
    let servers = config.mcp_servers.iter();
    let secrets: Vec<Secret> = servers
        .flat_map(|server| server.secrets(&environment))
        .chain(config.api_key.clone())
        .collect();
    redactor.learn(secrets.iter().map(Secret::expose));
}

/// What the config says about recording.
fn settings(config: &Config, redactor: &SharedRedactor) -> Result<Settings, RedactorError> {
    Ok(Settings {
        redactor: redactor.current()?,
        max_response_bytes: config.activity.max_response_bytes,
        max_argument_bytes: config.activity.max_argument_bytes,
        payloads: match config.activity.payloads {
            config::Payloads::Full => Payloads::Full,
            config::Payloads::None => Payloads::None,
        },
    })
}

fn retention(config: &Config) -> RetentionPolicy {
    let limit = |number: u64| (number > 0).then_some(number);
    let days = limit(config.activity.retention_days.into());
    RetentionPolicy {
        max_age: days.map(|days| Duration::from_secs(days * SECONDS_A_DAY)),
        max_count: limit(config.activity.max_records),
        max_bytes: limit(config.activity.max_size_mb).map(|size| size * BYTES_A_MEGABYTE),
    }
}

/// Prunes expired records periodically and whenever the settings change; runs until aborted. The log
/// itself enforces its limits on number and size while it grows.
pub(crate) async fn prune_regularly(engine: Arc<Engine>) {
    loop {
        match engine.activity().prune(retention(&engine.config())).await {
            Ok(pruned) if pruned.records > 0 => {
                tracing::info!(
                    records = pruned.records,
                    released_bytes = pruned.released_bytes,
                    "activity pruned"
                );
            }
            Ok(_) => {}
            Err(error) => tracing::error!(%error, "activity could not be pruned"),
        }
        // An operator who keeps less from now on waits for it, so this is soon enough either way.
        let _ = tokio::time::timeout(PRUNE_EVERY, engine.recording_changed()).await;
    }
}

/// Records how upstreams come and go, for as long as it is let run.
pub(crate) async fn record_server_changes(engine: Arc<Engine>) {
    let mut changes = engine.fleet().changes();
    // One that is quick may be ready already; one that is switched off has not changed.
    let mut known = states(engine.fleet());
    known.retain(|_, (state, _)| *state == State::Disabled.as_str());
    loop {
        let now = states(engine.fleet());
        for (server, (state, error)) in &now {
            let before = known.get(server).map(|(state, _)| *state);
            // Every start passes through connecting; where it leads is what matters.
            if before != Some(*state) && *state != "connecting" {
                let change = json!({"state": state, "before": before, "error": error});
                let outcome = match error {
                    None => Outcome::Success,
                    Some(message) => Outcome::Error {
                        code: Code::ServerUnavailable.as_str(),
                        message,
                    },
                };
                record_server(engine.activity(), server, &change, outcome).await;
            }
        }
        for server in known.keys().filter(|server| !now.contains_key(*server)) {
            let change = json!({"state": "removed"});
            record_server(engine.activity(), server, &change, Outcome::Success).await;
        }
        known = now;
        if changes.changed().await.is_err() {
            return;
        }
    }
}

type States = BTreeMap<ServerName, (&'static str, Option<String>)>;

fn states(fleet: &Fleet) -> States {
    let upstreams = fleet.all().into_iter();
    upstreams
        .map(|upstream| {
            let status = upstream.status();
            let error = status
                .state
                .failure()
                .map(|failure| failure.message.clone());
            (upstream.name().clone(), (status.state.as_str(), error))
        })
        .collect()
}

/// Applies a changed config to the log, and records that it changed.
pub(crate) async fn record_config_change(engine: &Engine, old: &Config, new: &Config) {
    let activity = engine.activity();
    let redactor = engine.fleet().redactor();
    learn_secrets(redactor, new);
    match settings(new, redactor) {
        Ok(settings) => activity.reconfigure(settings),
        Err(error) => tracing::error!(%error, "the activity log keeps its old settings"),
    }
    activity.limit(retention(new));
    let change = ConfigChange::between(old, new);
    let names = |names: Vec<&ServerName>| -> Vec<String> {
        names.into_iter().map(ToString::to_string).collect()
    };
    let change = json!({
        "servers_added": names(change.servers_added.iter().map(|server| &server.name).collect()),
        "servers_removed": names(change.servers_removed.iter().collect()),
        "servers_changed": names(change.servers_changed.iter().map(|it| &it.server.name).collect()),
        "policy_changed": change.policy_changed,
        "auth_changed": change.auth_changed,
        "activity_changed": change.activity_changed,
    });
    let start = Start::new(RecordType::ConfigChange, Source::Api);
    record(activity, start, &change, Outcome::Success).await;
}

/// Records that the daemon started, and where the log is that this one replaces.
pub(crate) async fn record_started(log: &OpenLog) {
    let mut change = system_event("started");
    if let Some(path) = &log.set_aside {
        let name = path.file_name().unwrap_or(path.as_os_str());
        change["damaged_log_kept_as"] = name.to_string_lossy().into();
    }
    if log.index_rebuilt {
        change["index_rebuilt"] = true.into();
    }
    if log.was_empty {
        change["log_file_was_empty"] = true.into();
    }
    record_system(&log.activity, &change).await;
}

pub(crate) async fn record_stopped(activity: &Activity) {
    record_system(activity, &system_event("stopped")).await;
}

async fn record_system(activity: &Activity, change: &Value) {
    let start = Start::new(RecordType::System, Source::Api);
    record(activity, start, change, Outcome::Success).await;
}

fn system_event(event: &'static str) -> Value {
    let version = env!("CARGO_PKG_VERSION");
    json!({"event": event, "version": version, "pid": std::process::id()})
}

async fn record_server(
    activity: &Activity,
    server: &ServerName,
    change: &Value,
    outcome: Outcome<'_>,
) {
    let start = Start {
        server_name: Some(server.as_str()),
        ..Start::new(RecordType::ServerChange, Source::Api)
    };
    record(activity, start, change, outcome).await;
}

async fn record(activity: &Activity, start: Start<'_>, change: &Value, outcome: Outcome<'_>) {
    let change = change.to_string();
    let record_type = start.record_type;
    let start = Start {
        arguments: Some(&change),
        ..start
    };
    let end = End::new(outcome, Duration::ZERO);
    if let Err(error) = activity.record(start, end, Durability::Written).await {
        activity.missed(Missed::Change);
        tracing::error!(%error, record_type = %record_type, "a change is not recorded");
    }
}
