//! A legacy server, over whichever of the three transports of that era.

use std::sync::Arc;

use super::Handshake;
use super::events::Origin;
use super::greeted::{Duplex, Greeted};
use super::http::{Http, TwoEndpoints};
use super::in_flight::Cancel;
use super::link::Link;
use super::pending::{Answer, Closed};
use super::{CloseReason, RequestError};

pub(super) enum Legacy {
    Stdio(Greeted<Link>),
    Http(Arc<Http>),
    Sse(Greeted<TwoEndpoints>),
}

impl Legacy {
    pub(super) fn handshake(&self) -> Arc<Handshake> {
        match self {
            Self::Stdio(stdio) => Arc::clone(&stdio.handshake),
            Self::Http(http) => http.handshake(),
            Self::Sse(sse) => Arc::clone(&sse.handshake),
        }
    }

    pub(super) fn next_id(&self) -> u64 {
        match self {
            Self::Stdio(stdio) => stdio.link.next_id(),
            Self::Http(http) => http.next_id(),
            Self::Sse(sse) => sse.link.next_id(),
        }
    }

    pub(super) async fn request(
        &self,
        id: u64,
        message: Vec<u8>,
        origin: Origin,
        repeatable: bool,
    ) -> Answer {
        match self {
            Self::Stdio(stdio) => stdio.link.call(id, message).await,
            // Boxed, so that a call over pipes does not carry the much larger state of these.
            Self::Http(http) => Box::pin(http.request(id, message, origin, repeatable)).await,
            Self::Sse(sse) => Box::pin(sse.link.call(id, message)).await,
        }
    }

    pub(super) async fn notify(&self, message: Vec<u8>) -> Result<(), RequestError> {
        match self {
            Self::Stdio(stdio) => stdio.link.send(message).await,
            Self::Http(http) => Box::pin(http.notify(message)).await,
            Self::Sse(sse) => Box::pin(sse.link.send(message)).await,
        }
    }

    pub(super) fn closed(&self) -> &Closed {
        match self {
            Self::Stdio(stdio) => stdio.link.closed(),
            Self::Http(http) => http.closed(),
            Self::Sse(sse) => sse.link.closed(),
        }
    }

    pub(super) fn abandon(&self, reason: CloseReason) {
        match self {
            Self::Stdio(stdio) => stdio.link.abandon(reason),
            Self::Http(http) => http.abandon(reason),
            Self::Sse(sse) => sse.link.abandon(reason),
        }
    }

    pub(super) async fn close(&self) {
        match self {
            Self::Stdio(stdio) => stdio.link.close().await,
            Self::Http(http) => http.close().await,
            Self::Sse(sse) => sse.link.close(),
        }
    }
}

impl Cancel for Legacy {
    fn cancel(&self, id: u64, reason: &str) {
        match self {
            Self::Stdio(stdio) => stdio.link.cancel(id, reason),
            Self::Http(http) => http.cancel(id, reason),
            Self::Sse(sse) => sse.link.cancel(id, reason),
        }
    }
}
