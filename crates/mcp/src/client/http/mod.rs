//! Streamable HTTP as the revisions with a handshake know it: each request is a POST whose answer
//! comes as a body or on a stream of its own, and a session may tie them together.

mod connector;
mod endpoint;
mod exchange;
mod listen;
mod pool;
mod response;
mod session;
mod stream;
mod two_endpoints;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Mutex, Notify, watch};

pub use self::endpoint::{HttpEndpoint, HttpTransport};

pub(super) use self::exchange::Exchange;
pub(super) use self::two_endpoints::{TwoEndpoints, is_suggested_by};
pub(super) use self::wire::Wire;

use self::endpoint::SESSION_ID;
use self::response::Response;
use self::session::{Session, is_lost};
use super::events::Origin;
use super::in_flight::{Cancel, cancellation};
use super::pending::{Answer, Closed};
use super::{CloseReason, ConnectError, Handshake, Hello, RequestError};

/// How long the server may take for what no caller waits for: a cancellation, the end of a session.
const FAREWELL: Duration = Duration::from_secs(5);

/// How long a lost session may take to be replaced, while every caller waits for it.
const RECOVERY: Duration = Duration::from_secs(30);

/// How long a new connection waits for the server's answer to the request for its stream of
/// messages. Some servers say nothing until there is a message.
const STREAM_PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Http {
    wire: Arc<Wire>,
    hello: Hello,
    session: watch::Sender<Arc<Session>>,
    /// Held by the one who replaces a lost session, while the others wait for it.
    recovery: Mutex<()>,
    /// Woken when the server has answered the request for its stream of messages.
    stream_answered: Notify,
    closed: Closed,
}

impl Http {
    pub(super) async fn begin(wire: Arc<Wire>, hello: Hello) -> Result<Arc<Self>, ConnectError> {
        let session = Session::begin(&wire, &hello).await?;
        let http = Arc::new(Self {
            wire,
            hello,
            session: watch::Sender::new(Arc::new(session)),
            recovery: Mutex::default(),
            stream_answered: Notify::new(),
            closed: Closed::default(),
        });
        tokio::spawn(listen::listen(Arc::clone(&http)));
        // Many servers drop what they would say on a stream that is not there yet.
        let answered = http.stream_answered.notified();
        let _ = tokio::time::timeout(STREAM_PATIENCE, answered).await;
        Ok(http)
    }

    pub(super) fn handshake(&self) -> Arc<Handshake> {
        Arc::clone(&self.session.borrow().handshake)
    }

    pub(super) fn next_id(&self) -> u64 {
        self.wire.next_id()
    }

    pub(super) fn closed(&self) -> &Closed {
        &self.closed
    }

    pub(super) async fn request(
        self: &Arc<Self>,
        id: u64,
        message: Vec<u8>,
        origin: Origin,
        repeatable: bool,
    ) -> Answer {
        self.while_open(async {
            let (session, response) = self.post(message.into(), repeatable).await?;
            let exchange = Exchange {
                wire: &self.wire,
                session: Some(&session.headers),
                id,
                origin,
            };
            exchange.answer(response).await
        })
        .await
    }

    pub(super) async fn notify(self: &Arc<Self>, message: Vec<u8>) -> Result<(), RequestError> {
        self.while_open(async {
            let (_, response) = self.post(message.into(), true).await?;
            self.wire.accepted(response).await
        })
        .await
    }

    /// Fails every request, and says no more to the server.
    pub(super) fn abandon(&self, reason: CloseReason) {
        let _ = self.closed.set(Arc::new(reason));
    }

    /// Tells the server that the session is over.
    pub(super) async fn close(&self) {
        if self.closed.set(Arc::new(CloseReason::Requested)).is_err() {
            return;
        }
        let session = self.current();
        if session.headers.contains_key(SESSION_ID) {
            let deleting = self.wire.delete(&session.headers);
            // Servers may refuse this (405), and one that is gone needs no farewell.
            let _ = tokio::time::timeout(FAREWELL, deleting).await;
        }
    }

    fn current(&self) -> Arc<Session> {
        Arc::clone(&self.session.borrow())
    }

    async fn while_open<T>(
        &self,
        work: impl Future<Output = Result<T, RequestError>>,
    ) -> Result<T, RequestError> {
        while_open(&self.closed, work).await
    }

    /// Posts a message in the current session. A server that does not know the session should not
    /// have looked at the message, so one that is repeatable is sent once more in a new session.
    async fn post(
        self: &Arc<Self>,
        message: Bytes,
        repeatable: bool,
    ) -> Result<(Arc<Session>, Response), RequestError> {
        let session = self.current();
        let response = self.wire.post(&session.headers, message.clone()).await?;
        if response.status().is_success() {
            return Ok((session, response));
        }
        let failure = self.wire.failure(response).await;
        if !is_lost(&session.headers, &failure) {
            return Err(RequestError::Http(Box::new(failure)));
        }
        let session = self.recover(&session).await?;
        if !repeatable {
            return Err(RequestError::NotRepeated);
        }
        let response = self.wire.post(&session.headers, message).await?;
        if response.status().is_success() {
            return Ok((session, response));
        }
        let failure = self.wire.failure(response).await;
        Err(RequestError::Http(Box::new(failure)))
    }

    /// Replaces a session that the server has lost, once for all who found out.
    async fn recover(self: &Arc<Self>, lost: &Arc<Session>) -> Result<Arc<Session>, RequestError> {
        let (http, lost) = (Arc::clone(self), Arc::clone(lost));
        // In a task of its own: a caller that gives up must not take the new session with it.
        let recovering = tokio::spawn(async move {
            let _turn = http.recovery.lock().await;
            let current = http.current();
            if !Arc::ptr_eq(&current, &lost) {
                return Ok(current);
            }
            let beginning = http.begin_again();
            match http
                .wire
                .incoming
                .gone()
                .run_until_cancelled(beginning)
                .await
            {
                Some(Ok(session)) => {
                    let session = Arc::new(session);
                    http.session.send_replace(Arc::clone(&session));
                    tracing::info!("the server had lost the session; a new one was made");
                    http.wire.incoming.session_replaced(&session.handshake);
                    Ok(session)
                }
                Some(Err(error)) => Err(http.give_up(CloseReason::SessionLost(error))),
                None => Err(http.give_up(CloseReason::Requested)),
            }
        });
        match recovering.await {
            Ok(outcome) => outcome.map_err(RequestError::Closed),
            // The runtime is shutting down.
            Err(_) => Err(RequestError::Closed(Arc::new(CloseReason::Requested))),
        }
    }

    async fn begin_again(&self) -> Result<Session, ConnectError> {
        tokio::time::timeout(RECOVERY, Session::begin(&self.wire, &self.hello))
            .await
            .unwrap_or(Err(ConnectError::Initialize(RequestError::Timeout {
                after: RECOVERY,
            })))
    }

    /// Closes for good, and says why it is closed: an earlier reason stands.
    fn give_up(&self, reason: CloseReason) -> Arc<CloseReason> {
        let reason = Arc::new(reason);
        let _ = self.closed.set(Arc::clone(&reason));
        self.closed.get().map_or(reason, Arc::clone)
    }
}

/// Runs `work` until the connection is closed.
pub(super) async fn while_open<T>(
    closed: &Closed,
    work: impl Future<Output = Result<T, RequestError>>,
) -> Result<T, RequestError> {
    if let Some(reason) = closed.get() {
        return Err(RequestError::NotSent(Arc::clone(reason)));
    }
    tokio::select! {
        biased;
        reason = closed.wait() => Err(RequestError::Closed(Arc::clone(reason))),
        outcome = work => outcome,
    }
}

impl Cancel for Arc<Http> {
    fn cancel(&self, id: u64, reason: &str) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let message = Bytes::from(cancellation(id, reason));
        let http = Arc::clone(self);
        runtime.spawn(async move {
            let session = http.current();
            let sending = http.wire.post(&session.headers, message);
            let _ = tokio::time::timeout(FAREWELL, sending).await;
        });
    }
}
