//! The calls on a shared connection that wait for their answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::value::RawValue;
use tokio::sync::{SetOnce, oneshot};

use super::{CloseReason, RequestError};
use crate::lock::lock;
use crate::{RequestId, Response};

pub(super) type Answer = Result<Box<RawValue>, RequestError>;

/// Set once, when the connection is gone for good.
pub(super) type Closed = Arc<SetOnce<Arc<CloseReason>>>;

#[derive(Debug)]
pub(super) struct Pending {
    calls: Mutex<HashMap<u64, oneshot::Sender<Answer>>>,
    closed: Closed,
}

impl Pending {
    pub(super) fn new(closed: Closed) -> Self {
        Self {
            calls: Mutex::default(),
            closed,
        }
    }

    pub(super) fn register(&self, id: u64) -> Result<oneshot::Receiver<Answer>, RequestError> {
        let mut calls = lock(&self.calls);
        // Looked at under the lock, which `close` takes after it has set the reason: a call is
        // either refused here or failed there, never forgotten.
        if let Some(reason) = self.closed.get() {
            return Err(RequestError::NotSent(Arc::clone(reason)));
        }
        let (sender, receiver) = oneshot::channel();
        calls.insert(id, sender);
        Ok(receiver)
    }

    /// Whether the call was still waiting.
    pub(super) fn settle(&self, id: u64, answer: Answer) -> bool {
        let call = lock(&self.calls).remove(&id);
        // A caller that went away in this moment loses nothing by not hearing the answer.
        call.is_some_and(|call| call.send(answer).is_ok())
    }

    /// Gives up a call. Whether it was still waiting.
    pub(super) fn forget(&self, id: u64) -> bool {
        lock(&self.calls).remove(&id).is_some()
    }

    /// Fails every call, now and later. Only the first reason counts.
    pub(super) fn close(&self, reason: CloseReason) {
        if self.closed.set(Arc::new(reason)).is_ok() {
            // Dropping the senders wakes the callers, who then find the reason.
            lock(&self.calls).clear();
        }
    }

    pub(super) fn closed(&self) -> &Closed {
        &self.closed
    }
}

/// What a response says, as a caller sees it.
pub(super) fn answer(response: Response) -> Answer {
    response.outcome.map_err(RequestError::Rpc)
}

/// Recognises an id of ours in an answer. Some servers hand a number back as a string, or through
/// a floating point type.
pub(super) fn own_id(id: &RequestId) -> Option<u64> {
    match id {
        RequestId::Number(text) => text.strip_suffix(".0").unwrap_or(text).parse().ok(),
        RequestId::String(text) => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_recognised_however_they_come_back() {
        for id in [
            RequestId::from(7),
            RequestId::from("7"),
            RequestId::Number("7.0".into()),
        ] {
            assert_eq!(own_id(&id), Some(7));
        }
        assert_eq!(own_id(&RequestId::from("seven")), None);
        assert_eq!(own_id(&RequestId::Number("-7".into())), None);
    }

    #[tokio::test]
    async fn closing_fails_waiting_and_later_calls() {
        let pending = Pending::new(Closed::default());
        let waiting = pending.register(1).unwrap();
        pending.close(CloseReason::Requested);
        pending.close(CloseReason::Ended {
            output: String::new(),
        });
        assert!(waiting.await.is_err());
        assert!(matches!(
            pending.register(2),
            Err(RequestError::NotSent(reason)) if matches!(*reason, CloseReason::Requested)
        ));
    }
}
