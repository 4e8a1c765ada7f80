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
use crate::coarse_timer::CoarseTimer;
use crate::lock::lock;
use crate::message::empty_object;
use crate::modern::methods;
use crate::{ErrorObject, Notification, RawValue, Request, RequestId, Response, codes};

/// How many requests of one server are answered at once. A well-behaved server waits for a person
/// or a model to answer a few; only a broken one comes near this.
const CONCURRENT_REQUESTS: usize = 256;
/// How many refusals of further requests may wait to be written.
const CONCURRENT_REFUSALS: usize = 64;

pub(super) struct Incoming {
    events: Box<dyn DynEvents>,
    pub(super) progress: Arc<Progress>,
    /// For the deadlines of requests to the server.
    pub(super) timer: CoarseTimer,
    slots: Arc<Semaphore>,
    refusals: Arc<Semaphore>,
    /// The requests being answered, so that the server can cancel them, each with its number: a
    /// server may use an id again.
    answering: Mutex<HashMap<RequestId, (u64, CancellationToken)>>,
    requests: AtomicU64,
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
            timer: CoarseTimer::default(),
            slots: Arc::new(Semaphore::new(CONCURRENT_REQUESTS)),
            refusals: Arc::new(Semaphore::new(CONCURRENT_REFUSALS)),
            answering: Mutex::default(),
            requests: AtomicU64::new(0),
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
        if let Some((_, request)) = lock(&self.answering).remove(&id) {
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
            return self.refuse(request, reply);
        };
        let cancelled = self.gone.child_token();
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        lock(&self.answering).insert(request.id.clone(), (number, cancelled.clone()));
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
            let mut answering = lock(&incoming.answering);
            if answering.get(&id).is_some_and(|(own, _)| *own == number) {
                answering.remove(&id);
            }
            drop(answering);
            drop(slot);
        });
    }

    /// Says no to a request beyond those that are answered at once, so that the server does not
    /// wait for ever. One that does not read its answers either gets none.
    fn refuse<R, F>(&self, request: Request, reply: R)
    where
        R: FnOnce(Vec<u8>) -> F + Send + 'static,
        F: Future<Output = ()> + Send,
    {
        let Ok(slot) = Arc::clone(&self.refusals).try_acquire_owned() else {
            tracing::warn!(
                method = request.method,
                "the server sends more requests than can be refused; one is left unanswered"
            );
            return;
        };
        let message = format!(
            "too many requests at once: {CONCURRENT_REQUESTS} of this server are not answered yet"
        );
        let response = Response {
            id: Some(request.id),
            outcome: Err(ErrorObject::new(codes::INVALID_REQUEST, message)),
        };
        let gone = self.gone.clone();
        tokio::spawn(async move {
            gone.run_until_cancelled(reply(response.encode())).await;
            drop(slot);
        });
    }
}

impl fmt::Debug for Incoming {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Incoming").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::{mpsc, watch};

    use super::*;

    /// Tells what has begun and what was dropped, and answers when told to.
    #[derive(Debug)]
    struct Owner {
        told: watch::Sender<bool>,
        dropped: mpsc::Sender<String>,
    }

    struct Report(String, mpsc::Sender<String>);

    impl Drop for Report {
        fn drop(&mut self) {
            let _ = self.1.try_send(std::mem::take(&mut self.0));
        }
    }

    impl Events for Owner {
        fn notification(&self, _: Notification, _: Origin) {}

        async fn request(&self, request: Request, _: Origin) -> Result<Box<RawValue>, ErrorObject> {
            let _report = Report(request.method.clone(), self.dropped.clone());
            if request.method == "first" {
                let _ = self.told.subscribe().wait_for(|told| *told).await;
                return Ok(empty_object());
            }
            std::future::pending().await
        }
    }

    async fn soon<T>(receiver: &mut mpsc::Receiver<T>) -> T {
        let item = tokio::time::timeout(Duration::from_secs(10), receiver.recv()).await;
        item.unwrap().unwrap()
    }

    #[tokio::test]
    async fn an_id_that_is_used_again_can_be_cancelled_when_the_first_is_answered() {
        let (dropped, mut drops) = mpsc::channel(8);
        let told = watch::Sender::new(false);
        let owner = Owner {
            told: told.clone(),
            dropped,
        };
        let incoming = Arc::new(Incoming::new(owner, CancellationToken::new()));
        let (sender, mut replies) = mpsc::channel(8);
        for method in ["first", "second"] {
            let request = Request {
                id: RequestId::from(1),
                method: method.to_owned(),
                params: None,
            };
            let sender = sender.clone();
            incoming.request(request, Origin::Connection, async move |reply| {
                let _ = sender.send(reply).await;
            });
        }
        told.send_replace(true);
        soon(&mut replies).await;
        assert_eq!(soon(&mut drops).await, "first");
        let params = RawValue::from_string(r#"{"requestId":1}"#.to_owned()).unwrap();
        let cancelled = Notification::new("notifications/cancelled", Some(params));
        // The first is out of the books only a moment after it was answered.
        let cancelling = async {
            while drops.is_empty() {
                incoming.notification(cancelled.clone(), Origin::Connection);
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let cancelling = tokio::time::timeout(Duration::from_secs(10), cancelling);
        cancelling.await.unwrap();
        assert_eq!(soon(&mut drops).await, "second");
    }
}
