//! A session: begun by `initialize`, named by the server if it likes, and lost when the server
//! forgets it.

use std::sync::Arc;

use http::{HeaderValue, StatusCode};
use reqwest::RequestBuilder;

use super::endpoint::{PROTOCOL_VERSION, SESSION_ID};
use super::exchange::Exchange;
use super::wire::Wire;
use crate::client::events::Origin;
use crate::client::{ConnectError, Handshake, Hello, HttpFailure, RequestError};
use crate::message::encode_call;
use crate::{ProtocolVersion, codes};

/// What later requests carry so that the server knows them.
#[derive(Debug, Clone, Default)]
pub(in crate::client) struct SessionHeaders {
    pub(super) id: Option<HeaderValue>,
    pub(super) protocol: Option<ProtocolVersion>,
}

#[derive(Debug)]
pub(super) struct Session {
    pub(super) headers: SessionHeaders,
    pub(super) handshake: Arc<Handshake>,
}

impl Session {
    pub(super) async fn begin(wire: &Arc<Wire>, hello: &Hello) -> Result<Self, ConnectError> {
        let id = wire.next_id();
        let response = wire
            .post(&SessionHeaders::default(), hello.encode(id).into())
            .await
            .map_err(ConnectError::Initialize)?;
        if !response.status().is_success() {
            let failure = wire.failure(response).await;
            return Err(ConnectError::Initialize(RequestError::Http(Box::new(
                failure,
            ))));
        }
        let mut headers = SessionHeaders {
            id: response.headers().get(SESSION_ID).cloned(),
            protocol: None,
        };
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
        headers.protocol = Some(handshake.protocol);
        initialized(wire, &headers)
            .await
            .map_err(ConnectError::Initialize)?;
        Ok(Self { headers, handshake })
    }
}

impl SessionHeaders {
    pub(super) fn add_to(&self, mut request: RequestBuilder) -> RequestBuilder {
        if let Some(id) = &self.id {
            request = request.header(SESSION_ID, id);
        }
        if let Some(protocol) = self.protocol {
            request = request.header(PROTOCOL_VERSION, protocol.as_str());
        }
        request
    }

    /// Whether a refusal means that the server no longer knows the session.
    pub(super) fn is_lost(&self, failure: &HttpFailure) -> bool {
        if self.id.is_none() {
            return false;
        }
        let error = failure.error.as_ref();
        match failure.status {
            StatusCode::NOT_FOUND => {
                error.is_none_or(|error| error.code != codes::METHOD_NOT_FOUND)
            }
            // The protocol says 404, but the example that many servers grew from answers so.
            StatusCode::BAD_REQUEST => error.is_some_and(|error| {
                error.code == codes::CONNECTION_CLOSED
                    && error.message.to_ascii_lowercase().contains("session")
            }),
            _ => false,
        }
    }
}

async fn initialized(wire: &Wire, headers: &SessionHeaders) -> Result<(), RequestError> {
    let message = encode_call(None, "notifications/initialized", None);
    let response = wire.post(headers, message.into()).await?;
    wire.accepted(response).await
}
