//! The two families of protocol revisions, and how to find out which one a server speaks.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{ConnectError, Handshake};
use crate::{ErrorObject, ProtocolVersion, codes};

/// How a conversation is held. It is a property of the server, so it can be remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// Up to 2025-11-25: `initialize` first, and a session from then on.
    Legacy,
    /// From 2026-07-28 on: every request stands by itself.
    Modern,
}

/// What came of asking a server for its era.
#[derive(Debug)]
pub(super) enum Verdict<L> {
    Modern(Handshake),
    /// It was greeted. `modern` if it turned out on the way that it need not have been.
    Legacy {
        greeted: L,
        modern: bool,
    },
}

/// Why `server/discover` did not succeed.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) error: ConnectError,
    /// Whether it is what a legacy server might have said.
    pub(super) legacy: bool,
}

impl Refused {
    /// The server speaks none of our modern versions, only these.
    pub(super) fn versions(supported: &[String]) -> Self {
        let is_legacy = |version: &String| {
            let parsed = version.parse::<ProtocolVersion>();
            parsed.is_ok_and(|version| !version.is_modern())
        };
        Self {
            legacy: supported.iter().any(is_legacy),
            error: ConnectError::UnsupportedVersion {
                version: supported.join(", "),
            },
        }
    }
}

/// Whether only a modern server says so.
pub(super) fn is_modern_error(error: &ErrorObject) -> bool {
    matches!(
        error.code,
        codes::HEADER_MISMATCH
            | codes::MISSING_CLIENT_CAPABILITY
            | codes::UNSUPPORTED_PROTOCOL_VERSION
    )
}

/// Asks in the modern way, and greets in the legacy way if that is what the answer calls for.
///
/// A server that has not answered in time may be one that never will, or one that is still
/// starting. It is greeted as well then; should it turn the greeting down, its late answer counts.
pub(super) async fn negotiate<L>(
    patience: Duration,
    discovering: impl Future<Output = Result<Handshake, Refused>>,
    initializing: impl Future<Output = Result<L, ConnectError>>,
) -> Result<Verdict<L>, ConnectError> {
    let mut discovering = pin!(discovering);
    match tokio::time::timeout(patience, &mut discovering).await {
        Ok(Ok(handshake)) => return Ok(Verdict::Modern(handshake)),
        Ok(Err(refused)) if refused.legacy => {
            tracing::debug!(error = ?refused.error, "the server is taken for a legacy one");
            let greeted = initializing.await?;
            return Ok(Verdict::Legacy {
                greeted,
                modern: false,
            });
        }
        Ok(Err(refused)) => return Err(refused.error),
        Err(_) => tracing::debug!(?patience, "the server has not told its era in time"),
    }
    let error = match initializing.await {
        Ok(greeted) => {
            // One that was only slow has answered in between.
            let late = tokio::time::timeout(Duration::ZERO, discovering).await;
            let modern = matches!(late, Ok(Ok(_)));
            return Ok(Verdict::Legacy { greeted, modern });
        }
        Err(error) => error,
    };
    match tokio::time::timeout(patience, discovering).await {
        Ok(Ok(handshake)) => Ok(Verdict::Modern(handshake)),
        _ => Err(error),
    }
}
