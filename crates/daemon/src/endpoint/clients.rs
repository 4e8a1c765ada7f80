//! What an endpoint keeps for its clients beyond their requests: the log level of a session, and the
//! resources that it wants to hear of.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp::server::{Connection, RequestContext, Service};
use mcp::{LogLevel, Notification, RawValue};
use policy::ServerName;
use serde::Deserialize;
use upstream::{OnBehalf, Upstream};

use super::client_channel::{ClientChannel, is_wanted};
use crate::http::Principal;

#[derive(Debug)]
pub(super) struct Clients {
    kept: Mutex<HashMap<String, Kept>>,
    /// Whether the clients of this endpoint share the processes of upstreams.
    share_processes: bool,
}

/// What is kept for one session, or for one stream of subscriptions of a modern client.
#[derive(Debug, Default)]
pub(super) struct Kept {
    log_level: Option<LogLevel>,
    /// By resource, the upstream that tells of it.
    pub subscriptions: BTreeMap<String, ServerName>,
}

#[derive(Deserialize)]
struct Updated {
    uri: String,
}

impl Clients {
    /// Clients that have processes of their own where that is possible.
    pub(super) fn apart() -> Self {
        Self {
            kept: Mutex::default(),
            share_processes: false,
        }
    }

    /// Clients that share the processes of upstreams.
    pub(super) fn sharing() -> Self {
        Self {
            share_processes: true,
            ..Self::apart()
        }
    }

    /// The client of a request, as upstreams know it.
    pub(super) fn on_behalf(&self, context: &RequestContext) -> OnBehalf {
        let connection = &context.connection;
        let is_modern = connection.protocol.is_modern();
        let log_level = context.log_level.or_else(|| self.log_level(connection));
        let line = |outbound| {
            Arc::new(ClientChannel {
                outbound,
                declared: declared(connection),
                log_level,
            })
        };
        let session = (!is_modern).then(|| connection.session.to_string());
        OnBehalf {
            session_line: session
                .is_some()
                .then(|| line(connection.outbound().clone()) as Arc<_>),
            session,
            name: connection.client.name.clone(),
            principal: principal(connection),
            shares_processes: self.share_processes,
            capabilities: connection.client.capabilities.clone(),
            log_level,
            line: line(context.outbound.clone()),
        }
    }

    /// The client of a notification, which has no stream of its own.
    pub(super) fn of_connection(&self, connection: &Connection) -> OnBehalf {
        let line = Arc::new(ClientChannel {
            outbound: connection.outbound().clone(),
            declared: declared(connection),
            log_level: None,
        });
        OnBehalf {
            session: (!connection.protocol.is_modern()).then(|| connection.session.to_string()),
            name: connection.client.name.clone(),
            principal: principal(connection),
            shares_processes: self.share_processes,
            capabilities: connection.client.capabilities.clone(),
            log_level: None,
            line: Arc::clone(&line) as Arc<_>,
            session_line: Some(line),
        }
    }

    fn log_level(&self, connection: &Connection) -> Option<LogLevel> {
        self.kept().get(connection.session.as_str())?.log_level
    }

    pub(super) fn set_log_level(&self, connection: &Connection, level: LogLevel) {
        self.kept()
            .entry(connection.session.to_string())
            .or_default()
            .log_level = Some(level);
    }

    /// Whether the client was not subscribed before.
    pub(super) fn subscribe(
        &self,
        connection: &Connection,
        uri: &str,
        server: &ServerName,
    ) -> bool {
        let mut kept = self.kept();
        let kept = kept.entry(connection.session.to_string()).or_default();
        let before = kept.subscriptions.insert(uri.to_owned(), server.clone());
        before.is_none()
    }

    /// The upstream that told of the resource, if the client was subscribed.
    pub(super) fn unsubscribe(&self, connection: &Connection, uri: &str) -> Option<ServerName> {
        let mut kept = self.kept();
        kept.get_mut(connection.session.as_str())?
            .subscriptions
            .remove(uri)
    }

    pub(super) fn is_subscribed(&self, connection: &Connection, uri: &str) -> bool {
        let kept = self.kept();
        let kept = kept.get(connection.session.as_str());
        kept.is_some_and(|kept| kept.subscriptions.contains_key(uri))
    }

    /// The client is gone; what was kept for it is handed out for the last time.
    pub(super) fn forget(&self, connection: &Connection) -> Kept {
        let kept = self.kept().remove(connection.session.as_str());
        kept.unwrap_or_default()
    }

    /// Tells those clients of an endpoint what an upstream announced outside of a call, whom it
    /// concerns. A client with a process of its own hears of changes from that one.
    pub(super) fn tell<S: Service>(
        &self,
        endpoint: &mcp::server::HttpServer<S>,
        upstream: &Upstream,
        notification: &Notification,
    ) {
        let server = upstream.name();
        let connections = endpoint.connections().into_iter();
        let has_process = |connection: &Arc<Connection>| {
            !connection.protocol.is_modern() && upstream.has_process(connection.session.as_str())
        };
        let concerned = connections.filter(|connection| !has_process(connection));
        match notification.method.as_str() {
            "notifications/resources/updated" => {
                let uri = updated_uri(notification);
                for connection in concerned {
                    if connection.protocol.is_modern()
                        || self.wants(&connection, server, uri.as_deref())
                    {
                        offer(&connection, notification);
                    }
                }
            }
            "notifications/message" => {
                for connection in concerned {
                    let level = self.log_level(&connection);
                    if level.is_some() && is_wanted(notification, level) {
                        offer(&connection, notification);
                    }
                }
            }
            _ => concerned.for_each(|connection| offer(&connection, notification)),
        }
    }

    fn wants(&self, connection: &Connection, server: &ServerName, uri: Option<&str>) -> bool {
        let kept = self.kept();
        let Some(kept) = kept.get(connection.session.as_str()) else {
            return false;
        };
        // A server may report a part of what was subscribed to.
        kept.subscriptions.iter().any(|(subscribed, owner)| {
            owner == server && uri.is_some_and(|uri| uri.starts_with(subscribed.as_str()))
        })
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<String, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn principal(connection: &Connection) -> Cow<'static, str> {
    let principal = connection.extensions.get::<Principal>();
    principal.map_or("", |principal| principal.as_str()).into()
}

fn declared(connection: &Connection) -> Option<Box<RawValue>> {
    (!connection.protocol.is_modern()).then(|| connection.client.capabilities.clone())
}

/// A client that is too far behind loses its stream, and sees that itself.
fn offer(connection: &Connection, notification: &Notification) {
    let _ = connection.outbound().offer(notification);
}

fn updated_uri(notification: &Notification) -> Option<String> {
    let params = notification.params.as_deref().map(RawValue::get)?;
    let updated: Updated = serde_json::from_str(params).ok()?;
    Some(updated.uri)
}
