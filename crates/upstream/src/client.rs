//! The clients on whose behalf upstreams are asked: what they can do, and how they are reached.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, LazyLock};

use futures_util::future::BoxFuture;
use mcp::{ErrorObject, LogLevel, Notification, RawValue, Request, codes};
use policy::ServerName;

/// Reaches one client, on the stream of one of its requests or outside any.
pub trait ClientLine: fmt::Debug + Send + Sync + 'static {
    /// Has the client answer a question of the upstream. Dropping the future takes it back.
    fn ask(&self, request: Request) -> BoxFuture<'_, Result<Box<RawValue>, AskError>>;

    /// Called between two messages of the upstream, so it must not block.
    fn tell(&self, notification: &Notification);
}

/// Why a client did not answer a question.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The question never reached the client: the call on whose stream it was to go is over.
    #[error("the client can no longer be reached here")]
    Unreachable,
    #[error("the client refused: {0}")]
    Refused(#[source] ErrorObject),
}

/// Receives what an upstream says to no client in particular: that a list or a resource has changed, and
/// log messages that belong to no one request.
pub trait FleetListener: fmt::Debug + Send + Sync + 'static {
    /// Called between two messages of the upstream, so it must not block.
    fn hear(&self, server: &ServerName, notification: &Notification);
}

/// The client that a request is made for.
#[derive(Debug, Clone)]
pub struct OnBehalf {
    /// The session of a legacy client. A modern one has none: each of its requests stands alone.
    pub session: Option<String>,
    /// What the client calls itself.
    pub name: String,
    /// As whom the client was let in. Modern clients with the same name and principal cannot be told apart.
    pub principal: Cow<'static, str>,
    /// Whether the endpoint is one where clients share the processes of upstreams.
    pub shares_processes: bool,
    /// What the client can be asked, as it declared it.
    pub capabilities: Box<RawValue>,
    /// From which level on the client wants log messages.
    pub log_level: Option<LogLevel>,
    /// Reaches the client on the stream of this request.
    pub line: Arc<dyn ClientLine>,
    /// Reaches the client outside any request, where that is possible.
    pub session_line: Option<Arc<dyn ClientLine>>,
}

impl From<AskError> for ErrorObject {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Unreachable => Self::new(codes::CONNECTION_CLOSED, error.to_string()),
            AskError::Refused(error) => error,
        }
    }
}

impl OnBehalf {
    /// Whether the client declared anything that an upstream could make use of.
    pub(crate) fn is_interactive(&self) -> bool {
        let inside = self.capabilities.get().trim();
        let inside = inside
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'));
        inside.is_some_and(|inside| !inside.trim().is_empty())
    }
}

/// What an upstream is told on a connection that clients share: everything that any client may be able to
/// do. Some servers offer tools only to clients that can be asked, or that show user interfaces.
pub(crate) static ALL_CAPABILITIES: LazyLock<Box<RawValue>> = LazyLock::new(|| {
    raw(
        r#"{"roots":{"listChanged":true},"sampling":{},"elicitation":{"form":{},"url":{}},"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}"#,
    )
});

/// What an upstream is told on behalf of a client that can be asked nothing.
pub(crate) static NO_CAPABILITIES: LazyLock<Box<RawValue>> = LazyLock::new(|| raw("{}"));

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
