//! What can go wrong between us and a server, kept apart by what the owner can do about it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, StatusCode};

use crate::sse::EventTooLarge;
use crate::{ErrorObject, ParseError};

/// An error of any of the libraries below.
pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a connection could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nothing was sent: the address cannot be used, or TLS not set up.
    #[error("cannot set up HTTP")]
    HttpSetup(#[source] BoxError),
    #[error("`initialize` failed")]
    Initialize(#[source] RequestError),
    #[error("the answer to `initialize` cannot be read")]
    Handshake(#[source] serde_json::Error),
    #[error("the server speaks protocol version {version:?}, which is not known here")]
    UnsupportedVersion { version: String },
    #[error("`server/discover` failed")]
    Discover(#[source] RequestError),
    #[error("the answer to `server/discover` cannot be read")]
    Discovery(#[source] serde_json::Error),
    /// Some legacy servers do not survive a question they do not know. The owner can connect anew
    /// with [`Era::Legacy`](super::Era::Legacy).
    #[error("the connection ended when the server was asked for its era")]
    Probe(#[source] RequestError),
    /// The server promised the two endpoints of 2024-11-05 and did not give them.
    #[error("the event stream of the server could not be used")]
    EventStream(#[source] EventStreamError),
}

/// Why a stream of server-sent events is not that of a server of 2024-11-05.
#[derive(Debug, thiserror::Error)]
pub enum EventStreamError {
    #[error(transparent)]
    Open(RequestError),
    #[error("it ended before it said where to send messages")]
    Ended,
    #[error("its first event does not say where to send messages")]
    NotAnEndpoint,
    #[error("messages would have to go to {url:?}, which is no URL")]
    Url { url: String, source: BoxError },
    /// The headers hold credentials that are for one origin only.
    #[error("messages would have to go to another origin, {url:?}")]
    OtherOrigin { url: String },
}

/// Why a request has no result.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The server answered, with an error.
    #[error("{0}")]
    Rpc(ErrorObject),
    #[error("no answer within {after:?}")]
    Timeout { after: Duration },
    /// The connection ended while the server may have been at work on the request.
    #[error("the connection is closed")]
    Closed(#[source] Arc<CloseReason>),
    /// The connection was gone before the request was sent.
    #[error("the request was not sent: the connection is closed")]
    NotSent(#[source] Arc<CloseReason>),
    /// The server says that it does not know the session, so it should not have carried out the
    /// request; but it may have, and the request must not be carried out twice.
    #[error(
        "the server answered that it does not know the session; the request was not sent again \
         because it may have been carried out"
    )]
    NotRepeated,
    #[error("the answer of {bytes} bytes or more is over the limit")]
    TooLarge { bytes: u64 },
    #[error(transparent)]
    Http(Box<HttpFailure>),
    /// The server could not be reached, or the connection to it broke.
    #[error("the server could not be reached")]
    Transport(#[source] TransportError),
    #[error(transparent)]
    Redirect(RedirectError),
    /// The stream ended before the answer came and could not be taken up again. Whether the
    /// request was carried out is not known.
    #[error("the stream ended before the answer came")]
    StreamEnded,
    #[error("the server broke the protocol")]
    Protocol(#[source] ProtocolError),
    /// The server needs to know something first, and our side would not tell.
    #[error("the server asked for `{method}`, which was refused")]
    InputRefused { method: String, source: ErrorObject },
    /// A request to a modern server carries what it needs in its params, which must be an object.
    #[error("the params are not an object")]
    Params(#[source] serde_json::Error),
}

/// Why there is no HTTP response, or not all of it.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    #[error("cannot connect")]
    Connect(#[source] BoxError),
    #[error("cannot connect within {} s", .after.as_secs())]
    ConnectTimeout { after: Duration },
    /// The server may have got the request.
    #[error("the connection broke")]
    Broken(#[source] hyper::Error),
}

/// Why a redirect was not followed.
#[derive(Debug, thiserror::Error)]
pub enum RedirectError {
    /// The headers hold credentials that are for the first origin only.
    #[error("{from} redirects to another origin, {to}, which is not followed")]
    OtherOrigin { from: String, to: String },
    #[error("the server redirects more than {limit} times")]
    TooMany { limit: usize },
    #[error("the server redirects to an address that cannot be used")]
    Address(#[source] http::uri::InvalidUri),
}

/// An HTTP status that is not the answer to a request.
#[derive(Debug, thiserror::Error)]
#[error("the server answered HTTP {status}{}", self.detail())]
pub struct HttpFailure {
    pub status: StatusCode,
    /// The challenges of a 401 or 403, which say how to authorise.
    pub www_authenticate: Vec<HeaderValue>,
    /// The JSON-RPC error in the body, where there is one.
    pub error: Option<ErrorObject>,
    /// The beginning of the body.
    pub body: String,
}

#[derive(Debug, thiserror::Error)]
pub enum ProtocolError {
    #[error(transparent)]
    Message(ParseError),
    #[error("a request was answered with content of type {found:?}")]
    ContentType { found: String },
    #[error("the answer holds no response to the request")]
    NoAnswer,
    #[error("the server asks for input that cannot be understood")]
    InputRequired(#[source] serde_json::Error),
    #[error("the server asked for input {rounds} times over without an answer")]
    InputRounds { rounds: usize },
}

/// Why a connection is gone for good.
#[derive(Debug, thiserror::Error)]
pub enum CloseReason {
    /// [`Client::close`](super::Client::close) was called.
    #[error("it was closed on this side")]
    Requested,
    #[error("the server ended it{}", printed(.output))]
    Ended {
        /// What the server wrote instead of a first message.
        output: String,
    },
    /// The peer writes plenty, none of it MCP.
    #[error("the server's output is not MCP{}", printed(.output))]
    NotMcp { output: String },
    #[error("the server sent a message of more than {limit} bytes")]
    Oversized { limit: usize },
    /// What the owner of the connection found out.
    #[error("{0}")]
    Owner(Box<str>),
    #[error("reading from the server failed")]
    Read(#[source] io::Error),
    #[error("writing to the server failed")]
    Write(#[source] io::Error),
    #[error("the stream that carries the server's answers broke")]
    Stream(#[source] RequestError),
    #[error("the server lost the session and gave no new one")]
    SessionLost(#[source] ConnectError),
}

fn printed(output: &str) -> String {
    if output.is_empty() {
        return String::new();
    }
    // Escaped, because it may hold control sequences.
    format!("; it wrote {output:?}")
}

impl ConnectError {
    /// The HTTP status, if that is what stood in the way.
    pub fn http_status(&self) -> Option<StatusCode> {
        match self {
            Self::Initialize(source)
            | Self::Discover(source)
            | Self::Probe(source)
            | Self::EventStream(EventStreamError::Open(source)) => source.http_status(),
            Self::HttpSetup(_)
            | Self::Handshake(_)
            | Self::UnsupportedVersion { .. }
            | Self::Discovery(_)
            | Self::EventStream(_) => None,
        }
    }
}

impl RequestError {
    /// The HTTP status, if that is what stood in the way.
    pub fn http_status(&self) -> Option<StatusCode> {
        match self {
            Self::Http(failure) => Some(failure.status),
            Self::Closed(reason) | Self::NotSent(reason) => match &**reason {
                CloseReason::SessionLost(source) => source.http_status(),
                _ => None,
            },
            _ => None,
        }
    }
}

/// The most characters that are passed on of a text that is no JSON-RPC error.
const LONGEST_DETAIL: usize = 200;

impl HttpFailure {
    /// What the server says of it: a JSON-RPC error, or the first line of a short text.
    fn detail(&self) -> String {
        if let Some(error) = &self.error {
            return format!(": {error}");
        }
        let line = self.body.trim().lines().next().unwrap_or_default();
        // A page or a document tells people nothing on one line.
        if line.is_empty() || line.starts_with(['<', '{', '[']) {
            return String::new();
        }
        let line: String = line.chars().take(LONGEST_DETAIL).collect();
        // Escaped, because it may hold control sequences.
        format!(": {}", line.escape_debug())
    }
}

impl TransportError {
    /// Whether the request was not sent, because there was no connection.
    pub fn is_connect(&self) -> bool {
        match self {
            Self::Connect(_) | Self::ConnectTimeout { .. } => true,
            Self::Broken(_) => false,
        }
    }
}

impl From<TransportError> for RequestError {
    fn from(source: TransportError) -> Self {
        Self::Transport(source)
    }
}

impl From<RedirectError> for RequestError {
    fn from(source: RedirectError) -> Self {
        Self::Redirect(source)
    }
}

impl From<ParseError> for RequestError {
    fn from(source: ParseError) -> Self {
        Self::Protocol(ProtocolError::Message(source))
    }
}

impl From<EventTooLarge> for RequestError {
    fn from(source: EventTooLarge) -> Self {
        Self::TooLarge {
            bytes: source.bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(body: &str) -> String {
        let failure = HttpFailure {
            status: StatusCode::BAD_REQUEST,
            www_authenticate: Vec::new(),
            error: None,
            body: body.to_owned(),
        };
        failure.to_string()
    }

    #[test]
    fn what_a_server_says_in_plain_text_is_passed_on() {
        let plain = "the server answered HTTP 400 Bad Request";
        let text = "JSON RPC not handled: \"x/y\" unsupported\nmore\n";
        assert!(shown(text).contains("not handled"), "{}", shown(text));
        assert!(!shown(text).contains("more"));
        assert!(!shown("\u{1b}[2J").contains('\u{1b}'));
        for body in ["", "<html>", "{\"error\":1}"] {
            assert_eq!(shown(body), plain);
        }
    }
}
