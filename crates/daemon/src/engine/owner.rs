//! The owner of what is in force: the one task that applies changes of config, listings and pins, one
//! after the other, and publishes the next snapshot.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};

use catalog::{Drift, ServerPins};
use config::{Config, ConfigChange, LoadError, Settings};
use policy::{ServerName, ToolId, Trust};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, spawn_blocking};

use super::Engine;
use super::in_force::{AllPins, InForce, Inputs};
use super::quarantine::{QuarantineError, ServerDrift};
use crate::activity_log::record_config_change;
use crate::pins::{PinFiles, PinsError};

/// What the owner is asked to do. Each is answered once its effect is published.
pub(super) enum Command {
    /// Loads the config file as it is now and applies it.
    Reload {
        settings: Settings,
        done: oneshot::Sender<Result<(), LoadError>>,
    },
    /// Changes the pins of one upstream on behalf of the operator.
    ChangePins {
        server: ServerName,
        change: PinChange,
        done: oneshot::Sender<Result<ServerDrift, QuarantineError>>,
    },
    /// Writes what is not on the disk yet, and ends the task.
    Stop { done: oneshot::Sender<()> },
}

/// Changes pins in the light of what is in force, and returns what it was about.
pub(super) type PinChange =
    Box<dyn FnOnce(&InForce, &mut ServerPins) -> Result<ServerDrift, QuarantineError> + Send>;

/// The state of the task, beside the snapshot that it published last.
pub(super) struct Owner {
    engine: Weak<Engine>,
    commands: mpsc::Receiver<Command>,
    files: PinFiles,
    /// Upstreams whose pins were lost and that have listed no tools since.
    lost: BTreeSet<ServerName>,
    /// Upstreams with pins that are not on the disk yet.
    unsaved: BTreeSet<ServerName>,
    /// The last change of each tool that is not in the log yet.
    unrecorded: BTreeMap<ToolId, (Drift, Trust)>,
    /// Writes to the log and the disk in the background; returns the upstreams whose pins could
    /// not be written.
    saving: Option<JoinHandle<BTreeSet<ServerName>>>,
}

enum Event {
    FleetChanged,
    Saved(BTreeSet<ServerName>),
    Asked(Command),
}

impl Owner {
    pub(super) fn new(
        engine: &Arc<Engine>,
        commands: mpsc::Receiver<Command>,
        files: PinFiles,
        lost: Vec<ServerName>,
    ) -> Self {
        Self {
            engine: Arc::downgrade(engine),
            commands,
            files,
            lost: lost.into_iter().collect(),
            unsaved: BTreeSet::new(),
            unrecorded: BTreeMap::new(),
            saving: None,
        }
    }

    /// Runs until the engine is stopped or dropped.
    pub(super) async fn run(mut self) {
        let Some(mut fleet) = self.engine.upgrade().map(|engine| engine.fleet.changes()) else {
            return;
        };
        // The listings of a fleet that changed before this task subscribed.
        fleet.mark_changed();
        loop {
            let event = tokio::select! {
                changed = fleet.changed() => changed.ok().map(|()| Event::FleetChanged),
                command = self.commands.recv() => command.map(Event::Asked),
                unwritten = finished(&mut self.saving) => Some(Event::Saved(unwritten)),
            };
            let (Some(event), Some(engine)) = (event, self.engine.upgrade()) else {
                return;
            };
            match event {
                Event::FleetChanged => self.refresh(&engine).await,
                Event::Saved(unwritten) => self.saved(&engine, unwritten),
                Event::Asked(Command::Stop { done }) => {
                    self.save_all(&engine).await;
                    // The receiver may have timed out; there is nothing left to tell it.
                    let _ = done.send(());
                    return;
                }
                Event::Asked(Command::Reload { settings, done }) => {
                    let _ = done.send(self.reload(&engine, settings).await);
                }
                Event::Asked(Command::ChangePins {
                    server,
                    change,
                    done,
                }) => {
                    let _ = done.send(self.change_pins(&engine, server, change).await);
                }
            }
        }
    }

    /// Publishes what the upstreams say now, if that is new.
    async fn refresh(&mut self, engine: &Arc<Engine>) {
        let in_force = engine.in_force();
        if !in_force.is_current(&engine.fleet) {
            let (config, pins) = (Arc::clone(&in_force.config), in_force.pins().clone());
            return self.publish(engine, config, pins).await;
        }
        // Waiting readers compare again: the fleet may be back at what was published.
        engine.published.send_modify(|()| ());
    }

    async fn publish(&mut self, engine: &Arc<Engine>, config: Arc<Config>, pins: AllPins) {
        let upstreams = engine.fleet.all().into_iter();
        let inputs = Inputs {
            config,
            upstreams: upstreams
                .map(|upstream| {
                    let status = upstream.status();
                    (upstream, status)
                })
                .collect(),
            pins,
            lost: self.lost.clone(),
        };
        let before = engine.in_force();
        let (next, observed) = match spawn_blocking(move || before.next(inputs)).await {
            Ok(next) => next,
            Err(error) => {
                tracing::error!(%error, "a change is not in force: making the snapshot failed");
                return;
            }
        };
        engine.in_force.store(Arc::new(next));
        engine.published.send_modify(|()| ());
        self.lost
            .retain(|server| !observed.changed.contains(server));
        self.unsaved.extend(observed.changed);
        self.unrecorded.extend(observed.drifts);
        self.save(engine);
    }

    async fn reload(&mut self, engine: &Arc<Engine>, settings: Settings) -> Result<(), LoadError> {
        // The owner loads the file itself, so that an older config never replaces a newer one.
        let config = match spawn_blocking(move || settings.load()).await {
            Ok(loaded) => Arc::new(loaded?.config),
            Err(error) => {
                tracing::error!(%error, "the config file is not loaded");
                return Ok(());
            }
        };
        let in_force = engine.in_force();
        let old = &in_force.config;
        if **old == *config {
            return Ok(());
        }
        tell(old, &config);
        record_config_change(engine, old, &config).await;
        engine.fleet.apply(&config.mcp_servers).await;
        let activity_changed = old.activity != config.activity;
        self.publish(engine, config, in_force.pins().clone()).await;
        if activity_changed {
            engine.recording_changed.notify_one();
        }
        Ok(())
    }

    /// The change counts once it is on the disk; if it cannot be written, nothing has changed.
    async fn change_pins(
        &mut self,
        engine: &Arc<Engine>,
        server: ServerName,
        change: PinChange,
    ) -> Result<ServerDrift, QuarantineError> {
        self.refresh(engine).await;
        // A write that has begun must not overtake this one.
        self.finish_saving().await;
        let in_force = engine.in_force();
        let mut pins = ServerPins::clone(&in_force.pins_of(&server));
        let drift = change(&in_force, &mut pins)?;
        let pins = Arc::new(pins);
        write(&self.files, &server, &pins).await?;
        self.unsaved.remove(&server);
        let mut all = in_force.pins().clone();
        all.insert(server, pins);
        let config = Arc::clone(&in_force.config);
        self.publish(engine, config, all).await;
        Ok(drift)
    }

    /// Records changes in the log and then writes the pins, in the background. In this order a crash may
    /// have a change recorded twice, but never lost.
    fn save(&mut self, engine: &Arc<Engine>) {
        if self.saving.is_some() || (self.unsaved.is_empty() && self.unrecorded.is_empty()) {
            return;
        }
        let drifts = std::mem::take(&mut self.unrecorded);
        let in_force = engine.in_force();
        let unsaved = std::mem::take(&mut self.unsaved).into_iter();
        let pins: Vec<_> = unsaved
            .map(|server| (in_force.pins_of(&server), server))
            .collect();
        let (engine, files) = (Arc::clone(engine), self.files.clone());
        self.saving = Some(tokio::spawn(async move {
            for (tool, (drift, trust)) in drifts {
                engine.record_drift(&tool, &drift, trust).await;
            }
            let mut unwritten = BTreeSet::new();
            for (pins, server) in pins {
                if let Err(error) = write(&files, &server, &pins).await {
                    let cause = std::error::Error::source(&error).map(ToString::to_string);
                    tracing::error!(%error, cause, "pins are not saved yet");
                    unwritten.insert(server);
                }
            }
            unwritten
        }));
    }

    /// Pins that could not be written are tried again with the next change.
    fn saved(&mut self, engine: &Arc<Engine>, unwritten: BTreeSet<ServerName>) {
        self.saving = None;
        self.save(engine);
        self.unsaved.extend(unwritten);
    }

    async fn finish_saving(&mut self) {
        if self.saving.is_some() {
            let unwritten = finished(&mut self.saving).await;
            self.saving = None;
            self.unsaved.extend(unwritten);
        }
    }

    async fn save_all(&mut self, engine: &Arc<Engine>) {
        self.finish_saving().await;
        self.save(engine);
        self.finish_saving().await;
    }
}

/// Waits for the writes that have begun; forever if there are none.
async fn finished(saving: &mut Option<JoinHandle<BTreeSet<ServerName>>>) -> BTreeSet<ServerName> {
    match saving {
        Some(saving) => saving.await.unwrap_or_default(),
        None => std::future::pending().await,
    }
}

async fn write(
    files: &PinFiles,
    server: &ServerName,
    pins: &Arc<ServerPins>,
) -> Result<(), PinsError> {
    let (files, name, pins) = (files.clone(), server.clone(), Arc::clone(pins));
    let writing = spawn_blocking(move || files.write(&name, &pins));
    writing.await.unwrap_or_else(|error| {
        Err(PinsError::Unusable {
            path: server.as_str().into(),
            source: std::io::Error::other(error),
        })
    })
}

fn tell(old: &Config, new: &Config) {
    let change = ConfigChange::between(old, new);
    tracing::info!(
        added = change.servers_added.len(),
        removed = change.servers_removed.len(),
        changed = change.servers_changed.len(),
        "config reloaded"
    );
    for setting in change.needs_restart {
        tracing::warn!(
            ?setting,
            "this setting takes effect when the daemon is started again"
        );
    }
}
