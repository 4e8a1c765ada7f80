//! Progress of running calls: who waits for which token.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::lock::lock;
use crate::{Notification, ProgressToken};

/// The tokens that were given out and whose receivers still listen.
#[derive(Debug)]
pub(super) struct Progress {
    next: AtomicU64,
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

impl Default for Progress {
    fn default() -> Self {
        Self {
            // Some servers take a zero for no token at all.
            next: AtomicU64::new(1),
            listeners: Mutex::default(),
        }
    }
}

impl Progress {
    pub(super) fn listen(self: &Arc<Self>, capacity: usize) -> (ProgressToken, ProgressReceiver) {
        let token = ProgressToken::from(self.next.fetch_add(1, Ordering::Relaxed));
        let (sender, receiver) = mpsc::channel(capacity.max(1));
        lock(&self.listeners).insert(token.clone(), sender);
        let listening = ProgressReceiver {
            token: token.clone(),
            receiver,
            progress: Arc::clone(self),
        };
        (token, listening)
    }

    /// Hands the notification to whoever listens for its token; gives it back if nobody does.
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
            tracing::debug!(%token, "a progress report was dropped because nobody took it in time");
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
