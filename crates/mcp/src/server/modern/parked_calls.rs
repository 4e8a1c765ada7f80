//! Calls that wait for their client to come back: bounded in number and in time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::sleep;
use tokio_util::sync::DropGuard;
use tokio_util::task::AbortOnDropHandle;

use super::conversation::Conversation;
use crate::Request;
use crate::lock::lock;
use crate::server::exchange::Outcome;
use crate::server::service::Connection;
use crate::server::session_id::{NoRandomness, unguessable};

/// How many calls may wait for input from their clients, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parking {
    /// A call beyond this number is told that its client cannot be asked.
    pub max_calls: usize,
    /// A client that does not come back within this time finds its call cancelled.
    pub expiry: Duration,
}

#[derive(Debug)]
pub(super) struct ParkedCalls {
    expiry: Duration,
    places: Arc<Semaphore>,
    by_state: Mutex<HashMap<String, Occupied>>,
}

/// A place that is kept for one call.
#[derive(Debug)]
pub(super) struct Reservation {
    parked_calls: Arc<ParkedCalls>,
    state: String,
    permit: OwnedSemaphorePermit,
}

#[derive(Debug)]
struct Occupied {
    parked: Parked,
    _permit: OwnedSemaphorePermit,
    _expiry: AbortOnDropHandle<()>,
}

/// A call whose service runs on its own meanwhile. Dropping it cancels the call.
#[derive(Debug)]
pub(super) struct Parked {
    pub(super) conversation: Arc<Conversation>,
    pub(super) connection: Arc<Connection>,
    pub(super) subject: RequestIdentity,
    pub(super) outcome: oneshot::Receiver<Outcome>,
    pub(super) unless_resumed: DropGuard,
}

/// What was asked for. A client that resumes the call must ask for the same.
#[derive(Debug, Clone)]
pub(super) struct RequestIdentity {
    method: String,
    params: Option<Box<RawValue>>,
}

/// Why a call cannot wait.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoPlace {
    #[error("too many calls are waiting for input from their clients")]
    Full,
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
}

impl Default for Parking {
    fn default() -> Self {
        Self {
            max_calls: 256,
            expiry: Duration::from_mins(5),
        }
    }
}

// === impl ParkedCalls ===

impl ParkedCalls {
    pub(super) fn new(parking: Parking) -> Arc<Self> {
        Arc::new(Self {
            expiry: parking.expiry,
            places: Arc::new(Semaphore::new(parking.max_calls)),
            by_state: Mutex::default(),
        })
    }

    pub(super) fn reserve(self: &Arc<Self>) -> Result<Reservation, NoPlace> {
        let permit = Arc::clone(&self.places).try_acquire_owned();
        Ok(Reservation {
            permit: permit.map_err(|_| NoPlace::Full)?,
            state: unguessable()?,
            parked_calls: Arc::clone(self),
        })
    }

    /// Gives the call to whoever is allowed to go on with it. Others do not even learn that it is
    /// there, and do not end it.
    pub(super) fn resume(
        &self,
        state: &str,
        allowed: impl FnOnce(&Parked) -> bool,
    ) -> Option<Parked> {
        let mut by_state = lock(&self.by_state);
        let occupied = by_state.get(state)?;
        if !allowed(&occupied.parked) {
            return None;
        }
        by_state.remove(state).map(|occupied| occupied.parked)
    }

    pub(super) fn clear(&self) {
        let all = std::mem::take(&mut *lock(&self.by_state));
        drop(all);
    }
}

// === impl Reservation ===

impl Reservation {
    /// Keeps the call and names the state to ask for it with. The state says nothing and cannot
    /// be guessed; it is good for one use.
    pub(super) fn take(self, parked: Parked) -> String {
        let Self {
            parked_calls,
            state,
            permit,
        } = self;
        let (expiry, key, weak) = (
            parked_calls.expiry,
            state.clone(),
            Arc::downgrade(&parked_calls),
        );
        let expiry = tokio::spawn(async move {
            sleep(expiry).await;
            if let Some(parked_calls) = weak.upgrade() {
                let expired = lock(&parked_calls.by_state).remove(&key);
                drop(expired);
            }
        });
        let occupied = Occupied {
            parked,
            _permit: permit,
            _expiry: AbortOnDropHandle::new(expiry),
        };
        lock(&parked_calls.by_state).insert(state.clone(), occupied);
        state
    }
}

// === impl RequestIdentity ===

impl RequestIdentity {
    pub(super) fn of(request: &Request) -> Self {
        Self {
            method: request.method.clone(),
            params: request.params.clone(),
        }
    }

    /// The progress token and the like may differ; what is asked for may not.
    pub(super) fn is_of(&self, request: &Request) -> bool {
        self.method == request.method
            && params_without_meta(self.params.as_deref())
                == params_without_meta(request.params.as_deref())
    }
}

fn params_without_meta(params: Option<&RawValue>) -> Value {
    let mut params: Value = params
        .and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default();
    if let Value::Object(members) = &mut params {
        members.remove("_meta");
    }
    params
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RequestId;

    fn request(method: &str, params: &str) -> Request {
        Request {
            id: RequestId::from(1),
            method: method.to_owned(),
            params: Some(RawValue::from_string(params.to_owned()).unwrap()),
        }
    }

    #[test]
    fn a_retry_asks_for_the_same_in_whatever_order() {
        let first = request(
            "tools/call",
            r#"{"name":"t","arguments":{"a":1,"b":2},"_meta":{"x":1}}"#,
        );
        let subject = RequestIdentity::of(&first);
        let again = |params: &str| subject.is_of(&request("tools/call", params));
        assert!(again(r#"{"arguments":{"b":2,"a":1},"name":"t"}"#));
        assert!(!again(r#"{"arguments":{"b":2,"a":2},"name":"t"}"#));
        assert!(!again(r#"{"arguments":{"b":2,"a":1},"name":"u"}"#));
        assert!(!subject.is_of(&request("prompts/get", first.params.unwrap().get())));
    }
}
