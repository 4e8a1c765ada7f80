//! Why an upstream is not connected, whether trying again can help, and what a person can do.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;

use config::ResolveError;
use mcp::client::{CloseReason, ConnectError, ListingOverrun, RedirectError, RequestError};
use policy::ServerName;

use crate::health::Dead;
use crate::process::SpawnError;
use crate::starts::CrashLoop;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectFailure {
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    #[error("the address is not a URL")]
    Url(#[source] url::ParseError),
    #[error("header `{name}` is not valid")]
    Header { name: String, source: http::Error },
    #[error("the server did not say hello")]
    Handshake(#[source] ConnectError),
    #[error("the server did not say hello within {} s", .0.as_secs())]
    HandshakeTimeout(std::time::Duration),
    #[error(transparent)]
    Exited(Exit),
    #[error(transparent)]
    CrashLoop(#[from] CrashLoop),
    #[error("the tools could not be listed")]
    Listing(#[from] ListingError),
    #[error("the connection was lost: {0}")]
    Lost(Arc<Loss>),
    /// A connection that was being made is not needed any more.
    #[error("the connection was given up")]
    GivenUp,
    #[error(
        "{most} clients have a process of their own, which is the most there can be; close one of them, \
         use /mcp, where clients share one, or set `sharing` of the server to \"shared\""
    )]
    TooManyClients { most: usize },
    /// Found out when the server was greeted before.
    #[error("the server does not speak the legacy era")]
    ModernOnly,
}

/// How a process ended, and what it last wrote to stderr.
#[derive(Debug, thiserror::Error)]
#[error("the process ended with {}{}", HowItEnded(*.status), LastWords(.stderr))]
pub(crate) struct Exit {
    pub status: ExitStatus,
    pub stderr: Vec<String>,
}

/// Why a connection that was up is gone.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Loss {
    #[error(transparent)]
    Exited(Exit),
    #[error("{}", chain(&**.0))]
    Closed(Arc<CloseReason>),
    /// By an order, not by itself.
    #[error("mcpproxy ended it, because the server is stopped, restarted or changed")]
    Ordered,
    #[error(
        "the server sent a message of more than {limit} bytes, which is the most that \
         `limits.upstream_message_bytes` allows"
    )]
    Oversized { limit: usize },
    #[error(transparent)]
    Dead(#[from] Dead),
    #[error("the tools could not be listed again: {}", chain(.0))]
    Listing(ListingError),
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ListingError {
    #[error("tools/list failed")]
    Request(#[source] RequestError),
    #[error("the answer to tools/list is not a list of tools")]
    Shape(#[source] serde_json::Error),
    #[error(transparent)]
    Overrun(#[from] ListingOverrun),
}

/// A failure as it is shown: what, why, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What happened, with its causes, in one line.
    pub message: String,
    /// What to do about it.
    pub advice: String,
    /// Whether trying again without a change is pointless.
    pub permanent: bool,
}

struct HowItEnded(ExitStatus);

struct LastWords<'a>(&'a [String]);

struct SignalName(i32);

// === impl ConnectFailure ===

impl ConnectFailure {
    /// The HTTP status behind it, if there is one.
    fn status(&self) -> Option<u16> {
        let status = match self {
            Self::Handshake(error) => error.http_status(),
            Self::Listing(ListingError::Request(error)) => error.http_status(),
            _ => None,
        };
        status.map(|status| status.as_u16())
    }

    /// Whether the server ended the connection before it was greeted.
    pub(crate) fn is_end_of_connection(&self) -> bool {
        let Self::Handshake(
            ConnectError::Initialize(cause)
            | ConnectError::Discover(cause)
            | ConnectError::Probe(cause),
        ) = self
        else {
            return false;
        };
        matches!(cause, RequestError::Closed(reason) | RequestError::NotSent(reason)
            if matches!(**reason, CloseReason::Ended { .. } | CloseReason::Read(_) | CloseReason::Write(_)))
    }

    /// What an exit of the process explains, and nothing else can: that it may not have survived
    /// the question for its era is for the connector to know.
    pub(crate) fn or_exit(self, exit: Exit) -> Self {
        match self {
            Self::Handshake(ConnectError::Probe(_)) => self,
            _ if self.is_end_of_connection() => Self::Exited(exit),
            other => other,
        }
    }

    /// Whether the server may have been spoken to in an era that it does not know.
    pub(crate) fn may_be_due_to_the_era(&self) -> bool {
        let Self::Handshake(error) = self else {
            return false;
        };
        match error {
            ConnectError::Handshake(_)
            | ConnectError::Discovery(_)
            | ConnectError::UnsupportedVersion { .. } => true,
            ConnectError::Initialize(cause) | ConnectError::Discover(cause) => {
                let status = cause.http_status().map(|status| status.as_u16());
                matches!(cause, RequestError::Rpc(_)) || matches!(status, Some(400 | 404 | 405))
            }
            ConnectError::HttpSetup(_) | ConnectError::Probe(_) | ConnectError::EventStream(_) => {
                false
            }
        }
    }

    pub(crate) fn describe(&self, server: &ServerName) -> Failure {
        let (permanent, advice) = self.verdict(server);
        Failure {
            message: self.message(),
            advice,
            permanent,
        }
    }

    /// What happened, in one line.
    fn message(&self) -> String {
        let wanted = match self.status() {
            Some(401) => "the server wants a login or a header",
            Some(403) => "the server does not accept the login or header that it got, or got none",
            _ => return chain(self),
        };
        format!("{wanted}: {}", last_cause(self))
    }

    fn verdict(&self, server: &ServerName) -> (bool, String) {
        let entry = format!("mcpServers.{server}");
        match (self, self.status()) {
            (Self::Spawn(SpawnError::NotFound { command }), _) => (
                true,
                format!("install `{command}` or correct {entry}.command, then restart {server}"),
            ),
            (Self::Spawn(SpawnError::NotExecutable { path }), _) => (
                true,
                format!("run `chmod +x {}`, then restart {server}", path.display()),
            ),
            (Self::Resolve(_), _) => (
                true,
                format!("then start mcpproxy again, or correct {entry}"),
            ),
            (Self::Url(_), _) => (true, format!("correct {entry}.url")),
            (Self::Header { .. }, _) => (true, format!("correct {entry}.headers")),
            (
                Self::Handshake(
                    ConnectError::Initialize(RequestError::Redirect(error))
                    | ConnectError::Discover(RequestError::Redirect(error)),
                ),
                _,
            ) => (true, redirect_advice(error, &entry)),
            (_, Some(401 | 403)) => (true, how_to_authorize(server)),
            (_, Some(404 | 410)) => (
                true,
                format!("there is no MCP server at this address: correct {entry}.url"),
            ),
            (Self::CrashLoop(_), _) => (
                true,
                format!(
                    "see why with `mcpproxy upstream logs {server}`, then run `mcpproxy upstream \
                     restart {server}`"
                ),
            ),
            (Self::Exited(_), _) => (
                false,
                format!(
                    "see why with `mcpproxy upstream logs {server}`; it is tried again by itself"
                ),
            ),
            (Self::Lost(loss), _) if matches!(**loss, Loss::Exited(_)) => (
                false,
                format!(
                    "see why with `mcpproxy upstream logs {server}`; it is tried again by itself"
                ),
            ),
            _ => (false, "it is tried again by itself".to_owned()),
        }
    }
}

/// What to do about a server that answers 401 or 403.
pub fn how_to_authorize(server: &ServerName) -> String {
    format!(
        "set mcpServers.{server}.headers.Authorization in the config, as \"Bearer ${{env:TOKEN}}\" \
         with TOKEN set where mcpproxy starts"
    )
}

fn redirect_advice(error: &RedirectError, entry: &str) -> String {
    match error {
        RedirectError::OtherOrigin { to, .. } => format!(
            "if {to} may have the credentials in {entry}, correct {entry}.url to point there"
        ),
        RedirectError::TooMany { .. } | RedirectError::Address(_) => {
            format!("correct {entry}.url, or the server that redirects")
        }
    }
}

/// The error that is behind all others.
fn last_cause(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    last.to_string()
}

/// An error and its causes in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Some errors repeat their cause in their own text.
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

impl fmt::Display for HowItEnded {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.signal(), self.0.code()) {
            (Some(signal), _) => write!(formatter, "signal {signal}{}", SignalName(signal)),
            (None, Some(code)) => write!(formatter, "exit code {code}"),
            (None, None) => write!(formatter, "{}", self.0),
        }
    }
}

impl fmt::Display for SignalName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match signal_hook::low_level::signal_name(self.0) {
            Some(name) => write!(formatter, " ({name})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for LastWords<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => Ok(()),
            lines => write!(formatter, "; it last wrote: {}", lines.join(" | ")),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}; {}", self.message, self.advice)
    }
}
