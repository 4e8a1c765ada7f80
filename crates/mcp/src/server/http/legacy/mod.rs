//! The legacy era, 2024-11-05 to 2025-11-25: `initialize` opens a session, and streams can be
//! resumed. A call outlives its connection here; only `notifications/cancelled` ends it early.

mod post;
mod session;
mod sessions;

use std::sync::{Arc, Once};
use std::time::Duration;

use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use http::{Extensions, HeaderMap, StatusCode};

use self::session::Session;
use self::sessions::Sessions;
use super::HttpOptions;
use super::headers;
use super::reader::EventReader;
use super::refusal::{Reason, Refusal};
use super::reply::{empty, event_stream};
use crate::coarse_timer::CoarseTimer;
use crate::server::SessionId;
use crate::server::service::{Connection, Service};
use crate::{Notification, ProtocolVersion};

/// What clients are told to wait before they resume a stream that the server closes early.
const RETRY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Legacy<S: Service> {
    service: Arc<S>,
    options: HttpOptions,
    sessions: Sessions,
    timer: CoarseTimer,
    reaper: Once,
}

impl<S: Service> Legacy<S> {
    pub(super) fn new(service: Arc<S>, options: HttpOptions, timer: CoarseTimer) -> Self {
        Self {
            service,
            timer,
            sessions: Sessions::new(options.max_sessions),
            options,
            reaper: Once::new(),
        }
    }

    /// Opens the session's own stream, or goes on with the stream that the last event was of.
    pub(super) fn get(&self, request: &Request) -> Result<Response, Refusal> {
        let headers = request.headers();
        headers::check_has_session(headers)?;
        headers::check_get(headers)?;
        let session = self.session(headers, request.extensions())?;
        let Some(event) = headers::last_event_id(headers)? else {
            let reader = session.standalone().attach();
            return Ok(self.new_events(session.connection.protocol, reader));
        };
        let stream = session.stream_of(event).ok_or(Reason::UnknownEvent)?;
        let reader = stream.resume(event.position).ok_or(Reason::LostEvents)?;
        Ok(self.events(session.connection.protocol, None, reader))
    }

    pub(super) fn delete(&self, request: &Request) -> Result<Response, Refusal> {
        headers::check_has_session(request.headers())?;
        let session = self.session(request.headers(), request.extensions())?;
        self.end_session(session.id());
        Ok(empty(StatusCode::NO_CONTENT))
    }

    /// The session that a request names and may use.
    fn session(
        &self,
        headers: &HeaderMap,
        extensions: &Extensions,
    ) -> Result<Arc<Session>, Reason> {
        headers::check_version(headers)?;
        let id = headers::session_id(headers).ok_or(Reason::NoSession)?;
        let session = self
            .sessions
            .get(id)
            .filter(|session| {
                (self.options.same_caller)(&session.connection.extensions, extensions)
            })
            .ok_or(Reason::UnknownSession)?;
        session.touch();
        Ok(session)
    }

    /// A stream that the client has not seen anything of.
    fn new_events(&self, protocol: ProtocolVersion, reader: EventReader) -> Response {
        let priming = knows_empty_events(protocol).then(|| reader.stream().priming());
        self.events(protocol, priming, reader)
    }

    fn events(
        &self,
        protocol: ProtocolVersion,
        priming: Option<Bytes>,
        reader: EventReader,
    ) -> Response {
        let body = reader.into_body(priming, self.options.keep_alive);
        event_stream(if knows_empty_events(protocol) {
            body.retry_after(RETRY)
        } else {
            body
        })
    }

    pub(super) fn broadcast(&self, notification: &Notification) {
        let message = notification.encode();
        for session in self.sessions.all() {
            // A session that has ended since needs no telling.
            let _ = session.standalone().offer(&message);
        }
    }

    pub(super) fn connections(&self) -> Vec<Arc<Connection>> {
        self.sessions
            .all()
            .iter()
            .map(|session| Arc::clone(&session.connection))
            .collect()
    }

    pub(super) fn session_count(&self) -> usize {
        self.sessions.len()
    }

    pub(super) fn end_session(&self, id: &SessionId) -> bool {
        let session = self.sessions.remove(id.as_str());
        session.is_some_and(|session| {
            self.close(&session);
            true
        })
    }

    pub(super) fn end_all(&self) {
        for session in self.sessions.take_all() {
            self.close(&session);
        }
    }

    fn close(&self, session: &Session) {
        session.end();
        self.service.closed(&session.connection);
    }

    /// Starts the task that looks for idle sessions, with the first session there is. It ends
    /// when the server is dropped.
    fn start_reaper(self: &Arc<Self>) {
        self.reaper.call_once(|| {
            let server = Arc::downgrade(self);
            let pause = (self.options.idle_timeout / 8)
                .clamp(Duration::from_millis(10), Duration::from_secs(15));
            tokio::spawn(async move {
                let mut ticks = tokio::time::interval(pause);
                loop {
                    ticks.tick().await;
                    let Some(server) = server.upgrade() else {
                        break;
                    };
                    server.reap();
                }
            });
        });
    }

    fn reap(&self) {
        for session in self.sessions.take_idle(self.options.idle_timeout) {
            tracing::debug!(session = ?session.id(), "session expired");
            self.close(&session);
        }
        for session in self.sessions.all() {
            session.forget_old_streams();
        }
    }
}

/// Clients of earlier versions take an event without data for a broken message.
fn knows_empty_events(protocol: ProtocolVersion) -> bool {
    protocol >= ProtocolVersion::V2025_11_25
}

impl<S: Service> Drop for Legacy<S> {
    fn drop(&mut self) {
        self.end_all();
    }
}
