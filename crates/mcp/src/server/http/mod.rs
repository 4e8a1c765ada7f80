//! Streamable HTTP: one endpoint at one URL, for any path that the caller gives it and for both eras.
//!
//! Host, Origin and authentication are checked before a request comes here; what they found out
//! travels in the request's extensions and is kept in [`Connection::extensions`].

mod body;
mod detach;
mod event_log;
mod headers;
mod legacy;
mod modern;
mod reader;
mod readers;
mod refusal;
mod reply;
mod stream;
mod unread;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any};
use http::Method;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::body::discard;
use self::body::read_body;
use self::legacy::Legacy;
use self::modern::ModernEndpoint;
use self::refusal::{Reason, Refusal};
pub(super) use self::stream::EventStream;
pub use self::unread::UnreadBudget;
use super::SessionId;
use super::modern::Parking;
use super::service::{Connection, Service};
use crate::coarse_timer::CoarseTimer;
use crate::{Inbound, Notification};

/// The bounds and the pace of an endpoint.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// The largest message that is accepted.
    pub max_body_bytes: usize,
    /// Sessions beyond this number cost the one that was idle for longest; streams of
    /// subscriptions beyond it are refused.
    pub max_sessions: usize,
    /// Requests that one session may have unanswered.
    pub max_calls: usize,
    /// A session ends when its client has been away for this long: no request, no stream it
    /// reads. What still runs for it is cancelled.
    pub idle_timeout: Duration,
    /// An answer that takes longer than this is given by events rather than by plain JSON.
    pub patience: Duration,
    /// A client that reads nothing for this long although there is more than fits loses its
    /// stream, and has to resume it; until then it holds up the calls that write to it.
    pub stall: Duration,
    /// The pause between the comments that keep an idle stream alive.
    pub keep_alive: Duration,
    /// The calls of modern clients that wait for input.
    pub parking: Parking,
    /// Once this fires no request is begun any more. What is under way goes on, and so does what
    /// belongs to it: answers to questions, cancellations, streams that are resumed.
    pub draining: CancellationToken,
    /// Counts the requests that have been begun and whose answers are not on their way yet.
    pub under_way: TaskTracker,
    /// How many bytes a client may say about itself: its capabilities and its info.
    pub session_bytes: usize,
    /// Bounds what is held for clients that do not read; servers may share it.
    pub unread: Arc<UnreadBudget>,
    /// Tells callers apart by what the transport knows of them. A session, or a call that waits
    /// for input, of another caller looks like one that does not exist.
    pub same_caller: fn(&http::Extensions, &http::Extensions) -> bool,
}

/// Serves a [`Service`] over HTTP. Cheap to clone; when the last clone is dropped every session
/// ends.
#[derive(Debug)]
pub struct HttpServer<S: Service> {
    legacy: Arc<Legacy<S>>,
    modern: Arc<ModernEndpoint<S>>,
    max_body_bytes: usize,
}

// === impl HttpOptions ===

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            max_body_bytes: 4 * 1024 * 1024,
            max_sessions: 1_000,
            max_calls: 1_024,
            idle_timeout: Duration::from_mins(30),
            patience: Duration::from_secs(1),
            stall: Duration::from_secs(30),
            keep_alive: Duration::from_secs(15),
            parking: Parking::default(),
            draining: CancellationToken::new(),
            under_way: TaskTracker::new(),
            session_bytes: 64 * 1024,
            unread: UnreadBudget::new(64 * 1024 * 1024),
            same_caller: |_, _| true,
        }
    }
}

// === impl HttpServer ===

impl<S: Service> HttpServer<S> {
    pub fn new(service: Arc<S>, options: HttpOptions) -> Self {
        let timer = CoarseTimer::default();
        let modern = ModernEndpoint::new(Arc::clone(&service), &options, timer.clone());
        Self {
            max_body_bytes: options.max_body_bytes,
            modern: Arc::new(modern),
            legacy: Arc::new(Legacy::new(service, options, timer)),
        }
    }

    /// Answers one HTTP request, whatever its path.
    pub async fn handle(&self, request: Request) -> Response {
        let answered = match *request.method() {
            Method::POST => self.post(request).await,
            Method::GET => self.legacy.get(&request),
            Method::DELETE => self.legacy.delete(&request),
            _ => Err(Reason::Method.into()),
        };
        answered.unwrap_or_else(IntoResponse::into_response)
    }

    async fn post(&self, request: Request) -> Result<Response, Refusal> {
        let (parts, body) = request.into_parts();
        headers::check_post(&parts.headers)?;
        let body = read_body(body, self.max_body_bytes).await?;
        let inbound = Inbound::parse_from_client(&body).map_err(Reason::Parse)?;
        drop(body);
        match inbound {
            Inbound::One(message) if modern::is_modern(&parts.headers, &message) => {
                self.modern.post(parts, message).await
            }
            inbound => self.legacy.post(parts, inbound).await,
        }
    }

    /// The endpoint as a route: `Router::new().route("/mcp", server.route())`.
    pub fn route<State: Clone + Send + Sync + 'static>(&self) -> MethodRouter<State> {
        let server = self.clone();
        any(move |request: Request| {
            let server = server.clone();
            async move { server.handle(request).await }
        })
    }

    /// Tells every session, and every stream of subscriptions that wants to know, without waiting
    /// for any: a client that is too far behind loses its stream.
    pub fn broadcast(&self, notification: &Notification) {
        self.legacy.broadcast(notification);
        self.modern.broadcast(notification);
    }

    /// The clients that can be told something outside a request.
    pub fn connections(&self) -> Vec<Arc<Connection>> {
        let mut connections = self.legacy.connections();
        connections.extend(self.modern.connections());
        connections
    }

    pub fn session_count(&self) -> usize {
        self.legacy.session_count()
    }

    /// Ends a session as if its client had; `false` if there is none of this id.
    pub fn end_session(&self, id: &SessionId) -> bool {
        self.legacy.end_session(id)
    }

    /// Ends every session and every call: closes their streams, so that a graceful shutdown of the
    /// HTTP server has nothing to wait for.
    pub fn end_all_sessions(&self) {
        self.legacy.end_all();
        self.modern.end_all();
    }
}

impl<S: Service> Clone for HttpServer<S> {
    fn clone(&self) -> Self {
        Self {
            legacy: Arc::clone(&self.legacy),
            modern: Arc::clone(&self.modern),
            max_body_bytes: self.max_body_bytes,
        }
    }
}
