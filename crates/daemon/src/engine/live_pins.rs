//! Holds what the upstreams announce against the pins, and brings what came of it to the disk and
//! into the log.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use catalog::{Announced, Drift, ServerPins};
use policy::{Hold, PinnedTiers, ServerName, ToolId, Trust};

use super::Engine;
use crate::pins::{PinFiles, Pins, PinsError};

/// The pins in use.
#[derive(Debug)]
pub(super) struct LivePins {
    state: Mutex<State>,
    files: PinFiles,
    /// Counts what the operator does, which changes the standing of tools that did not change.
    revision: AtomicU64,
    /// One write at a time, so that a later one is never overtaken.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct State {
    servers: HashMap<ServerName, ServerPins>,
    /// Upstreams whose pins were lost; what they announce cannot be compared with anything.
    lost: BTreeSet<ServerName>,
    /// Upstreams with something that is not on the disk yet.
    unsaved: BTreeSet<ServerName>,
    /// The last change of each tool that is not in the log yet.
    unrecorded: BTreeMap<ToolId, (Drift, Trust)>,
}

/// What the pins say about a tool as it is announced.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PinStanding {
    pub hold: Option<Hold>,
    pub pinned: Option<PinnedTiers>,
}

impl LivePins {
    pub(super) fn new(pins: Pins) -> Self {
        Self {
            files: pins.files(),
            state: Mutex::new(State {
                servers: pins.servers,
                lost: pins.lost.into_iter().collect(),
                unsaved: BTreeSet::new(),
                unrecorded: BTreeMap::new(),
            }),
            revision: AtomicU64::new(0),
            writing: tokio::sync::Mutex::new(()),
        }
    }

    pub(super) fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// Compares a tool with its pin and remembers what is new about it.
    pub(super) fn observe(&self, announced: &Announced<'_>, trust: Trust) -> PinStanding {
        let mut state = self.state();
        let id = &announced.tool.id;
        let lost = state.lost.remove(id.server());
        let pins = state.servers.entry(id.server().clone()).or_default();
        if lost && trust == Trust::Pin {
            // Whatever was pinned, nobody can tell whether this is it.
            pins.quarantined = true;
        }
        let observation = pins.observe(announced, trust);
        let standing = standing(pins, announced);
        if observation.changed || lost {
            state.unsaved.insert(id.server().clone());
        }
        if let Some(drift) = observation.drift {
            state.unrecorded.insert(id.clone(), (drift, trust));
        }
        standing
    }

    /// What the pins say about a tool, without remembering anything.
    pub(super) fn standing(&self, announced: &Announced<'_>) -> PinStanding {
        let state = self.state();
        let pins = state.servers.get(announced.tool.id.server());
        pins.map(|pins| standing(pins, announced))
            .unwrap_or_default()
    }

    /// Looks at the pins of an upstream.
    pub(super) fn read<T>(&self, server: &ServerName, look: impl FnOnce(&ServerPins) -> T) -> T {
        let state = self.state();
        match state.servers.get(server) {
            Some(pins) => look(pins),
            None => look(&ServerPins::default()),
        }
    }

    /// Changes the pins of an upstream on behalf of the operator. When this returns the change is
    /// on the disk; if it cannot be written, there is none.
    pub(super) async fn change<T>(
        &self,
        server: &ServerName,
        change: impl FnOnce(&mut ServerPins) -> T,
    ) -> Result<T, PinsError> {
        let _one_at_a_time = self.writing.lock().await;
        let (outcome, text, before) = {
            let mut state = self.state();
            let pins = state.servers.entry(server.clone()).or_default();
            let before = pins.clone();
            let outcome = change(pins);
            (outcome, PinFiles::encode(server, pins), before)
        };
        let written = self.write(server, text).await;
        if let Err(error) = written {
            self.state().servers.insert(server.clone(), before);
            return Err(error);
        }
        self.revision.fetch_add(1, Ordering::AcqRel);
        Ok(outcome)
    }

    /// Writes what is new. What cannot be written is kept for the next time.
    async fn save(&self) {
        let _one_at_a_time = self.writing.lock().await;
        let unsaved = std::mem::take(&mut self.state().unsaved);
        for server in unsaved {
            let text = self.read(&server, |pins| PinFiles::encode(&server, pins));
            if let Err(error) = self.write(&server, text).await {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::error!(%error, cause, "pins are not saved yet");
                self.state().unsaved.insert(server);
            }
        }
    }

    async fn write(
        &self,
        server: &ServerName,
        text: serde_json::Result<String>,
    ) -> Result<(), PinsError> {
        let (files, name) = (self.files.clone(), server.clone());
        let writing = tokio::task::spawn_blocking(move || {
            let text = text.map_err(std::io::Error::other);
            files.write(&name, text)
        });
        writing.await.unwrap_or_else(|error| {
            Err(PinsError::Unusable {
                path: server.as_str().into(),
                source: std::io::Error::other(error),
            })
        })
    }

    fn take_unrecorded(&self) -> BTreeMap<ToolId, (Drift, Trust)> {
        std::mem::take(&mut self.state().unrecorded)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn standing(pins: &ServerPins, announced: &Announced<'_>) -> PinStanding {
    let name = announced.tool.id.tool();
    PinStanding {
        hold: pins.hold(name, announced.fingerprint),
        // A pin that says what is announced has no say.
        pinned: pins
            .tools
            .get(name)
            .map(|pin| pin.tiers)
            .filter(|tiers| *tiers != announced.tiers()),
    }
}

impl Engine {
    /// Brings changes of definitions into the log and to the disk, in this order: what is told
    /// twice after a crash is better than what is never told.
    pub(super) async fn settle_pins(&self) {
        let pins = self.catalog.pins();
        for (tool, (drift, trust)) in pins.take_unrecorded() {
            self.record_drift(&tool, &drift, trust).await;
        }
        pins.save().await;
    }
}
