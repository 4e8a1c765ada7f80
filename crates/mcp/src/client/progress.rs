//! Progress of running calls: who waits for which token.
//!
//! One connection serves many clients. A client that guesses the token of another's call could
//! have the server report progress on it, so tokens are a keyed hash of a counter.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::lock::lock;
use crate::{Notification, ProgressToken};

/// The tokens that were given out and whose receivers still listen.
#[derive(Debug, Default)]
pub(super) struct Progress {
    calls: AtomicU64,
    /// Keyed by the system's randomness once, so that a token costs no system call.
    tokens: RandomState,
    listeners: Mutex<HashMap<ProgressToken, mpsc::Sender<Box<RawValue>>>>,
}

/// Yields the `params` of each `notifications/progress` for one token. Dropping it gives the token
/// back.
#[derive(Debug)]
pub struct ProgressReceiver {
    token: ProgressToken,
    receiver: mpsc::Receiver<Box<RawValue>>,
    progress: Arc<Progress>,
}

#[derive(Deserialize)]
struct ProgressParams {
    #[serde(rename = "progressToken")]
    token: ProgressToken,
}

impl Progress {
    pub(super) fn listen(self: &Arc<Self>, capacity: usize) -> (ProgressToken, ProgressReceiver) {
        // 53 bits are what a server keeps that reads numbers as floating point.
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let token = ProgressToken::from(self.tokens.hash_one(call) >> 11);
        let (sender, receiver) = mpsc::channel(capacity.max(1));
        lock(&self.listeners).insert(token.clone(), sender);
        let listening = ProgressReceiver {
            token: token.clone(),
            receiver,
            progress: Arc::clone(self),
        };
        (token, listening)
    }

    /// Hands the notification to the listener for its token; gives it back if there is none.
    pub(super) fn deliver(&self, notification: Notification) -> Option<Notification> {
        let Some(params) = &notification.params else {
            return Some(notification);
        };
        let Ok(ProgressParams { token }) = serde_json::from_str(params.get()) else {
            return Some(notification);
        };
        let Some(listener) = lock(&self.listeners).get(&token).cloned() else {
            return Some(notification);
        };
        if let Some(params) = notification.params
            && listener.try_send(params).is_err()
        {
            // Each report replaces the ones before it, so a slow listener loses little.
            tracing::debug!(%token, "a progress report was dropped because its listener did not take it in time");
        }
        None
    }
}

impl ProgressReceiver {
    /// The next report. Cancel safe.
    pub async fn next(&mut self) -> Option<Box<RawValue>> {
        self.receiver.recv().await
    }

    /// A report that has already arrived.
    pub fn try_next(&mut self) -> Option<Box<RawValue>> {
        self.receiver.try_recv().ok()
    }
}

impl Drop for ProgressReceiver {
    fn drop(&mut self) {
        lock(&self.progress.listeners).remove(&self.token);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_tell_nothing_of_each_other() {
        let given_out = || {
            let progress = Arc::new(Progress::default());
            let tokens = (0..1_000).map(|_| progress.listen(1).0.as_u64().unwrap());
            tokens.collect::<Vec<_>>()
        };
        let (mut one, other) = (given_out(), given_out());
        assert!(one.iter().zip(&other).all(|(one, other)| one != other));
        assert!(one.iter().all(|token| *token < 1 << 53));
        // Of a thousand numbers below 2^53 hardly two are near each other.
        one.sort_unstable();
        assert!(one.windows(2).all(|pair| pair[1] - pair[0] > 1_000));
    }
}
