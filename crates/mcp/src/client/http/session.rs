//! A session: begun by `initialize`, named by the server if it likes, and lost when the server
//! forgets it.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, StatusCode};

use super::endpoint::{PROTOCOL_VERSION, SESSION_ID};
use super::exchange::Exchange;
use super::wire::Wire;
use crate::client::events::Origin;
use crate::client::{ConnectError, Handshake, Hello, HttpFailure, RequestError};
use crate::message::encode_call;
use crate::{ProtocolVersion, codes};

#[derive(Debug)]
pub(super) struct Session {
    /// What later requests carry so that the server knows them.
    pub(super) headers: HeaderMap,
    pub(super) handshake: Arc<Handshake>,
}

impl Session {
    pub(super) async fn begin(wire: &Arc<Wire>, hello: &Hello) -> Result<Self, ConnectError> {
        let id = wire.next_id();
        let response = wire
            .post(&HeaderMap::new(), hello.encode(id).into())
            .await
            .map_err(ConnectError::Initialize)?;
        if !response.status().is_success() {
            let failure = wire.failure(response).await;
            return Err(ConnectError::Initialize(RequestError::Http(Box::new(
                failure,
            ))));
        }
        let mut headers = HeaderMap::new();
        if let Some(id) = response.headers().get(SESSION_ID) {
            headers.insert(SESSION_ID, id.clone());
        }
        let exchange = Exchange {
            wire,
            session: Some(&headers),
            id,
            origin: Origin::Connection,
        };
        let result = exchange
            .answer(response)
            .await
            .map_err(ConnectError::Initialize)?;
        let handshake = Arc::new(Handshake::parse(result)?);
        headers.insert(PROTOCOL_VERSION, version(handshake.protocol));
        initialized(wire, &headers)
            .await
            .map_err(ConnectError::Initialize)?;
        Ok(Self { headers, handshake })
    }
}

/// Whether a refusal means that the server no longer knows the session of these headers.
pub(super) fn is_lost(session: &HeaderMap, failure: &HttpFailure) -> bool {
    if !session.contains_key(SESSION_ID) {
        return false;
    }
    let error = failure.error.as_ref();
    match failure.status {
        StatusCode::NOT_FOUND => error.is_none_or(|error| error.code != codes::METHOD_NOT_FOUND),
        // The protocol says 404, but the example that many servers grew from answers so.
        StatusCode::BAD_REQUEST => error.is_some_and(|error| {
            error.code == codes::CONNECTION_CLOSED
                && error.message.to_ascii_lowercase().contains("session")
        }),
        _ => false,
    }
}

pub(super) fn version(protocol: ProtocolVersion) -> HeaderValue {
    HeaderValue::from_static(protocol.as_str())
}

async fn initialized(wire: &Wire, headers: &HeaderMap) -> Result<(), RequestError> {
    let message = encode_call(None, "notifications/initialized", None);
    let response = wire.post(headers, message.into()).await?;
    wire.accepted(response).await
}
