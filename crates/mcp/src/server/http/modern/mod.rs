//! The modern era over HTTP: a request and its response, and nothing that outlives them. A client
//! that closes the response cancels its request.

mod check;
mod tied;

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response as HttpResponse;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::tied::Tied;
use super::HttpOptions;
use super::detach::Detachable;
use super::headers;
use super::readers::Readers;
use super::refusal::{Reason, Refusal};
use super::reply::{empty, event_stream, json};
use super::stream::EventStream;
use super::unread::UnreadBudget;
use crate::coarse_timer::CoarseTimer;
use crate::modern::methods;
use crate::server::modern::{Answer, Modern, Opened};
use crate::server::route::Route;
use crate::server::service::{Connection, Service};
use crate::{Message, Notification, ProtocolVersion, Request, codes};

#[derive(Debug)]
pub(super) struct ModernEndpoint<S: Service> {
    service: Arc<S>,
    modern: Arc<Modern<S>>,
    patience: Duration,
    timer: CoarseTimer,
    keep_alive: Duration,
    stall: Duration,
    draining: CancellationToken,
    under_way: TaskTracker,
    session_bytes: usize,
    unread: Arc<UnreadBudget>,
}

/// Whether a message is of this era; if not, it is part of a session or opens one.
pub(super) fn is_modern(headers: &HeaderMap, message: &Message) -> bool {
    let named = headers::named_version(headers);
    let version = named.and_then(|named| named.parse::<ProtocolVersion>().ok());
    if version.is_some_and(ProtocolVersion::is_modern) {
        return true;
    }
    if headers.contains_key(headers::SESSION_ID) {
        return false;
    }
    matches!(message, Message::Request(request) if crate::modern::is_modern(request))
}

// === impl ModernEndpoint ===

impl<S: Service> ModernEndpoint<S> {
    pub(super) fn new(service: Arc<S>, options: &HttpOptions, timer: CoarseTimer) -> Self {
        let (parking, max_listeners) = (options.parking, options.max_sessions);
        let modern = Modern::new(Arc::clone(&service), parking, max_listeners)
            .told_apart_by(options.same_caller);
        Self {
            service,
            modern: Arc::new(modern),
            patience: options.patience,
            timer,
            keep_alive: options.keep_alive,
            stall: options.stall,
            draining: options.draining.clone(),
            under_way: options.under_way.clone(),
            session_bytes: options.session_bytes,
            unread: Arc::clone(&options.unread),
        }
    }

    pub(super) async fn post(
        &self,
        parts: Parts,
        message: Message,
    ) -> Result<HttpResponse, Refusal> {
        match message {
            Message::Request(request) => self.request(parts, request).await,
            Message::Notification(notification) => {
                self.notified(parts, notification).await;
                Ok(empty(StatusCode::ACCEPTED))
            }
            // Nothing is ever asked that a response could answer.
            Message::Response(_) => Err(Reason::Unasked.into()),
        }
    }

    pub(super) fn broadcast(&self, notification: &Notification) {
        self.modern.broadcast(notification);
    }

    pub(super) fn connections(&self) -> Vec<Arc<Connection>> {
        self.modern.connections()
    }

    pub(super) fn end_all(&self) {
        self.modern.end_all();
    }

    async fn request(&self, parts: Parts, request: Request) -> Result<HttpResponse, Refusal> {
        let refuse = |request: &Request, error| {
            let status = StatusCode::BAD_REQUEST;
            Refusal::of(&request.id, Reason::Modern { status, error })
        };
        let opened = Opened::read(request, self.session_bytes)
            .map_err(|(request, error)| refuse(&request, error))?;
        let Opened { request, facts, .. } = &opened;
        if self.draining.is_cancelled() && !opened.resumes() {
            return Err(Refusal::of(&request.id, Reason::Stopping));
        }
        check::headers_match(&parts.headers, request, &facts.version)
            .map_err(|mismatch| refuse(request, mismatch.to_error()))?;
        facts
            .check_version()
            .map_err(|error| refuse(request, error))?;
        if request.method == methods::LISTEN {
            return Ok(self.listen(parts, opened).await);
        }
        self.check_parameters(&parts.headers, request)
            .map_err(|mismatch| refuse(request, mismatch.to_error()))?;
        Ok(self.respond(parts, opened).await)
    }

    /// Whether the arguments that the tool wants repeated in headers are.
    fn check_parameters(
        &self,
        headers: &HeaderMap,
        request: &Request,
    ) -> Result<(), check::Mismatch> {
        let Some((tool, arguments)) = check::tool_call(request) else {
            return Ok(());
        };
        match self.service.parameter_headers(&tool) {
            Some(parameters) => Ok(parameters.check(headers, arguments)?),
            None => Ok(()),
        }
    }

    /// Answers by JSON if the service answers soon and says nothing else before; else by events.
    async fn respond(&self, parts: Parts, opened: Opened) -> HttpResponse {
        let stream = EventStream::non_resumable(self.readers());
        let reader = stream.attach();
        let round = self.modern.new_round();
        let hang_up = round.clone().drop_guard();
        let route = Route::Stream(Arc::clone(&stream));
        let modern = Arc::clone(&self.modern);
        let extensions = parts.extensions;
        // Until the answer is in the stream, or in our response.
        let under_way = self.under_way.token();
        let mut answering = Detachable::new(async move {
            let answer = modern.serve(opened, extensions, route, round).await;
            (answer, under_way)
        });
        tokio::select! {
            biased;
            (answer, _under_way) = &mut answering => match answer {
                Some(answer) if stream.finish_if_silent() => return plain(answer),
                answer => stream.finish(answer.map(|answer| answer.message)),
            },
            () = reader.opened() => {}
            () = self.timer.sleep(self.patience) => {}
        }
        if let Some(rest) = answering.into_future() {
            tokio::spawn(async move {
                let (answer, _under_way) = rest.await;
                stream.finish(answer.map(|answer| answer.message));
            });
        }
        let body = reader.into_body(None, self.keep_alive);
        event_stream(Tied::new(body, hang_up))
    }

    async fn listen(&self, parts: Parts, opened: Opened) -> HttpResponse {
        let stream = EventStream::non_resumable(self.readers());
        let reader = stream.attach();
        let id = opened.request.id.clone();
        let modern = Arc::clone(&self.modern);
        let route = Route::Stream(stream);
        // A client that hangs up now must not leave half its subscriptions behind.
        let listening =
            Detachable::new(async move { modern.listen(opened, parts.extensions, route).await });
        match listening.await {
            Ok(subscription) => {
                let body = reader.into_body(None, self.keep_alive);
                event_stream(Tied::new(body, subscription))
            }
            Err(error) => plain(Answer::refusal(id, error)),
        }
    }

    fn readers(&self) -> Arc<Readers> {
        Readers::new(self.stall, Arc::clone(&self.unread))
    }

    async fn notified(&self, parts: Parts, notification: Notification) {
        // Here a request is cancelled by closing its response.
        if notification.method == "notifications/cancelled" {
            return;
        }
        let modern = Arc::clone(&self.modern);
        let work = async move { modern.notified(notification, parts.extensions).await };
        let _ = timeout(self.patience, Detachable::new(work)).await;
    }
}

impl<S: Service> Drop for ModernEndpoint<S> {
    fn drop(&mut self) {
        self.end_all();
    }
}

fn plain(answer: Answer) -> HttpResponse {
    let mut response = json(answer.message);
    *response.status_mut() = match answer.error {
        Some(codes::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(
            codes::HEADER_MISMATCH
            | codes::MISSING_CLIENT_CAPABILITY
            | codes::UNSUPPORTED_PROTOCOL_VERSION,
        ) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    };
    response
}
