//! The client's legacy session: what was said in it, so that a daemon that was started again can
//! be told the same.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use http_body_util::BodyExt;
use mcp::{ErrorObject, Message, Notification, RawValue};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::Relay;
use super::frame::Purpose;
use super::link::{Failed, SESSION};

/// Subscriptions that are remembered; further ones end with the daemon.
const MAX_SUBSCRIPTIONS: usize = 1_000;

#[derive(Debug, Default)]
pub(super) struct Session {
    state: Mutex<State>,
    /// Held while the session is opened again, so that it is opened once.
    renewing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    current: Current,
    memory: Option<Memory>,
}

/// The session as the daemon knows it now.
#[derive(Debug, Clone, Default)]
pub(super) struct Current {
    /// Counts the sessions that the client had without noticing.
    pub(super) generation: u64,
    /// Without one the client has not begun a session.
    pub(super) id: Option<HeaderValue>,
    pub(super) superseded: CancellationToken,
}

/// What the client said that outlives a session, in its own bytes.
#[derive(Debug, Clone)]
struct Memory {
    initialize: Bytes,
    initialized: Option<Bytes>,
    level: Option<Bytes>,
    subscriptions: BTreeMap<String, Bytes>,
    answered: Answered,
}

/// The part of the result of `initialize` on which a client relies.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Answered {
    protocol_version: String,
    capabilities: Capabilities,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct Capabilities {
    tools: Changes,
    prompts: Changes,
    resources: Changes,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Changes {
    list_changed: bool,
}

// === impl Session ===

impl Session {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn current(&self) -> Current {
        self.state().current.clone()
    }

    pub(super) fn is_open(&self) -> bool {
        self.state().memory.is_some()
    }

    /// The client began a session, with this `initialize` and this result.
    pub(super) fn open(&self, id: HeaderValue, initialize: Bytes, result: &RawValue) {
        let mut state = self.state();
        state.replace(id);
        state.memory = Some(Memory {
            initialize,
            initialized: None,
            level: None,
            subscriptions: BTreeMap::new(),
            answered: serde_json::from_str(result.get()).unwrap_or_default(),
        });
    }

    pub(super) fn initialized(&self, notification: Bytes) {
        if let Some(memory) = &mut self.state().memory {
            memory.initialized = Some(notification);
        }
    }

    /// The daemon carried out a request that changes the session.
    pub(super) fn remember(&self, purpose: &Purpose, request: &Bytes) {
        let mut state = self.state();
        let Some(memory) = &mut state.memory else {
            return;
        };
        match purpose {
            Purpose::SetLevel => memory.level = Some(request.clone()),
            Purpose::Subscribe(uri) => {
                if memory.subscriptions.len() < MAX_SUBSCRIPTIONS {
                    memory.subscriptions.insert(uri.clone(), request.clone());
                }
            }
            Purpose::Unsubscribe(uri) => {
                memory.subscriptions.remove(uri);
            }
            Purpose::Initialize | Purpose::Listen | Purpose::ListTools | Purpose::Other => {}
        }
    }

    /// What to tell the daemon if the session of this generation is still the newest.
    fn memory_of(&self, generation: u64) -> Option<Memory> {
        let state = self.state();
        let is_newest = state.current.generation == generation;
        state.memory.clone().filter(|_| is_newest)
    }
}

impl State {
    fn replace(&mut self, id: HeaderValue) {
        self.current.superseded.cancel();
        self.current = Current {
            generation: self.current.generation + 1,
            id: Some(id),
            superseded: CancellationToken::new(),
        };
    }
}

// === impl Relay ===

impl Relay {
    /// Opens the client's session again because the daemon does not know the one of this
    /// generation: the daemon was started again, or the session expired.
    pub(super) async fn renew(&self, generation: u64) -> Result<(), Failed> {
        let _turn = self.session.renewing.lock().await;
        let Some(memory) = self.session.memory_of(generation) else {
            return Ok(());
        };
        let id = self.greet(&memory).await?;
        for message in memory.replay() {
            if let Err(error) = self.link.tell(&HeaderMap::new(), Some(&id), message).await {
                tracing::warn!(%error, "a part of the session could not be restored");
            }
        }
        self.session.state().replace(id);
        tracing::info!("the daemon was started again; the session was opened again");
        for method in memory.answered.capabilities.changed_lists() {
            self.send(Notification::new(method, None).encode()).await;
        }
        Ok(())
    }

    /// Sends the client's `initialize` again; the id of the new session.
    async fn greet(&self, memory: &Memory) -> Result<HeaderValue, Failed> {
        let (none, body) = (HeaderMap::new(), memory.initialize.clone());
        let response = self.link.post(&none, None, body).await;
        let response = response.map_err(Failed::into_unsent)?;
        let id = response.headers().get(SESSION).cloned();
        let body = response.into_body().collect().await;
        let body = body.map_err(|error| Failed::lost(&error).into_unsent())?;
        let outcome = match Message::parse(&body.to_bytes()) {
            Ok(Message::Response(answer)) => answer.outcome,
            _ => Err(ErrorObject::internal("it does not answer initialize")),
        };
        let result = outcome.map_err(|error| Failed::Refused(error.message))?;
        let answered: Answered = serde_json::from_str(result.get()).unwrap_or_default();
        let version = &memory.answered.protocol_version;
        match id {
            Some(id) if answered.protocol_version == *version => Ok(id),
            _ => Err(Failed::Refused(format!("it no longer speaks {version}"))),
        }
    }
}

// === impl Memory ===

impl Memory {
    fn replay(&self) -> impl Iterator<Item = Bytes> {
        let first = self.initialized.iter().chain(&self.level);
        first.chain(self.subscriptions.values()).cloned()
    }
}

// === impl Capabilities ===

impl Capabilities {
    /// The notifications after which a client lists again what it was promised news of.
    fn changed_lists(self) -> impl Iterator<Item = &'static str> {
        [
            (self.tools, "notifications/tools/list_changed"),
            (self.prompts, "notifications/prompts/list_changed"),
            (self.resources, "notifications/resources/list_changed"),
        ]
        .into_iter()
        .filter_map(|(kind, method)| kind.list_changed.then_some(method))
    }
}
