//! Requests that are turned away before any service sees them.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};

use crate::server::session_id::NoRandomness;
use crate::{ErrorObject, ParseError, ProtocolVersion, RequestId, codes};

/// The code that servers answer with for a session they do not know.
const SESSION_NOT_FOUND: i64 = -32001;

/// When a server that is stopping may be back, in seconds.
const RETRY_WHEN_STOPPED: &str = "5";

/// A reason, and the request it answers where there is one.
#[derive(Debug)]
pub(super) struct Refusal {
    id: Option<RequestId>,
    reason: Reason,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Reason {
    #[error("Use POST to send a message; GET listens to a session, and DELETE ends it")]
    Method,
    #[error("The Accept header must allow {0}")]
    NotAcceptable(&'static str),
    #[error("The Content-Type header must be application/json")]
    MediaType,
    #[error("The message is larger than the {limit} bytes that are accepted")]
    TooLarge { limit: usize },
    #[error("The body of the request could not be read: {0}")]
    Body(#[source] axum::Error),
    #[error("{0}")]
    Parse(#[from] ParseError),
    #[error(
        "The MCP-Protocol-Version header must name one of {}",
        spoken_versions()
    )]
    Version,
    #[error("Batches left the protocol with 2025-06-18; send each message by itself")]
    Batch,
    #[error("{0}")]
    Handshake(#[source] ErrorObject),
    #[error("{error}")]
    Modern {
        status: StatusCode,
        #[source]
        error: ErrorObject,
    },
    #[error("Nothing was asked that this could be the answer to")]
    Unasked,
    #[error(
        "The Mcp-Session-Id header is missing; begin with an initialize request, or say in _meta \
         that this one speaks {}",
        ProtocolVersion::MODERN
    )]
    NoSession,
    #[error("Session not found: it ended or expired; begin again with an initialize request")]
    UnknownSession,
    #[error("Too many sessions are busy; try again later")]
    TooManySessions,
    #[error("This server is stopping and takes no new requests; try again when it is back")]
    Stopping,
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    #[error("The Last-Event-ID header names no event that is still known")]
    UnknownEvent,
    #[error(
        "What came after the event that Last-Event-ID names is gone: too much was held for clients \
         that do not read; make the request again"
    )]
    LostEvents,
}

// === impl Refusal ===

impl Refusal {
    pub(super) fn of(id: &RequestId, reason: Reason) -> Self {
        Self {
            id: Some(id.clone()),
            reason,
        }
    }
}

impl<R: Into<Reason>> From<R> for Refusal {
    fn from(reason: R) -> Self {
        Self {
            id: None,
            reason: reason.into(),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = self.reason.status();
        let allow = matches!(self.reason, Reason::Method);
        let stopping = matches!(self.reason, Reason::Stopping);
        let body = match self.reason {
            Reason::Parse(error) => error.to_response(),
            reason => crate::Response {
                id: self.id,
                outcome: Err(reason.into_error()),
            },
        };
        let mut response = Response::new(Body::from(body.encode()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if allow {
            headers.insert(ALLOW, HeaderValue::from_static("GET, POST, DELETE"));
        }
        if stopping {
            headers.insert(RETRY_AFTER, HeaderValue::from_static(RETRY_WHEN_STOPPED));
        }
        response
    }
}

// === impl Reason ===

impl Reason {
    fn status(&self) -> StatusCode {
        match self {
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::NotAcceptable(_) => StatusCode::NOT_ACCEPTABLE,
            Self::MediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnknownSession => StatusCode::NOT_FOUND,
            Self::LostEvents => StatusCode::GONE,
            Self::TooManySessions | Self::Stopping => StatusCode::SERVICE_UNAVAILABLE,
            Self::NoRandomness(_) => StatusCode::INTERNAL_SERVER_ERROR,
            // A handshake that the service refuses is an answer like any other.
            Self::Handshake(_) => StatusCode::OK,
            Self::Modern { status, .. } => *status,
            Self::Body(_)
            | Self::Parse(_)
            | Self::Version
            | Self::Batch
            | Self::Unasked
            | Self::NoSession
            | Self::UnknownEvent => StatusCode::BAD_REQUEST,
        }
    }

    fn into_error(self) -> ErrorObject {
        let code = match &self {
            Self::UnknownSession => SESSION_NOT_FOUND,
            Self::TooManySessions | Self::Stopping => codes::CONNECTION_CLOSED,
            Self::NoRandomness(_) => codes::INTERNAL_ERROR,
            _ => codes::INVALID_REQUEST,
        };
        match self {
            Self::Handshake(error) | Self::Modern { error, .. } => error,
            reason => ErrorObject::new(code, reason.to_string()),
        }
    }
}

fn spoken_versions() -> String {
    ProtocolVersion::LEGACY
        .map(ProtocolVersion::as_str)
        .join(", ")
}
