//! Single requests to a modern server, over any transport.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::envelope::{Additions, Identity};
use crate::client::events::Origin;
use crate::client::greeted::Duplex;
use crate::client::http::{Exchange, TwoEndpoints, Wire, while_open};
use crate::client::in_flight::{Deadline, answered};
use crate::client::incoming::Incoming;
use crate::client::link::Link;
use crate::client::pending::{Answer, Closed};
use crate::client::{CloseReason, RequestError};
use crate::message::encode_call;
use crate::modern::standard_headers;
use crate::{ErrorObject, ProtocolVersion, RequestId, codes};

#[derive(Debug)]
pub(super) struct Channel {
    pub(super) carrier: Carrier,
    pub(super) identity: Identity,
    pub(super) incoming: Arc<Incoming>,
}

/// What the requests travel over.
#[derive(Debug)]
pub(in crate::client) enum Carrier {
    Lines(Arc<Link>),
    Sse(Arc<TwoEndpoints>),
    Http { wire: Arc<Wire>, closed: Closed },
}

/// A request as its caller sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) method: &'a str,
    pub(super) params: Option<&'a RawValue>,
    pub(super) additions: Additions<'a>,
    pub(super) origin: Origin,
    pub(super) deadline: Deadline<'a>,
    /// Whether it may be sent a second time where the server says that it did not look at the first.
    pub(super) repeatable: bool,
}

// === impl Channel ===

impl Channel {
    /// Sends a request. One that is refused for its version goes out once more if the server takes
    /// the only one we have after all: it has not been looked at.
    pub(super) async fn call(
        &self,
        call: Call<'_>,
        parameters: &[(HeaderName, HeaderValue)],
    ) -> Answer {
        let answer = self.send(self.carrier.next_id(), call, parameters).await;
        match answer {
            Err(RequestError::Rpc(error)) if call.repeatable && takes_our_version(&error) => {
                self.send(self.carrier.next_id(), call, parameters).await
            }
            answer => answer,
        }
    }

    pub(super) async fn send(
        &self,
        id: u64,
        call: Call<'_>,
        parameters: &[(HeaderName, HeaderValue)],
    ) -> Answer {
        let params = self.identity.complete(call.params, call.additions)?;
        let message = encode_call(
            Some(&RequestId::from(id)),
            call.method,
            Some(params.get().as_bytes()),
        );
        match &self.carrier {
            Carrier::Lines(link) => {
                answered(&**link, id, call.deadline, link.call(id, message)).await
            }
            Carrier::Sse(link) => {
                answered(&**link, id, call.deadline, link.call(id, message)).await
            }
            Carrier::Http { wire, closed } => {
                let mut headers = standard_headers(call.method, Some(&params));
                headers.extend(parameters.iter().cloned());
                let exchange = Exchange {
                    wire,
                    session: None,
                    id,
                    origin: call.origin,
                };
                // Dropping this hangs up, which is how a request is cancelled here. Boxed, so that
                // a call over pipes does not carry its much larger state.
                let answering = while_open(closed, post(exchange, headers, message.into()));
                Box::pin(call.deadline.bound(answering)).await
            }
        }
    }

    pub(super) async fn notify(
        &self,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), RequestError> {
        let params = params.map(|params| params.get().as_bytes());
        let message = encode_call(None, method, params);
        match &self.carrier {
            Carrier::Lines(link) => link.send(message).await,
            Carrier::Sse(link) => link.send(message).await,
            Carrier::Http { wire, closed } => {
                let headers = standard_headers(method, None);
                while_open(closed, async {
                    let response = wire.post(&headers, message.into()).await?;
                    wire.accepted(response).await
                })
                .await
            }
        }
    }
}

// === impl Carrier ===

impl Carrier {
    pub(in crate::client) fn http(wire: Arc<Wire>) -> Self {
        Self::Http {
            wire,
            closed: Closed::default(),
        }
    }

    pub(super) fn next_id(&self) -> u64 {
        match self {
            Self::Lines(link) => link.next_id(),
            Self::Sse(link) => link.next_id(),
            Self::Http { wire, .. } => wire.next_id(),
        }
    }

    /// A request that the server has given up itself need not be cancelled any more.
    pub(super) fn forget(&self, id: u64) {
        match self {
            Self::Lines(link) => link.forget(id),
            Self::Sse(link) => link.forget(id),
            // Hanging up is all there is to a request here.
            Self::Http { .. } => {}
        }
    }

    pub(super) fn closed(&self) -> &Closed {
        match self {
            Self::Lines(link) => link.closed(),
            Self::Sse(link) => link.closed(),
            Self::Http { closed, .. } => closed,
        }
    }

    pub(super) fn abandon(&self, reason: CloseReason) {
        match self {
            Self::Lines(link) => link.abandon(reason),
            Self::Sse(link) => link.abandon(reason),
            Self::Http { closed, .. } => {
                let _ = closed.set(Arc::new(reason));
            }
        }
    }

    pub(super) async fn close(&self) {
        match self {
            Self::Lines(link) => link.close().await,
            Self::Sse(link) => link.close(),
            // There is no session to end.
            Self::Http { closed, .. } => {
                let _ = closed.set(Arc::new(CloseReason::Requested));
            }
        }
    }
}

async fn post(exchange: Exchange<'_>, headers: HeaderMap, message: Bytes) -> Answer {
    let response = exchange.wire.post(&headers, message).await?;
    if response.status().is_success() {
        return exchange.answer(response).await;
    }
    let mut failure = exchange.wire.failure(response).await;
    match failure.error.take() {
        // In this era the status only repeats what the error says.
        Some(error) if matches!(failure.status.as_u16(), 400 | 404) => {
            Err(RequestError::Rpc(error))
        }
        error => {
            failure.error = error;
            Err(RequestError::Http(Box::new(failure)))
        }
    }
}

fn takes_our_version(error: &ErrorObject) -> bool {
    error.code == codes::UNSUPPORTED_PROTOCOL_VERSION
        && supported_versions(error)
            .iter()
            .any(|version| version == ProtocolVersion::MODERN.as_str())
}

/// The versions that a server names when it refuses one.
pub(super) fn supported_versions(error: &ErrorObject) -> Vec<String> {
    #[derive(Deserialize)]
    struct Data {
        supported: Vec<String>,
    }

    let data = error.data.as_ref();
    data.and_then(|data| serde_json::from_str::<Data>(data.get()).ok())
        .map(|data| data.supported)
        .unwrap_or_default()
}
