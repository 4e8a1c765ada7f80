//! The transport of 2024-11-05: a stream of events carries everything the server says, and its
//! first event names the address that messages go to.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;

use super::FAREWELL;
use super::endpoint::PROTOCOL_VERSION;
use super::response::Content;
use super::session::version;
use super::stream::EventStream;
use super::wire::{Target, Wire};
use crate::ProtocolVersion;
use crate::client::era::is_modern_error;
use crate::client::greeted::Duplex;
use crate::client::in_flight::{Cancel, cancellation};
use crate::client::pending::{Answer, Closed, Pending};
use crate::client::sorter::{Reply, Sorter};
use crate::client::{CloseReason, ConnectError, EventStreamError, HttpFailure, RequestError};

/// How long a server that was not known to speak this transport may take to prove that it does.
const FIRST_EVENT: Duration = Duration::from_secs(5);

/// A connection that all messages share, in either direction.
#[derive(Debug)]
pub(in crate::client) struct TwoEndpoints {
    mailbox: Arc<Mailbox>,
    pending: Arc<Pending>,
}

/// Where messages go.
#[derive(Debug)]
struct Mailbox {
    wire: Arc<Wire>,
    target: Target,
    /// Names the protocol version. Known once the server has been greeted.
    headers: OnceLock<HeaderMap>,
}

// === impl TwoEndpoints ===

impl TwoEndpoints {
    /// Opens the stream of a server that is said to speak this transport.
    pub(in crate::client) async fn open(wire: Arc<Wire>) -> Result<Arc<Self>, ConnectError> {
        let (stream, target) = open(&wire).await.map_err(ConnectError::EventStream)?;
        Ok(Self::start(wire, stream, target))
    }

    /// Opens the stream if the server turns out to speak this transport.
    pub(in crate::client) async fn find(wire: Arc<Wire>) -> Option<Arc<Self>> {
        match tokio::time::timeout(FIRST_EVENT, open(&wire)).await {
            Ok(Ok((stream, target))) => Some(Self::start(wire, stream, target)),
            Ok(Err(error)) => {
                tracing::debug!(?error, "the server is none of 2024-11-05 either");
                None
            }
            Err(_) => None,
        }
    }

    fn start(wire: Arc<Wire>, stream: EventStream, target: Target) -> Arc<Self> {
        let pending = Arc::new(Pending::new(Closed::default()));
        let mailbox = Arc::new(Mailbox {
            wire,
            target,
            headers: OnceLock::new(),
        });
        let sorter = Sorter {
            pending: Arc::clone(&pending),
            incoming: Arc::clone(&mailbox.wire.incoming),
            reply: Arc::clone(&mailbox),
        };
        tokio::spawn(listen(stream, sorter));
        Arc::new(Self { mailbox, pending })
    }

    /// Stops waiting for an answer, without a word to the server.
    pub(in crate::client) fn forget(&self, id: u64) {
        self.pending.forget(id);
    }

    pub(in crate::client) fn closed(&self) -> &Closed {
        self.pending.closed()
    }

    pub(in crate::client) fn abandon(&self, reason: CloseReason) {
        self.pending.close(reason);
    }

    /// Hangs up, which is all a server of this kind gets to hear.
    pub(in crate::client) fn close(&self) {
        self.pending.close(CloseReason::Requested);
    }
}

impl Duplex for TwoEndpoints {
    fn next_id(&self) -> u64 {
        self.mailbox.wire.next_id()
    }

    async fn call(&self, id: u64, message: Vec<u8>) -> Answer {
        let waiting = self.pending.register(id)?;
        if let Err(error) = self.mailbox.post(message.into()).await {
            self.pending.forget(id);
            return Err(error);
        }
        waiting.await.unwrap_or_else(|_| {
            let reason = self.closed().get().map(Arc::clone);
            Err(RequestError::Closed(
                reason.unwrap_or_else(|| Arc::new(CloseReason::Requested)),
            ))
        })
    }

    async fn send(&self, message: Vec<u8>) -> Result<(), RequestError> {
        if let Some(reason) = self.closed().get() {
            return Err(RequestError::NotSent(Arc::clone(reason)));
        }
        self.mailbox.post(message.into()).await
    }

    fn speak(&self, protocol: ProtocolVersion) {
        let headers = HeaderMap::from_iter([(PROTOCOL_VERSION, version(protocol))]);
        let _ = self.mailbox.headers.set(headers);
    }
}

impl Cancel for TwoEndpoints {
    fn cancel(&self, id: u64, reason: &str) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        if !self.pending.forget(id) {
            return;
        }
        let message = Bytes::from(cancellation(id, reason));
        let mailbox = Arc::clone(&self.mailbox);
        runtime.spawn(async move {
            let _ = tokio::time::timeout(FAREWELL, mailbox.post(message)).await;
        });
    }
}

// === impl Mailbox ===

impl Mailbox {
    async fn post(&self, message: Bytes) -> Result<(), RequestError> {
        let before = HeaderMap::new();
        let headers = self.headers.get().unwrap_or(&before);
        let posting = self.wire.post_to(&self.target, headers, message);
        self.wire.accepted(posting.await?).await
    }
}

impl Reply for Arc<Mailbox> {
    async fn reply(self, message: Vec<u8>) {
        if let Err(error) = self.post(message.into()).await {
            tracing::debug!(?error, "an answer to the server's request was not taken");
        }
    }
}

/// Whether a server that refused its first request like this may be one that does not take messages at
/// that address.
pub(in crate::client) fn is_suggested_by(failure: &HttpFailure) -> bool {
    let modern = failure.error.as_ref().is_some_and(is_modern_error);
    matches!(failure.status.as_u16(), 400 | 404 | 405) && !modern
}

async fn open(wire: &Arc<Wire>) -> Result<(EventStream, Target), EventStreamError> {
    let no_session = HeaderMap::new();
    let opening = wire.get(&no_session, None);
    let response = opening.await.map_err(EventStreamError::Open)?;
    if !response.status().is_success() {
        let failure = wire.failure(response).await;
        let error = RequestError::Http(Box::new(failure));
        return Err(EventStreamError::Open(error));
    }
    if response.content() != Content::EventStream {
        return Err(EventStreamError::NotAnEndpoint);
    }
    // A redirect may have led elsewhere, and what the server names is relative to that.
    let base = response.redirected.as_deref();
    let base = base.unwrap_or(&wire.target.url).clone();
    let mut stream = EventStream::new(wire, response);
    let event = match stream.next().await.map_err(EventStreamError::Open)? {
        None => return Err(EventStreamError::Ended),
        Some(event) if event.event.as_deref() == Some("endpoint") => event,
        Some(_) => return Err(EventStreamError::NotAnEndpoint),
    };
    let text = String::from_utf8_lossy(&event.data).into_owned();
    let url = match base.join(text.trim()) {
        Ok(url) if url.origin() == base.origin() => url,
        Ok(_) => return Err(EventStreamError::OtherOrigin { url: text }),
        Err(source) => {
            let source = source.into();
            return Err(EventStreamError::Url { url: text, source });
        }
    };
    match wire.target(url) {
        Ok(target) => Ok((stream, target)),
        Err(source) => {
            let source = source.into();
            Err(EventStreamError::Url { url: text, source })
        }
    }
}

/// Reads the stream for as long as the connection has an owner.
async fn listen(stream: EventStream, sorter: Sorter<Arc<Mailbox>>) {
    let gone = sorter.incoming.gone().clone();
    let pending = Arc::clone(&sorter.pending);
    tokio::select! {
        () = gone.cancelled() => pending.close(CloseReason::Requested),
        _ = pending.closed().wait() => {}
        reason = read(stream, &sorter) => pending.close(reason),
    }
}

async fn read(mut stream: EventStream, sorter: &Sorter<Arc<Mailbox>>) -> CloseReason {
    loop {
        let event = match stream.next().await {
            Ok(Some(event)) => event,
            Ok(None) => {
                return CloseReason::Ended {
                    output: String::new(),
                };
            }
            // Whose answer it was is lost with it, so every call would have to be suspected.
            Err(error) => return CloseReason::Stream(error),
        };
        let ordinary = matches!(event.event.as_deref(), None | Some("message"));
        if ordinary && !event.data.is_empty() {
            sorter.frame(&event.data);
        }
    }
}
