//! The way back from an upstream to the client whose request is under way.

use futures_util::future::BoxFuture;
use mcp::server::{Outbound, OutboundError, may_be_asked};
use mcp::{ErrorObject, LogLevel, Notification, RawValue, Request, RequestId};
use serde::Deserialize;
use upstream::{AskError, ClientLine};

/// Reaches one client.
#[derive(Debug)]
pub(super) struct ClientChannel {
    pub outbound: Outbound,
    /// What a legacy client declared. What a modern one did is checked by the transport, request
    /// by request.
    pub declared: Option<Box<RawValue>>,
    /// Log messages below it are not for this client.
    pub log_level: Option<LogLevel>,
}

impl ClientLine for ClientChannel {
    fn ask(&self, request: Request) -> BoxFuture<'_, Result<Box<RawValue>, AskError>> {
        Box::pin(async move {
            let Request { id, method, params } = request;
            let declared = self.declared.as_deref();
            if declared.is_some_and(|it| !may_be_asked(it, &method, params.as_deref())) {
                return Err(AskError::Refused(ErrorObject::method_not_found(&method)));
            }
            let answer = match &id {
                // The key that a modern upstream gave its question; clients may know it.
                RequestId::String(key) => self.outbound.request_as(key, &method, params).await,
                RequestId::Number(_) => self.outbound.request(&method, params).await,
            };
            answer.map_err(|error| match error {
                OutboundError::Refused(error) => AskError::Refused(error),
                OutboundError::Gone(_) => AskError::Unreachable,
            })
        })
    }

    fn tell(&self, notification: &Notification) {
        if is_wanted(notification, self.log_level)
            && let Err(error) = self.outbound.offer(notification)
        {
            tracing::debug!(method = notification.method, %error, "a notification came too late");
        }
    }
}

/// Whether a client that set this level wants to hear it. Without a level the server decides.
pub(super) fn is_wanted(notification: &Notification, wanted: Option<LogLevel>) -> bool {
    #[derive(Deserialize)]
    struct Message<'a> {
        level: &'a str,
    }

    let Some(wanted) = wanted.filter(|_| notification.method == "notifications/message") else {
        return true;
    };
    let params = notification.params.as_deref().map_or("{}", RawValue::get);
    let message = serde_json::from_str::<Message<'_>>(params).ok();
    let level = message.and_then(|message| message.level.parse::<LogLevel>().ok());
    // An unknown level is no reason to lose the message.
    level.is_none_or(|level| level >= wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_messages_below_the_level_are_held_back_and_nothing_else() {
        let message = |method: &str, level: &str| {
            let params = format!(r#"{{"level":"{level}","data":1}}"#);
            Notification::new(method, RawValue::from_string(params).ok())
        };
        let log = |level| message("notifications/message", level);
        assert!(is_wanted(&log("debug"), None));
        assert!(!is_wanted(&log("info"), Some(LogLevel::Warning)));
        assert!(is_wanted(&log("error"), Some(LogLevel::Warning)));
        assert!(is_wanted(&log("odd"), Some(LogLevel::Warning)));
        assert!(is_wanted(
            &message("notifications/x", "info"),
            Some(LogLevel::Warning)
        ));
    }
}
