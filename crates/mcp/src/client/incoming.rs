//! Requests and notifications of the server, whichever transport brought them.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Handshake;
use super::events::{DynEvents, Events, Origin};
use super::pending::own_id;
use super::progress::Progress;
use super::subscriptions::{Subscriptions, untagged};
use crate::lock::lock;
use crate::message::empty_object;
use crate::modern::methods;
use crate::{ErrorObject, Notification, RawValue, Request, RequestId, Response};

/// How many requests of one server are answered at once. A well-behaved server waits for a person
/// or a model to answer a few; only a broken one comes near this.
const CONCURRENT_REQUESTS: usize = 256;

pub(super) struct Incoming {
    events: Box<dyn DynEvents>,
    pub(super) progress: Arc<Progress>,
    slots: Arc<Semaphore>,
    /// The requests being answered, so that the server can cancel them.
    answering: Mutex<HashMap<RequestId, CancellationToken>>,
    /// The streams on which a modern server tells of changes.
    pub(super) subscriptions: Subscriptions,
    /// Fires when the last client is dropped.
    gone: CancellationToken,
    begun: Instant,
    /// When the server was last heard of, in milliseconds since `begun`.
    heard: AtomicU64,
}

#[derive(Deserialize)]
struct CancelledParams {
    #[serde(rename = "requestId")]
    id: RequestId,
}

impl Incoming {
    pub(super) fn new(events: impl Events, gone: CancellationToken) -> Self {
        Self {
            events: Box::new(events),
            progress: Arc::default(),
            slots: Arc::new(Semaphore::new(CONCURRENT_REQUESTS)),
            answering: Mutex::default(),
            subscriptions: Subscriptions::default(),
            gone,
            begun: Instant::now(),
            heard: AtomicU64::new(0),
        }
    }

    /// Notes that something came from the server.
    pub(super) fn hear(&self) {
        let since = self.begun.elapsed().as_millis();
        self.heard
            .fetch_max(u64::try_from(since).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(super) fn last_heard(&self) -> Instant {
        self.begun + Duration::from_millis(self.heard.load(Ordering::Relaxed))
    }

    pub(super) fn gone(&self) -> &CancellationToken {
        &self.gone
    }

    pub(super) fn session_replaced(&self, handshake: &Arc<Handshake>) {
        self.events.session_replaced(handshake);
    }

    pub(super) fn notification(&self, notification: Notification, origin: Origin) {
        match notification.method.as_str() {
            "notifications/progress" => {
                if let Some(unclaimed) = self.progress.deliver(notification) {
                    self.events.notification(unclaimed, origin);
                }
            }
            "notifications/cancelled" => self.cancelled(&notification),
            methods::ACKNOWLEDGED => self.subscriptions.acknowledge(&notification),
            "notifications/tools/list_changed"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed"
            | "notifications/resources/updated" => {
                self.events.notification(untagged(notification), origin);
            }
            _ => self.events.notification(notification, origin),
        }
    }

    fn cancelled(&self, notification: &Notification) {
        let Some(params) = &notification.params else {
            return;
        };
        let Ok(CancelledParams { id }) = serde_json::from_str(params.get()) else {
            return;
        };
        if let Some(request) = lock(&self.answering).remove(&id) {
            request.cancel();
        } else if let Some(id) = own_id(&id) {
            self.subscriptions.end(id);
        }
    }

    /// Has the owner answer what a modern server wants to know before it answers a call.
    pub(super) async fn ask(
        &self,
        request: Request,
        origin: Origin,
    ) -> Result<Box<RawValue>, ErrorObject> {
        // Never closed.
        let _slot = self.slots.acquire().await;
        self.events.request(request, origin).await
    }

    /// Answers in a task of its own, because the stream the request came on must be read on.
    pub(super) fn request<R, F>(self: &Arc<Self>, request: Request, origin: Origin, reply: R)
    where
        R: FnOnce(Vec<u8>) -> F + Send + 'static,
        F: Future<Output = ()> + Send,
    {
        let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() else {
            tracing::warn!(
                method = request.method,
                "the server sends more requests than can be answered; one is left unanswered"
            );
            return;
        };
        let cancelled = self.gone.child_token();
        lock(&self.answering).insert(request.id.clone(), cancelled.clone());
        let incoming = Arc::clone(self);
        tokio::spawn(async move {
            let id = request.id.clone();
            let answered = async {
                let outcome = match request.method.as_str() {
                    "ping" => Ok(empty_object()),
                    _ => incoming.events.request(request, origin).await,
                };
                let response = Response {
                    id: Some(id.clone()),
                    outcome,
                };
                reply(response.encode()).await;
            };
            cancelled.run_until_cancelled(answered).await;
            lock(&incoming.answering).remove(&id);
            drop(slot);
        });
    }
}

impl fmt::Debug for Incoming {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Incoming").finish_non_exhaustive()
    }
}
