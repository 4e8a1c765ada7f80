//! What a server is to its transports.

use std::future::Future;
use std::sync::Arc;

use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::modern::ParameterHeaders;
use crate::server::{Outbound, SessionId};
use crate::{ErrorObject, LogLevel, Notification, ProtocolVersion, Request, RequestId};

/// How many characters of a client's name and version are kept.
const NAME_CHARS: usize = 256;

/// Who a client says it is: in `initialize`, or in the modern era with every request.
#[derive(Debug, Clone)]
pub struct ClientIdentity {
    /// At most 256 characters, as the version.
    pub name: String,
    pub version: String,
    /// `capabilities` as the client sent them.
    pub capabilities: Box<RawValue>,
}

/// Whether two requests, known by their extensions, are of one caller.
pub(super) type SameCaller = fn(&http::Extensions, &http::Extensions) -> bool;

/// One client's session with one endpoint. In the modern era there are none: every request has a
/// connection of its own, and so has every stream of subscriptions.
#[derive(Debug)]
pub struct Connection {
    pub session: SessionId,
    pub protocol: ProtocolVersion,
    pub client: ClientIdentity,
    /// What the transport knows of the caller, e.g. the principal that authentication found.
    pub extensions: http::Extensions,
    pub(crate) outbound: Outbound,
}

/// The server's half of `initialize`; the transport adds the protocol version.
#[derive(Debug, Clone)]
pub struct InitializeResult {
    pub capabilities: Box<RawValue>,
    pub server_info: Box<RawValue>,
    pub instructions: Option<String>,
}

/// What comes with a request.
#[derive(Debug, Clone)]
pub struct RequestContext {
    pub connection: Arc<Connection>,
    /// The id that the client gave the request; unique among its unanswered ones only.
    pub request_id: RequestId,
    /// Reaches the client on the stream of this very request.
    pub outbound: Outbound,
    /// Fires when the client cancels the request or its session ends. The transport then sends no
    /// answer any more, but lets the service come to its own end.
    pub cancelled: CancellationToken,
    /// The log messages that a modern client wants to see of this request. The transport holds
    /// the others back; a legacy client says `logging/setLevel` instead.
    pub log_level: Option<LogLevel>,
}

/// Answers requests. One service serves all sessions of an endpoint, so it takes `&self`.
///
/// The transports handle `initialize` (version negotiation), `ping`, `notifications/initialized`
/// and `notifications/cancelled` themselves; everything else arrives here. A service need not know
/// the modern era: its transports ask [`Service::initialize`] for what `server/discover` says,
/// turn `subscriptions/listen` into `resources/subscribe` and `resources/unsubscribe`, and make
/// input-required results of what the service asks the client.
pub trait Service: Send + Sync + 'static {
    /// What this server says about itself to a client that just said hello.
    fn initialize(
        &self,
        connection: &Connection,
    ) -> impl Future<Output = Result<InitializeResult, ErrorObject>> + Send;

    fn request(
        &self,
        request: Request,
        context: RequestContext,
    ) -> impl Future<Output = Result<Box<RawValue>, ErrorObject>> + Send;

    /// Notifications may overlap, with each other and with requests.
    fn notification(
        &self,
        notification: Notification,
        connection: Arc<Connection>,
    ) -> impl Future<Output = ()> + Send {
        let _ = (notification, connection);
        async {}
    }

    /// The arguments of a tool that calls over HTTP repeat as headers, where the tool's schema
    /// is known; the transport then refuses calls whose headers say something else.
    fn parameter_headers(&self, tool: &str) -> Option<Arc<ParameterHeaders>> {
        let _ = tool;
        None
    }

    /// A session that was initialized ended: by its client, by expiry or by shutdown.
    fn closed(&self, connection: &Connection) {
        let _ = connection;
    }
}

impl ClientIdentity {
    /// A client of which little is known. What it says of itself is cut where it is too long.
    pub(super) fn new(
        name: Option<&str>,
        version: Option<&str>,
        capabilities: Box<RawValue>,
    ) -> Self {
        let shown = |text: &str| text.chars().take(NAME_CHARS).collect();
        Self {
            name: shown(name.unwrap_or("unknown")),
            version: shown(version.unwrap_or_default()),
            capabilities,
        }
    }
}

impl Connection {
    /// Reaches the client outside any request: on its GET stream, or through the pipe.
    pub fn outbound(&self) -> &Outbound {
        &self.outbound
    }
}
